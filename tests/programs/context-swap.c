/*
 * makecontext, swapcontext, setcontext: coroutines on their own stacks, a context left from a signal handler,
 * masks kept per context.
 */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define COROUTINES 8
#define STACK      65536

static ucontext_t scheduler, coroutine[COROUTINES], escape;
static int finished[COROUTINES];
static uint64_t total;
static volatile int handled;

static void body(int index, int rounds)
{
	uint64_t sum = (uint64_t)index;
	double real = 1.0 + index;
	for (int i = 0; i < rounds; i++) {
		sum = mix(sum, compute((uint64_t)i + 1, 20));
		real = real * 1.01 + i;
		CHECK(!swapcontext(&coroutine[index], &scheduler));
	}
	uint64_t bits;
	memcpy(&bits, &real, 8);
	printf("coroutine %d: %llx %llx\n", index, (long long)sum, (long long)bits);
	total = mix(total, sum ^ bits);
	finished[index] = 1;
}

static void on_signal(int sig)
{
	(void)sig;
	handled++;
	setcontext(&escape);
	fail("setcontext returned");
}

static void masked(void)
{
	sigset_t set;
	sigprocmask(SIG_SETMASK, NULL, &set);
	printf("inside: USR2 %s\n", sigismember(&set, SIGUSR2) ? "blocked" : "not blocked");
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(void)
{
	for (int i = 0; i < COROUTINES; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(stack != MAP_FAILED);
		CHECK(!getcontext(&coroutine[i]));
		coroutine[i].uc_stack.ss_sp = stack;
		coroutine[i].uc_stack.ss_size = STACK;
		coroutine[i].uc_link = &scheduler;
		makecontext(&coroutine[i], (void (*)(void))body, 2, i, 500 + i * 10);
	}
	int left = COROUTINES;
	while (left) {
		left = 0;
		for (int i = 0; i < COROUTINES; i++) {
			if (finished[i])
				continue;
			CHECK(!swapcontext(&scheduler, &coroutine[i]));
			left++;
		}
	}
	printf("total %llx\n", (long long)total);

	/* Out of a signal handler, many times: the mask of `escape` comes back with it. */
	struct sigaction action = {.sa_handler = on_signal};
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	volatile int rounds = 0;
	CHECK(!getcontext(&escape));
	if (rounds++ < 2000)
		raise(SIGUSR1);
	CHECK_EQ(handled, 2000);

	/* Masks belong to contexts. */
	sigset_t set;
	CHECK(!getcontext(&coroutine[0]));
	sigaddset(&coroutine[0].uc_sigmask, SIGUSR2);
	coroutine[0].uc_link = &scheduler;
	makecontext(&coroutine[0], masked, 0);
	CHECK(!swapcontext(&scheduler, &coroutine[0]));
	sigprocmask(SIG_SETMASK, NULL, &set);
	CHECK(!sigismember(&set, SIGUSR2) && !sigismember(&set, SIGHUP));
	return done();
}
