/* run: --cache 256K */
/*
 * One thread traps all the time, by int3 and by TF, while another fills the code cache over and over, so that
 * everybody is stopped and taken out of it: no trap is lost then, and none comes twice.
 */
#include "emit.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define AREA   (1u << 20)
#define ROUNDS 3

static volatile unsigned long traps, steps;
static volatile int finished;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == TRAP_TRACE)
		steps++;
	else
		traps++;
}

static void *trap(void *argument)
{
	unsigned long rounds = 0;

	while (!finished) {
		asm volatile("int3; nop; nop; int3; nop" ::: "memory");
		asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq\n"
		             "nop; mov $3, %%ecx; 1: dec %%ecx; jnz 1b; nop\n"
		             "pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
		                     : "ecx", "cc", "memory");
		rounds++;
		CHECK_EQ(traps, 2 * rounds);
		CHECK_EQ(steps, 12 * rounds);
		usleep(30);
	}
	return argument;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	CHECK(area != MAP_FAILED);
	CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, trap, NULL) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		make_and_call_loops(area, AREA, round);
	}
	finished = 1;
	CHECK(pthread_join(thread, NULL) == 0);
	puts("every trap once");
	return 0;
}
