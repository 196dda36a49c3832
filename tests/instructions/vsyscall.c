/*
 * The vsyscall page of old programs: three functions at fixed addresses, run by the kernel, not readable.
 * Where the kernel does not offer it a call is a fault. Times and CPU numbers are checked, not printed.
 */
#include "instruction.h"
#include <sched.h>
#include <time.h>
#include <sys/time.h>

SNIPPET(vsyscall_gettimeofday, "sub $8, %rsp; mov $0xffffffffff600000, %rax; call *%rax; add $8, %rsp; ret");
SNIPPET(vsyscall_time, "sub $8, %rsp; mov $0xffffffffff600400, %rax; call *%rax; add $8, %rsp; ret");
SNIPPET(vsyscall_getcpu, "sub $8, %rsp; mov $0xffffffffff600800, %rax; call *%rax; add $8, %rsp; ret");
SNIPPET(vsyscall_middle, "sub $8, %rsp; mov $0xffffffffff600404, %rax; call *%rax; add $8, %rsp; ret");
SNIPPET(vsyscall_jump, "mov $0xffffffffff600400, %rax; jmp *%rax"); /* a tail call */
SNIPPET(vsyscall_read, "mov $0xffffffffff600000, %rax; mov (%rax), %eax; ret");

int main(void)
{
	catch_faults();
	NAME_SNIPPET(vsyscall_time);
	NAME_SNIPPET(vsyscall_middle);
	NAME_SNIPPET(vsyscall_gettimeofday);
	NAME_SNIPPET(vsyscall_read);
	if (faults(vsyscall_time, 0, 0, 0, 0)) {
		show_fault("no vsyscall page");
		return 0;
	}
	time_t before = time(NULL), stored = 0;
	time_t now = (time_t)call(vsyscall_time, ADDRESS(&stored), 0, 0, 0),
	       tail = (time_t)call(vsyscall_jump, 0, 0, 0, 0);
	time_t after = time(NULL);
	CHECK(now >= before && now <= after + 1 && stored == now);
	CHECK(tail >= before && tail <= after + 1);
	struct timeval value = {0, -1};
	CHECK_EQ(call(vsyscall_gettimeofday, ADDRESS(&value), 0, 0, 0), 0);
	CHECK(value.tv_sec >= before && value.tv_sec <= after + 2 && value.tv_usec >= 0 &&
	        value.tv_usec < 1000000);
	unsigned cpu = ~0u, node = ~0u;
	CHECK_EQ(call(vsyscall_getcpu, ADDRESS(&cpu), ADDRESS(&node), 0, 0), 0);
	CHECK(cpu < (unsigned)sysconf(_SC_NPROCESSORS_CONF) && node < 1024);
	printf("time, gettimeofday, getcpu: plausible\n");
	/* The kernel makes these signals itself; the trap number in the frame is an older one. */
	CHECK(faults(vsyscall_middle, 0, 0, 0, 0));
	printf("call into the middle: SIG%s code %d pc %s\n", sigabbrev_np(caught.signal), caught.code,
	        where(caught.pc));
	CHECK(faults(vsyscall_gettimeofday, 8, 0, 0, 0));
	printf("bad pointer: SIG%s code %d pc %s\n", sigabbrev_np(caught.signal), caught.code,
	        where(caught.pc));
	faults(vsyscall_read, 0, 0, 0, 0);
	show_fault("read");
	return 0;
}
