/* compare: status */
/*
 * rseq: glibc has registered its area or was refused the way an old kernel refuses; either way sched_getcpu
 * works, and a registration of the program's own is accepted or refused cleanly. An abort handler, where
 * registered, is reached.
 */
#include "check.h"
#include <sched.h>
#include <sys/rseq.h>

int main(void)
{
	CHECK(sched_getcpu() >= 0);
	printf("size %u flags %u offset %s\n", __rseq_size, __rseq_flags, __rseq_offset ? "set" : "0");
	if (__rseq_size) {
		struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
		CHECK(area->cpu_id == (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED || (int)area->cpu_id >= 0);
		CHECK_EQ(area->rseq_cs, 0);
		long result = syscall(SYS_rseq, area, 32, 0, RSEQ_SIG);
		CHECK(result == -1);
		CHECK(errno == EBUSY || errno == EPERM || errno == EINVAL || errno == ENOSYS);
	}
	for (int i = 0; i < 100000; i++)
		CHECK(sched_getcpu() >= 0);
	return done();
}
