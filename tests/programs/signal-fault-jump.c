/*
 * Jumps, calls and returns to non-canonical addresses. Where the fault is reported (at the jump on Intel, at
 * the target on AMD) is the CPU's affair; the program must see what it sees natively.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#define BAD 0x8000123456789000u

extern char jump_at[], call_at[], ret_at[];
static sigjmp_buf back;
static char *at;

asm(".globl jump_at, call_at, ret_at, do_jump, do_call, do_ret\n"
    "do_jump: movq %rsp, %rsi\n"
    "jump_at: jmp *%rdi\n"
    "do_call: movq %rsp, %rsi\n"
    "call_at: call *%rdi\n"
    "do_ret: pushq %rdi\n"
    "	movq %rsp, %rsi\n"
    "ret_at: ret\n");
void do_jump(uint64_t), do_call(uint64_t), do_ret(uint64_t);

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	uint64_t rip = (uint64_t)m->gregs[REG_RIP];

	printf("  signal %d code %d addr %s, rip %s, rsp %+lld, trap %lld error %lld\n", sig, info->si_code,
	        info->si_addr ? "set" : "0",
	        rip == (uint64_t)at ? "at the instruction"
	        : rip == BAD        ? "at the target"
	                            : "elsewhere",
	        m->gregs[REG_RSP] - m->gregs[REG_RSI], m->gregs[REG_TRAPNO], m->gregs[REG_ERR]);
	siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	CHECK(!sigaction(SIGBUS, &action, NULL));
	struct {
		const char *name;
		char *at;
		void (*run)(uint64_t);
	} kinds[] = {{"jump", jump_at, do_jump}, {"call", call_at, do_call}, {"return", ret_at, do_ret}};
	for (int i = 0; i < 3; i++) {
		puts(kinds[i].name);
		at = kinds[i].at;
		if (!sigsetjmp(back, 1))
			kinds[i].run(BAD);
	}
	return done();
}
