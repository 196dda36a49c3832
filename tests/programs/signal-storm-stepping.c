/*
 * A program that steps through itself (TF) while a timer interrupts it: there is one trap behind every
 * instruction, neither one too many nor one too few, wherever the other signal comes, and TF stays set.
 */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static char buffer[4096] __attribute__((aligned(64)));
static volatile unsigned long steps, digest, alarms;

/* Loads, stores, strings, locked and pushed things, x87 stores that pop, branches of all kinds. */
void stepped(char *memory, void *target);
__asm__(".pushsection .text\n"
        "stepped: push %rbx; push %rbp; mov %rdi, %rbx; mov %rsi, %rbp\n"
        "pushfq; orq $0x100, (%rsp); popfq\n"
        "mov (%rbx), %rax; add %rax, 8(%rbx); inc %rax; mov %rax, (%rbx)\n"
        "lock addq $3, 16(%rbx); lock xaddl %eax, 24(%rbx)\n"
        "fldpi; fld1; fstpl 32(%rbx); fstpt 48(%rbx)\n"
        "lea 64(%rbx), %rdi; mov $5, %ecx; rep stosb\n"
        "lea 64(%rbx), %rsi; lea 128(%rbx), %rdi; mov $3, %ecx; rep movsq\n"
        "lea 64(%rbx), %rdi; mov $7, %ecx; repne scasb\n"
        "call 1f; jmp 2f\n"
        "1: pushq 8(%rbx); pop %rcx; ret\n"
        "2: call *%rbp\n"
        "pushfq; pop %rdx; and $0x100, %edx; mov %rdx, 200(%rbx)\n"
        "movups (%rbx), %xmm0; movups %xmm0, 256(%rbx); cmpq $0, 300(%rbx); jne 3f; nop\n"
        "3: pushfq; andq $~0x100, (%rsp); popfq\n"
        "pop %rbp; pop %rbx; ret\n"
        ".popsection");
void target(void);
__asm__(".pushsection .text\ntarget: lea 1(%rax), %rax; ret\n.popsection");

static void on_trap(int signal, siginfo_t *info, void *context)
{
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	(void)signal;
	CHECK(info->si_code == TRAP_TRACE && info->si_addr == (void *)pc);
	steps++;
	digest = digest * 31 + (pc - (uint64_t)stepped);
}

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void once(void)
{
	memset(buffer, 1, sizeof buffer);
	steps = digest = 0;
	stepped(buffer, (void *)target);
	CHECK_EQ(*(uint64_t *)(buffer + 200), 0x100);
}

int main(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
	unsigned long steps_alone, digest_alone;

	CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
	CHECK(sigaction(SIGALRM, &alarm_action, NULL) == 0);
	once();
	steps_alone = steps;
	digest_alone = digest;
	printf("%lu steps\n", steps_alone);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	for (unsigned round = 0; round < 80 || alarms < 80; round++) {
		once();
		if (steps != steps_alone || digest != digest_alone)
			fail("round %u: %lu steps with digest %lx, alone %lu with %lx", round, steps, digest,
			        steps_alone, digest_alone);
	}
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	puts("the same steps all the time");
	return 0;
}
