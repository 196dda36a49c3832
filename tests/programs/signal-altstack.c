/*
 * sigaltstack: what the program sets is what it reads back; handlers with SA_ONSTACK run there and say so;
 * the stack cannot be changed while in use; SS_DISABLE, too small a stack, SS_AUTODISARM; the context's
 * uc_stack.
 */
#include "check.h"
#include <signal.h>
#include <ucontext.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static char one[65536] __attribute__((aligned(64))), two[65536] __attribute__((aligned(64)));
static volatile int phase;

static int on_stack(const void *address, const char *stack)
{
	return (const char *)address >= stack && (const char *)address < stack + 65536;
}

static void inner(int sig)
{
	char local;
	(void)sig;
	printf("inner: on one %d, on two %d\n", on_stack(&local, one), on_stack(&local, two));
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	stack_t now, other = {.ss_sp = two, .ss_size = sizeof two};
	char local;

	(void)sig;
	(void)info;
	CHECK(!sigaltstack(NULL, &now));
	printf("phase %d: on one %d, on two %d, flags %#x, size %zu, context flags %#x size %zu\n", phase,
	        on_stack(&local, one), on_stack(&local, two), now.ss_flags, now.ss_size, u->uc_stack.ss_flags,
	        u->uc_stack.ss_size);
	switch (phase) {
	case 1:
		CHECK(now.ss_sp == one);
		CHECK_ERRNO(sigaltstack(&other, NULL), EPERM);
		CHECK_EQ(((uint64_t)context & 15), 0);
		raise(SIGUSR2); /* on the same stack, below this frame */
		break;
	case 2:
		CHECK(!sigaltstack(&other, NULL)); /* not on it: allowed; undone by the return */
		break;
	case 3:
		CHECK_EQ(now.ss_flags, SS_DISABLE); /* SS_AUTODISARM */
		CHECK(!sigaltstack(&other, NULL));
		raise(SIGUSR2);
		break;
	case 4:
		u->uc_stack.ss_sp = two; /* what the frame says is restored by sigreturn */
		u->uc_stack.ss_size = 32768;
		break;
	}
}

static void show(const char *what)
{
	stack_t now;
	CHECK(!sigaltstack(NULL, &now));
	printf("%s: %s, size %zu, flags %#x\n", what,
	        now.ss_sp == one    ? "one"
	        : now.ss_sp == two  ? "two"
	        : now.ss_sp == NULL ? "none"
	                            : "other",
	        now.ss_size, now.ss_flags);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = one, .ss_size = sizeof one}, old;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	action = (struct sigaction){.sa_handler = inner, .sa_flags = SA_ONSTACK};
	CHECK(!sigaction(SIGUSR2, &action, NULL));
	show("at the start");
	phase = 0;
	raise(SIGUSR1); /* SA_ONSTACK without a stack: the normal one */

	CHECK(!sigaltstack(&stack, &old));
	CHECK_EQ(old.ss_flags, SS_DISABLE);
	show("set");
	phase = 1;
	raise(SIGUSR1);

	action = (struct sigaction){.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	phase = 2;
	raise(SIGUSR1);
	show("changed in a handler on the normal stack");
	CHECK(!sigaltstack(&stack, NULL));

	action.sa_flags |= SA_ONSTACK;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	stack.ss_flags = (int)SS_AUTODISARM;
	CHECK(!sigaltstack(&stack, NULL));
	show("autodisarm");
	phase = 3;
	raise(SIGUSR1);
	show("after autodisarm");

	stack.ss_flags = 0;
	CHECK(!sigaltstack(&stack, NULL));
	phase = 4;
	raise(SIGUSR1);
	show("after the frame was edited");

	stack.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&stack, NULL));
	show("disabled");
	phase = 5;
	raise(SIGUSR1);
	stack.ss_flags = 0;
	stack.ss_size = 100;
	CHECK_ERRNO(sigaltstack(&stack, NULL), ENOMEM);
	stack.ss_size = sizeof one;
	stack.ss_flags = 0x40;
	CHECK_ERRNO(sigaltstack(&stack, NULL), EINVAL);
	CHECK_ERRNO(syscall(SYS_sigaltstack, 8, NULL), EFAULT);
	return done();
}
