/*
 * What rt_sigreturn makes of the vector registers when a handler has edited its frame: without an image they
 * get their initial values, with a legacy image the upper halves do, and else those of the image.
 */
#include "check.h"
#include <signal.h>
#include <ucontext.h>

static enum { NONE, LEGACY, EDITED, HOW_MANY } how;

static void handler(int sig, siginfo_t *info, void *context)
{
	struct _libc_fpstate *fp = ((ucontext_t *)context)->uc_mcontext.fpregs;
	(void)sig;
	(void)info;
	if (how == NONE)
		((ucontext_t *)context)->uc_mcontext.fpregs = NULL;
	else if (how == LEGACY)
		memset((char *)fp + 464, 0, 48); /* what says that there is more than the legacy image */
	else
		fp->_xmm[9].element[0] = 4711;
	__asm__ volatile("pcmpeqb %%xmm9, %%xmm9; pcmpeqb %%xmm10, %%xmm10" : : : "xmm9", "xmm10");
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	uint64_t before[4] = {7, 9, 11, 13}, after[4];

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (how = NONE; how < HOW_MANY; how++) {
		__asm__ volatile("movdqu %1, %%xmm9\n\t"
		                 "mov %2, %%edi\n\t"
		                 "mov %3, %%esi\n\t"
		                 "mov %4, %%eax\n\t"
		                 "syscall\n\t"
		                 "movdqu %%xmm9, %0\n\t"
		                 "movdqu %%xmm10, 16+%0"
		                 : "=m"(after)
		                 : "m"(before), "r"(getpid()), "i"(SIGUSR1), "i"(SYS_kill)
		                 : "rax", "rcx", "r11", "rdi", "rsi", "xmm9", "xmm10", "memory");
		printf("%d: xmm9 %llu %llu\n", how, (unsigned long long)after[0], (unsigned long long)after[1]);
	}
	return done();
}
