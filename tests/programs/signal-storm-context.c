/*
 * Asynchronous signals at 10 kHz into a loop whose registers are known at each of its instructions: the
 * interrupted context must be the state between two of the program's instructions, never one in the middle of
 * a translated sequence, and with the program's pc.
 *
 * The loop adds 1 to rax, rbx, rcx, rsi, rdi, r8 in turn, so at instruction n the first n of them are one
 * ahead.
 */
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

extern char at_0[], at_1[], at_2[], at_3[], at_4[], at_5[], at_6[], at_7[], at_8[], at_9[], loop_end[];
static volatile unsigned inside, outside, wanted;
static unsigned seen[10];
static uint64_t memory_word;

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	char *pc = (char *)m->gregs[REG_RIP];
	char *const at[] = {at_0, at_1, at_2, at_3, at_4, at_5, at_6, at_7, at_8, at_9};

	(void)sig;
	CHECK_EQ(info->si_signo, SIGALRM);
	if (pc < at_0 || pc >= loop_end) {
		outside++;
		return;
	}
	int n = -1;
	for (int i = 0; i < 10; i++)
		if (pc == at[i])
			n = i;
	if (n < 0)
		fail("pc %+ld is not at an instruction of the loop", (long)(pc - at_0));
	seen[n]++;
	inside++;
	greg_t base = m->gregs[REG_R9] - (n > 7);
	const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RSI, REG_RDI, REG_R8};
	for (int i = 0; i < 6; i++)
		if (m->gregs[order[i]] != base + (n > i))
			fail("at instruction %d register %d is %lld, base %lld", n, i, m->gregs[order[i]],
			        base);
	if ((greg_t)memory_word != base + (n > 6))
		fail("at instruction %d memory is %lld, base %lld", n, (long long)memory_word, base);
	CHECK_EQ(m->gregs[REG_R10], 0x1122334455667788);
	CHECK_EQ(m->gregs[REG_R11], 0x99aabbccddeeff00);
	/* cmp at 8 leaves CF set while r9 is below the limit */
	if (n == 9 && inside <= wanted)
		CHECK_EQ(m->gregs[REG_EFL] & 1, (uint64_t)m->gregs[REG_R9] < (uint64_t)m->gregs[REG_RDX]);
	CHECK_EQ(m->gregs[REG_EFL] & 0x400, 0);
	if (inside >= wanted)
		m->gregs[REG_RDX] = m->gregs[REG_R9]; /* ends the loop soon */
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};

	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	for (int round = 0; round < 5; round++) {
		uint64_t rax = 0, rbx = 0, rcx = 0, rsi = 0, rdi = 0, limit = 1ull << 40;
		memory_word = 0;
		wanted = inside + 1000;
		asm volatile("movq $0x1122334455667788, %%r10\n"
		             "movq $0x99aabbccddeeff00, %%r11\n"
		             "xorl %%r8d, %%r8d\n"
		             "xorl %%r9d, %%r9d\n"
		             ".globl at_0, at_1, at_2, at_3, at_4, at_5, at_6, at_7, at_8, at_9, loop_end\n"
		             "at_0: addq $1, %%rax\n"
		             "at_1: incq %%rbx\n"
		             "at_2: leaq 1(%%rcx), %%rcx\n"
		             "at_3: addq $1, %%rsi\n"
		             "at_4: subq $-1, %%rdi\n"
		             "at_5: incq %%r8\n"
		             "at_6: incq %6\n"
		             "at_7: incq %%r9\n"
		             "at_8: cmpq %%rdx, %%r9\n"
		             "at_9: jb at_0\n"
		             "loop_end:\n"
		             : "+a"(rax), "+b"(rbx), "+c"(rcx), "+S"(rsi), "+D"(rdi), "+d"(limit),
		             "+m"(memory_word)
		             :
		             : "r8", "r9", "r10", "r11", "cc");
		CHECK_EQ(rax, rbx);
		CHECK_EQ(rax, rcx);
		CHECK_EQ(rax, rsi);
		CHECK_EQ(rax, rdi);
		CHECK_EQ(rax, memory_word);
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	return done();
}
