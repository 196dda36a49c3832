/* The 128 bytes below rsp belong to the program: no call, no branch, no fault and no signal may change them.
 */
#include "instruction.h"
#include <sys/time.h>

/* Fills the red zone, does many branches of all kinds without the stack, and sums it up again. rdi: seed,
 * rsi: rounds */
SNIPPET(leaf, "mov %rdi, %rax; mov $16, %ecx\n"
              "1: neg %rcx; mov %rax, (%rsp,%rcx,8); neg %rcx; add $7, %rax; loop 1b\n"
              "2: lea 3f(%rip), %rdx; jmp *%rdx; nop; 3: test $1, %sil; jz 4f; nop; 4: dec %rsi; jnz 2b\n"
              "xor %eax, %eax; mov $16, %ecx\n"
              "5: neg %rcx; add (%rsp,%rcx,8), %rax; neg %rcx; loop 5b\n"
              "ret");
/* The same with instructions that a translator may have to emulate. */
SNIPPET(leaf_special,
        "mov %rdi, -8(%rsp); mov %rdi, -128(%rsp); mov %rdi, -64(%rsp)\n"
        "mov $110, %eax; syscall; rdtsc; push %rbx; pop %rbx; xor %eax, %eax; mov %rdi, -8(%rsp)\n"
        "mov %rbx, %r8; cpuid; mov %r8, %rbx; bt %rdi, -64(%rsp)\n"
        "mov -8(%rsp), %rax; add -128(%rsp), %rax; add -64(%rsp), %rax; ret");
SNIPPET(leaf_fault, "mov %rdi, -8(%rsp); mov %rdi, -120(%rsp); mov (%rsi), %eax; mov -8(%rsp), %rax; add "
                    "-120(%rsp), %rax; ret");

static volatile unsigned long ticks, handled;

static void on_tick(int signal)
{
	(void)signal;
	volatile char noise[256];
	memset((void *)noise, 0xee, sizeof noise);
	ticks++;
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	volatile char noise[256];
	memset((void *)noise, 0xdd, sizeof noise);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* mov (%rsi), %eax */
	handled++;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART}; /* on this very stack */
	struct sigaction segv = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
	sigaction(SIGALRM, &tick, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL);
	for (uint64_t n = 0; n < 2000 || (ticks < 50 && n < 2000000); n++) {
		CHECK_EQ(call(leaf, n * 1000, 200, 0, 0), 16 * n * 1000 + 7 * 120);
		CHECK_EQ(call(leaf_special, n, 0, 0, 0), 3 * n);
		CHECK_EQ(call(leaf_fault, n, 8, 0, 0), 2 * n);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	CHECK(ticks > 0 && handled >= 2000);
	printf("the red zone was kept\n");
	return 0;
}
