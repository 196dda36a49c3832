/*
 * The program's own use of FS and GS: arch_prctl, rdfsbase and friends where the CPU has them, loads and
 * stores through both, per thread, across fork and signals. The tool may use GS for itself; the program must
 * not see it.
 */
#include "check.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>

static __thread int tls = 3;
static volatile uint64_t in_handler;

static uint64_t gs_load(uint64_t offset)
{
	uint64_t value;
	asm volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(offset));
	return value;
}

static void gs_store(uint64_t offset, uint64_t value)
{
	asm volatile("movq %0, %%gs:(%1)" : : "r"(value), "r"(offset) : "memory");
}

static uint64_t get(int code)
{
	uint64_t value = 1;
	CHECK(!syscall(SYS_arch_prctl, code, &value));
	return value;
}

static void handler(int sig)
{
	(void)sig;
	in_handler = gs_load(8);
}

static void *thread(void *arg)
{
	uint64_t block[4] = {1, (uint64_t)arg, 3, 4};
	CHECK(!syscall(SYS_arch_prctl, ARCH_SET_GS, block));
	for (int i = 0; i < 20000; i++) {
		CHECK_EQ(gs_load(8), arg);
		gs_store(16, gs_load(16) + 1);
		tls++;
	}
	CHECK_EQ(block[2], 20003);
	CHECK_EQ(get(ARCH_GET_GS), block);
	return NULL;
}

int main(void)
{
	static uint64_t block[8] = {10, 20, 30, 40, 50, 60, 70, 80};
	pthread_t threads[4];

	CHECK_EQ(get(ARCH_GET_GS), 0);
	CHECK_EQ(get(ARCH_GET_FS), __builtin_thread_pointer());
	CHECK(!syscall(SYS_arch_prctl, ARCH_SET_GS, block));
	for (uint64_t i = 0; i < 8; i++)
		CHECK_EQ(gs_load(i * 8), block[i]);
	gs_store(24, 99);
	CHECK_EQ(block[3], 99);
	uint64_t sum = 0;
	asm volatile(
	        "movq %%gs:0, %0; addq %%gs:8, %0; incq %%gs:16; lock addq $5, %%gs:32; xaddq %0, %%gs:40"
	        : "+r"(sum)
	        :
	        : "memory", "cc");
	CHECK_EQ(block[2], 31);
	CHECK_EQ(block[4], 55);
	CHECK_EQ(block[5], 90);
	CHECK_EQ(sum, 60);

	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	CHECK_EQ(in_handler, 20);
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread, (void *)(i + 100)));
	for (int i = 0; i < 20000; i++)
		CHECK_EQ(gs_load(0), 10);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	pid_t child = fork();
	if (child == 0)
		_exit(gs_load(8) == 20 && get(ARCH_GET_GS) == (uint64_t)block ? 7 : 8);
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 7 << 8);
	CHECK_ERRNO(syscall(SYS_arch_prctl, ARCH_SET_GS, 0xffff800000000000), EPERM);
	CHECK_EQ(gs_load(8), 20);

	if (getauxval(AT_HWCAP2) & 2) { /* FSGSBASE */
		uint64_t base;
		asm volatile("rdgsbase %0" : "=r"(base));
		CHECK_EQ(base, block);
		asm volatile("rdfsbase %0" : "=r"(base));
		CHECK_EQ(base, __builtin_thread_pointer());
		for (uint64_t i = 0; i < 1000; i++) {
			asm volatile("wrgsbase %0" : : "r"(block + i % 8) : "memory");
			CHECK_EQ(gs_load(0), block[i % 8]);
		}
		asm volatile("rdgsbase %0" : "=r"(base));
		CHECK_EQ(base, block + 7);
		CHECK_EQ(get(ARCH_GET_GS), block + 7);
		/* FS moves for a moment, without libc in between. */
		uint64_t value, own = (uint64_t)__builtin_thread_pointer();
		asm volatile("wrfsbase %1; movq %%fs:8, %0; wrfsbase %2"
		             : "=&r"(value)
		             : "r"(block), "r"(own));
		CHECK_EQ(value, 20);
		puts("FSGSBASE");
	}
	CHECK_EQ(tls, 3);
	return done();
}
