/*
 * sigsetjmp and siglongjmp out of handlers, synchronous and asynchronous, many times: nothing may pile up in
 * the stub, and the mask is restored or not as asked.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf back;
static jmp_buf plain;
static volatile unsigned jumps;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void on_alarm(int sig)
{
	(void)sig;
	jumps++;
	siglongjmp(back, 1);
}

static void on_usr1(int sig)
{
	(void)sig;
	longjmp(plain, 5);
}

static int blocked(int sig)
{
	sigset_t set;
	sigprocmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, sig);
}

int main(void)
{
	volatile uint64_t faults = 0;
	volatile int *volatile bad = (volatile int *)16;
	struct sigaction action = {.sa_handler = on_fault};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	CHECK(!sigaction(SIGFPE, &action, NULL));
	CHECK(!sigaction(SIGILL, &action, NULL));

	for (volatile int i = 0; i < 8000; i++) {
		int sig = sigsetjmp(back, 1);
		if (!sig) {
			switch (i % 3) {
			case 0:
				*bad = 1;
				break;
			case 1:
				asm volatile("xorl %%ecx, %%ecx; divl %%ecx" : : : "eax", "ecx", "edx", "cc");
				break;
			case 2:
				asm volatile("ud2");
				break;
			}
			fail("not reached");
		}
		CHECK_EQ(sig, i % 3 == 0 ? SIGSEGV : i % 3 == 1 ? SIGFPE : SIGILL);
		CHECK(!blocked(SIGSEGV));
		faults = mix(faults, (uint64_t)sig);
	}
	printf("faults %llx\n", (long long)faults);

	/* Without the mask the signal stays blocked. */
	action.sa_handler = on_usr1;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	if (!setjmp(plain))
		raise(SIGUSR1);
	CHECK(blocked(SIGUSR1));

	/* Asynchronous: the loop is left at arbitrary places. */
	action.sa_handler = on_alarm;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	uint64_t expected = compute(3, 300);
	volatile unsigned finished = 0;
	volatile int started = 0;
	while (jumps < 5000) {
		if (!sigsetjmp(back, 1)) {
			/* not earlier: until here `back` is a place in the loop above */
			if (!started++)
				CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
			for (;;) {
				CHECK_EQ(compute(3, 300), expected);
				finished++;
			}
		}
		CHECK(!blocked(SIGALRM));
	}
	/* Off: from here the jump may still come once, so jump target first. */
	if (!sigsetjmp(back, 1))
		CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	signal(SIGALRM, SIG_IGN);
	return done();
}
