/* TF: a SIGTRAP after each instruction, with the pc of the next. */
#include "instruction.h"

SNIPPET(stepped, "pushfq; orq $0x100, (%rsp); popfq\n"
                 "stepped_first: mov $3, %ecx\n"
                 "1: add %rcx, %rax\n"
                 "loop 1b\n"
                 "call 2f\n"
                 "jmp 3f\n"
                 "2: lea 8(%rax), %rax\n"
                 "ret\n"
                 "3: mov $4, %ecx; lea -64(%rsp), %rdi; rep stosb\n" /* each iteration is a step */
                 "pushfq; pop %rdx\n"
                 "mov $110, %eax; syscall\n"
                 "push %rbp; xor %ebp, %ebp; pop %rbp\n"
                 "movups -64(%rsp), %xmm0\n"
                 "pushfq; andq $~0x100, (%rsp); popfq\n"
                 "stepped_last: mov %rdx, %rax; ret");
/* A step onto an instruction that faults. */
SNIPPET(stepped_fault, "pushfq; orq $0x100, (%rsp); popfq; nop; mov (%rdi), %rax; nop; pushfq; andq $~0x100, "
                       "(%rsp); popfq; ret");
SNIPPET(set_by_handler, "int3; nop; nop; inc %eax; nop; ret");

static volatile unsigned steps, stop_after;
static uint64_t pcs[200], flags_seen[200];
static volatile int faulted;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	(void)signal;
	if (steps < 200) {
		pcs[steps] = (uint64_t)regs[REG_RIP];
		flags_seen[steps] = (uint64_t)info->si_code << 32 | (uint32_t)(regs[REG_EFL] & 0x100);
	}
	steps++;
	if (stop_after && steps == stop_after)
		regs[REG_EFL] &= ~0x100ll;
	else if (stop_after)
		regs[REG_EFL] |= 0x100; /* also when int3 brought us here */
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	(void)signal;
	(void)info;
	faulted++;
	printf("fault at %s with TF %lld\n", where((uint64_t)regs[REG_RIP]), regs[REG_EFL] >> 8 & 1);
	regs[REG_RIP] += 3; /* the mov */
}

static void show_steps(const char *name)
{
	printf("%s: %u steps\n", name, steps);
	for (unsigned n = 0; n < steps && n < 200; n++)
		printf("  %s code %llu TF %llu\n", where(pcs[n]), (unsigned long long)(flags_seen[n] >> 32),
		        (unsigned long long)(flags_seen[n] >> 8 & 1));
}

int main(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction segv = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &trap, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	NAME_SNIPPET(stepped);
	NAME_SNIPPET(stepped_fault);
	NAME_SNIPPET(set_by_handler);
	uint64_t pushed = call(stepped, 0, 0, 0, 0);
	show_steps("stepped");
	CHECK_EQ(pushed & 0x100, 0x100); /* the program set it, so pushf shows it */
	CHECK(steps > 25);
	for (unsigned n = 0; n < steps; n++)
		CHECK(pcs[n] >= ADDRESS(stepped) && pcs[n] < ADDRESS(stepped_end));
	steps = 0;
	call(stepped_fault, 16, 0, 0, 0);
	show_steps("stepped onto a fault");
	CHECK_EQ(faulted, 1);
	steps = 0;
	stop_after = 4;
	call(set_by_handler, 0, 0, 0, 0);
	show_steps("set by the handler");
	CHECK_EQ(steps, 4);
	for (unsigned n = 0; n < 4; n++)
		CHECK(pcs[n] >= ADDRESS(set_by_handler) && pcs[n] < ADDRESS(set_by_handler_end));
	return 0;
}
