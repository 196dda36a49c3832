/*
 * Endless recursion on the main stack, then on a thread's stack: SIGSEGV on the alternate stack at an address
 * near rsp; the program recovers with siglongjmp, several times.
 */
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

static __thread sigjmp_buf back;
static __thread volatile unsigned long calls;

static unsigned long __attribute__((noinline)) recurse(unsigned long n)
{
	volatile char frame[1000];
	frame[n % sizeof frame] = (char)n;
	calls++;
	return recurse(n + 1) + (unsigned char)frame[n % sizeof frame];
}

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	long distance = (long)info->si_addr - (long)m->gregs[REG_RSP];
	CHECK_EQ(sig, SIGSEGV);
	CHECK(distance > -4096 && distance < 4096);
	siglongjmp(back, info->si_code);
}

static void overflow(const char *where)
{
	stack_t stack = {.ss_size = 65536};
	stack.ss_sp = malloc(stack.ss_size);
	CHECK(!sigaltstack(&stack, NULL));
	for (int round = 0; round < 3; round++) {
		calls = 0;
		int code = sigsetjmp(back, 1);
		if (!code)
			recurse(1);
		CHECK(code == SEGV_MAPERR || code == SEGV_ACCERR);
		CHECK(calls > 400 && calls < 20000);
		printf("%s: overflow %d caught, code %d\n", where, round, code);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&stack, NULL));
	free(stack.ss_sp);
}

static void *thread(void *arg)
{
	(void)arg;
	overflow("thread");
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	pthread_attr_t attr;
	pthread_t id;

	CHECK(!sigaction(SIGSEGV, &action, NULL));
	overflow("main");
	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 1 << 20));
	CHECK(!pthread_create(&id, &attr, thread, NULL));
	CHECK(!pthread_join(id, NULL));
	overflow("main again");
	return done();
}
