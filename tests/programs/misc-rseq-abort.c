/* compare: status */
/*
 * A restartable sequence in use: per-processor counters incremented without atomics by four threads. If
 * registration is refused the program falls back to atomics, as programs do; either way the sum is right.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/rseq.h>

#define THREADS 4
#define ROUNDS  200000

static struct {
	uint64_t value;
	char pad[120];
} counter[1024];

static struct rseq *rseq_area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* One attempt: 1 when the increment was committed on `cpu`. */
static int increment(struct rseq *area, uint64_t *target, uint32_t cpu)
{
	int done = 0;
	asm volatile goto(
	        ".pushsection __rseq_cs, \"aw\"\n"
	        ".balign 32\n"
	        "9:	.long 0, 0\n"
	        "	.quad 1f, 2f - 1f, 4f\n"
	        ".popsection\n"
	        "	leaq 9b(%%rip), %%rax\n"
	        "	movq %%rax, %[cs]\n"
	        "1:	cmpl %[cpu], %[cpu_id]\n"
	        "	jnz %l[failed]\n"
	        "	movq (%[target]), %%rax\n"
	        "	addq $1, %%rax\n"
	        "	movq %%rax, (%[target])\n"
	        "2:\n"
	        ".pushsection __rseq_failure, \"ax\"\n"
	        "	.byte 0x0f, 0xb9, 0x3d\n"
	        "	.long 0x53053053\n"
	        "4:	jmp %l[failed]\n"
	        ".popsection\n"
	        :
	        : [cs] "m"(area->rseq_cs), [cpu_id] "m"(area->cpu_id), [cpu] "r"(cpu), [target] "r"(target)
	        : "rax", "memory", "cc"
	        : failed);
	done = 1;
failed:
	return done;
}

static void *work(void *arg)
{
	struct rseq *area = rseq_area();
	int registered = __rseq_size && (int)area->cpu_id >= 0;
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (!registered) {
			__atomic_fetch_add(&counter[0].value, 1, __ATOMIC_SEQ_CST);
			continue;
		}
		for (;;) {
			uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
			if (increment(area, &counter[cpu].value, cpu))
				break;
		}
		if (i % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (int i = 0; i < 1024; i++)
		sum += counter[i].value;
	CHECK_EQ(sum, THREADS * ROUNDS);
	return done();
}
