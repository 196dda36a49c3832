/*
 * Handlers interrupted by handlers, several deep, by faults and by sent signals; each returns to the one
 * below with its registers intact.
 */
#include "check.h"
#include <signal.h>
#include <ucontext.h>

static volatile int depth, deepest;
static volatile uint64_t order;

static void step(int what)
{
	order = mix(order, (uint64_t)what);
	printf("%*s%s %d\n", 2 * depth, "", what > 0 ? "enter" : "leave", what > 0 ? what : -what);
}

static void enter(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	step(sig);
}

static void leave(int sig)
{
	step(-sig);
	depth--;
}

static void on_segv(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	(void)info;
	enter(sig);
	raise(SIGUSR2);
	m->gregs[REG_RIP] += 2; /* movb (%rax), %al */
	m->gregs[REG_RAX] = 77;
	leave(sig);
}

static uint64_t fault(void)
{
	uint64_t rax = 8;
	asm volatile("movb (%%rax), %%al" : "+a"(rax));
	return rax;
}

static void on_usr1(int sig)
{
	enter(sig);
	CHECK_EQ(fault(), 77);
	raise(SIGUSR2);
	leave(sig);
}

static void on_usr2(int sig)
{
	enter(sig);
	CHECK_EQ(compute(7, 1000), compute(7, 1000));
	leave(sig);
}

static void on_rt(int sig)
{
	enter(sig);
	if (sig < SIGRTMIN + 20)
		raise(sig + 1);
	leave(sig);
}

static void on_recursive(int sig)
{
	static int count;
	enter(sig);
	if (++count < 50)
		raise(sig);
	leave(sig);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	action = (struct sigaction){.sa_handler = on_usr1};
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	action.sa_handler = on_usr2;
	CHECK(!sigaction(SIGUSR2, &action, NULL));
	action.sa_handler = on_rt;
	for (int sig = SIGRTMIN; sig <= SIGRTMIN + 20; sig++)
		CHECK(!sigaction(sig, &action, NULL));
	action = (struct sigaction){.sa_handler = on_recursive, .sa_flags = SA_NODEFER};
	CHECK(!sigaction(SIGHUP, &action, NULL));

	raise(SIGUSR1);
	raise(SIGRTMIN);
	CHECK_EQ(deepest, 21);
	raise(SIGHUP);
	CHECK_EQ(deepest, 50);
	CHECK_EQ(depth, 0);
	printf("order %llx\n", (long long)order);

	/* With all of them blocked and pending, the kernel nests the frames before the first handler runs. */
	sigset_t set, old;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	for (int sig = SIGRTMIN + 20; sig >= SIGRTMIN + 15; sig--)
		raise(sig);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return done();
}
