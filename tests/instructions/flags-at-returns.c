/*
 * Status flags behind the loads that come between the instruction that has set them and the one that reads
 * them: pops, returns, loads of data. While recording each of these is compared, which has flags of its own,
 * and the program's come back in one way or another (src/translate/flags.h). They are looked at behind the
 * return, at every single step, at faults in the middle, and with signals in between.
 */
#include "instruction.h"
#include <sys/time.h>

/* The arguments of a snippet, on a stack of its own, and what it left behind its return. */
struct run {
	uint64_t code, rsp, flags, rdi, rsi, rdx, flags_after, rsp_after, rax, rbx, rbp, r12;
};
extern const char landed[] __attribute__((visibility("hidden")));
void start(struct run *run) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".globl start, landed\n.hidden start, landed\n"
        "start: push %rbx; push %rbp; push %r12; push %r15\n"
        "mov %rsp, own_stack(%rip); mov %rdi, current(%rip); mov %rdi, %r15\n"
        "mov (%r15), %r10; mov 32(%r15), %rsi; mov 40(%r15), %rdx; mov 24(%r15), %rdi; mov $0x76, %eax\n"
        "mov $0x77, %ecx; mov $0x78, %r11d; mov $0x79, %ebx; mov $0x7a, %ebp; mov $0x7b, %r12d\n"
        "push 16(%r15); popfq; mov 8(%r15), %rsp; jmp *%r10\n"
        "landed: mov current(%rip), %r15; mov %rsp, 56(%r15); mov own_stack(%rip), %rsp; pushfq; pop "
        "48(%r15)\n"
        "mov %rax, 64(%r15); mov %rbx, 72(%r15); mov %rbp, 80(%r15); mov %r12, 88(%r15)\n"
        "pop %r15; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".popsection\n"
        ".pushsection .data\nown_stack: .quad 0\ncurrent: .quad 0\n.popsection\n");

SNIPPET(add_pops, "add $24, %rsp; pop %rbx; pop %rbp; pop %r12; ret");
SNIPPET(add_only, "add $8, %rsp; ret");
SNIPPET(add_much, "add $0x120, %rsp; mov $5, %eax; pop %rbx; lea (%rbx,%rdi), %rax; pop %rbp; ret $16");
SNIPPET(sub_pops, "sub $-24, %rsp; pop %rbx; pop %rbp; ret");
SNIPPET(zero_pops, "xor %eax, %eax; pop %rbx; pop %rbp; pop %r12; ret");
SNIPPET(compare_pops, "cmp %rsi, %rdi; pop %rbx; pop %rbp; ret");
SNIPPET(popped_over, "cmp %rbx, %rdi; pop %rbx; pop %rbp; ret");
SNIPPET(and_load, "and %rsi, %rdi; mov (%rdx), %rax; pop %rbx; ret");
SNIPPET(or_load32, "or %esi, %edi; mov (%rdx), %rdi; mov 8(%rdx), %rax; ret");
SNIPPET(sub_loads, "sub $7, %rdi; mov (%rdx), %rax; mov 8(%rdx), %rbx; mov 16(%rdx), %r12; ret");
SNIPPET(add_load32, "add $0x7fffffff, %edi; mov (%rdx), %rax; mov %rdi, %rbx; ret");
SNIPPET(sub_negative, "sub $-128, %rdi; mov (%rdx), %eax; mov %rdi, %rbx; ret");
SNIPPET(compare_memory, "cmpl $5, (%rdx); mov 8(%rdx), %rdx; setc %al; mov 0x18(%rsp), %rbx; ret");
SNIPPET(test_memory, "testb $0x81, 3(%rdx); mov 8(%rdx), %rax; ret");
SNIPPET(over_address, "cmp %rdx, %rdi; mov (%rdx), %rdx; mov %rdx, %rax; ret");
SNIPPET(compare_rcx, "cmp %rcx, %rdi; ret");
SNIPPET(or_r11, "or %rdi, %r11; pop %rbx; ret");
SNIPPET(shift_memory, "or %esi, %edi; shll (%rdx); ret");
SNIPPET(increment_memory, "cmp %rsi, %rdi; incl 4(%rdx); mov 8(%rdx), %rax; ret");
SNIPPET(conditional_load, "cmp %rsi, %rdi; cmovl (%rdx), %rax; pop %rbx; ret");
SNIPPET(left, "lea 8(%rsp), %rbp; cmp %rsi, %rdi; leave; ret");
SNIPPET(taken_along, "test %rsi, %rdi; jmp 1f\n1: pop %rbx; pop %rbp; ret");
SNIPPET(indirect, "cmp %rsi, %rdi; jmp *(%rsp)");

#define CASE(name, offset)                                                                                   \
	{                                                                                                    \
		#name, name, name##_end, offset                                                              \
	}
static const struct snippet {
	const char *name, *code, *end;
	unsigned return_at; /* bytes from rsp to the return address */
} snippets[] = {CASE(add_pops, 48), CASE(add_only, 8), CASE(add_much, 0x130), CASE(sub_pops, 40),
        CASE(zero_pops, 24), CASE(compare_pops, 16), CASE(popped_over, 16), CASE(and_load, 8),
        CASE(or_load32, 0), CASE(sub_loads, 0), CASE(add_load32, 0), CASE(sub_negative, 0),
        CASE(compare_memory, 0), CASE(test_memory, 0), CASE(over_address, 0), CASE(compare_rcx, 0),
        CASE(or_r11, 8), CASE(shift_memory, 0), CASE(increment_memory, 0), CASE(conditional_load, 8),
        CASE(left, 16), CASE(taken_along, 16), CASE(indirect, 0)};
enum { SNIPPETS = sizeof snippets / sizeof *snippets, STATUS = 0x8d5, TRAP = 0x100 };

static const uint64_t operands[][2] = {{0, 0}, {1, 2}, {7, 7}, {0x8000000000000000, 1},
        {0x7fffffff, 0xffffffff80000000}, {0xffffffffffffffff, 0x10}};

static unsigned char *stack, *data;
static uint64_t steps_digest;
static unsigned step_count;
static sigjmp_buf back;
static volatile sig_atomic_t ticks;

static void add_to_digest(uint64_t value)
{
	steps_digest = (steps_digest ^ value) * 0x100000001b3;
}

static void on_step(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)registers[REG_RIP];

	(void)number;
	(void)info;
	for (unsigned i = 0; i < SNIPPETS; i++) {
		if (pc - ADDRESS(snippets[i].code) >= (uint64_t)(snippets[i].end - snippets[i].code))
			continue;
		add_to_digest(pc - ADDRESS(snippets[i].code));
		add_to_digest((uint64_t)registers[REG_EFL] & STATUS);
		add_to_digest((uint64_t)registers[REG_RSP] - ADDRESS(stack));
		step_count++;
	}
	if (pc == ADDRESS(landed))
		registers[REG_EFL] &= ~(greg_t)TRAP;
}

static void on_missing(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	printf("  fault at %s of %s: flags %llx rsp %s rbx %llx rbp %s rcx %llx r11 %llx\n",
	        where((uint64_t)registers[REG_RIP]), where(ADDRESS(info->si_addr)),
	        (unsigned long long)registers[REG_EFL] & STATUS, where((uint64_t)registers[REG_RSP]),
	        (unsigned long long)registers[REG_RBX], where((uint64_t)registers[REG_RBP]),
	        (unsigned long long)registers[REG_RCX], (unsigned long long)registers[REG_R11]);
	siglongjmp(back, 1);
}

static void on_tick(int number)
{
	(void)number;
	ticks = ticks + 1;
}

static void prepare(struct run *run, const struct snippet *snippet, unsigned char *at, const uint64_t *operand)
{
	*run = (struct run){.code = ADDRESS(snippet->code),
	        .rsp = ADDRESS(at),
	        .flags = 0x246,
	        .rdi = operand[0],
	        .rsi = operand[1],
	        .rdx = ADDRESS(data)};
	for (unsigned i = 0; i < 64 && at + 8 * i < stack + PAGE; i++)
		memcpy(at + 8 * i, &(uint64_t){0x1234567890 + i}, 8);
	if (at + snippet->return_at < stack + PAGE)
		memcpy(at + snippet->return_at, &(uint64_t){ADDRESS(landed)}, 8);
	for (unsigned i = 0; i < 8; i++)
		memcpy(data + 8 * i, &(uint64_t){0x8000000000000004 + i}, 8);
}

static void add_result(const struct run *run)
{
	add_to_digest(run->flags_after & STATUS);
	add_to_digest(run->rsp_after - ADDRESS(stack));
	add_to_digest(run->rax);
	add_to_digest(run->rbx);
	add_to_digest(run->r12);
}

/* At some places of the stack, with all operands: what is left behind the return. */
static uint64_t run_all(const struct snippet *snippet, uint64_t flags, unsigned places)
{
	struct run run;

	steps_digest = 0xcbf29ce484222325;
	for (unsigned place = 0; place < places; place++) {
		for (unsigned i = 0; i < sizeof operands / sizeof *operands; i++) {
			prepare(&run, snippet, stack + 512 + 8 * place, operands[i]);
			run.flags |= flags;
			start(&run);
			add_result(&run);
		}
	}
	return steps_digest;
}

/* The stack ends so many words behind rsp. */
static void run_to_the_end(const struct snippet *snippet)
{
	struct run run;

	for (unsigned words = 0; words * 8 <= snippet->return_at && words < 8; words++) {
		prepare(&run, snippet, stack + PAGE - 8 * words, operands[1]);
		if (sigsetjmp(back, 1) == 0)
			start(&run);
	}
	prepare(&run, snippet, stack + 1024, operands[4]);
	run.rdx = ADDRESS(data) + PAGE - 4; /* the first load crosses into what is not there */
	if (sigsetjmp(back, 1) == 0)
		start(&run);
}

int main(void)
{
	static char other[64 << 10];
	stack = guarded("stack", 1);
	data = guarded("data", 1);
	for (unsigned i = 0; i < SNIPPETS; i++)
		name_range(snippets[i].name, snippets[i].code, (size_t)(snippets[i].end - snippets[i].code));
	sigaltstack(&(stack_t){.ss_sp = other, .ss_size = sizeof other}, NULL);
	sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK},
	        NULL);
	sigaction(SIGSEGV,
	        &(struct sigaction){.sa_sigaction = on_missing, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_tick, .sa_flags = SA_ONSTACK}, NULL);
	for (unsigned i = 0; i < SNIPPETS; i++) {
		uint64_t quiet = run_all(&snippets[i], 0, 16);

		step_count = 0;
		printf("%s: %016llx", snippets[i].name, (unsigned long long)quiet);
		printf(" stepped %016llx", (unsigned long long)run_all(&snippets[i], TRAP, 1));
		printf(" %u steps\n", step_count);
		run_to_the_end(&snippets[i]);
		setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
		for (unsigned round = 0; round < 3; round++)
			CHECK_EQ(run_all(&snippets[i], 0, 16), quiet);
		setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	}
	return 0;
}
