/* build: -Wno-unused-parameter */
/* cases: all read */
/*
 * Synchronous faults: the handler sees the exact pc, all registers, flags and ymm as the program had them at
 * the faulting instruction, and what the handler changes in the context is what the program goes on with.
 *
 * Each probe is one instruction between a load of the whole state from `in` and a store of the whole state to
 * `out`. With `read` it does not look at flags that nobody would have read, where the instruction overwrites them.
 */
#include "check.h"
#include <cpuid.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ucontext.h>

struct state {
	uint64_t gpr[16]; /* in the order of the instruction encoding: rax rcx rdx rbx rsp rbp rsi rdi r8..r15
	                   */
	uint64_t flags;
	uint8_t ymm[16][32];
};

struct state in, edit, out;
uint64_t saved_rsp;

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

static const int context_index[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

asm(".macro each_gpr op\n"
    "	\\op rax, 0\n	\\op rcx, 8\n	\\op rdx, 16\n	\\op rbx, 24\n"
    "	\\op rbp, 40\n	\\op rsi, 48\n	\\op rdi, 56\n"
    "	\\op r8, 64\n	\\op r9, 72\n	\\op r10, 80\n	\\op r11, 88\n"
    "	\\op r12, 96\n	\\op r13, 104\n	\\op r14, 112\n	\\op r15, 120\n"
    ".endm\n"
    ".macro load_gpr reg, at\n	movq in+\\at(%rip), %\\reg\n.endm\n"
    ".macro store_gpr reg, at\n	movq %\\reg, out+\\at(%rip)\n.endm\n"
    ".macro probe name, instruction:vararg\n"
    ".globl probe_\\name, \\name\\()_fault, \\name\\()_resume\n"
    ".type probe_\\name, @function\n"
    "probe_\\name:\n"
    "	pushq %rbx\n	pushq %rbp\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
    "	movq %rsp, saved_rsp(%rip)\n"
    "	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu in+136+32*\\n(%rip), %ymm\\n\n"
    "	.endr\n"
    "	pushq in+128(%rip)\n"
    "	popfq\n"
    "	movq in+32(%rip), %rsp\n"
    "	each_gpr load_gpr\n"
    "\\name\\()_fault:\n"
    "	\\instruction\n"
    "\\name\\()_resume:\n"
    "	each_gpr store_gpr\n"
    "	movq %rsp, out+32(%rip)\n"
    "	movq saved_rsp(%rip), %rsp\n"
    "	pushfq\n"
    "	popq out+128(%rip)\n"
    "	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu %ymm\\n, out+136+32*\\n(%rip)\n"
    "	.endr\n"
    "	vzeroupper\n"
    "	cld\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbp\n	popq %rbx\n"
    "	ret\n"
    ".endm\n");

/* Where the handler must find rip: at the instruction, after it, or at the value of a register (a jump that
 * landed). */
#define AT     (-1)
#define AFTER  (-2)
#define TARGET (-3) /* the word `landing` */
#define EITHER (-4) /* at it or after it: int1 in a virtual machine differs from int1 on the machine */

/* name, instruction, pc, rsp change before the fault, register that gets the bad address (or -1), offset of
 * the fault from it */
#define PROBES(X)                                                                                            \
	X(load, "movq (%rbx), %rax", AT, 0, RBX, 0)                                                          \
	X(load_byte, "movzbl 3(%rdi), %ecx", AT, 0, RDI, 3)                                                  \
	X(store, "movq %rax, 8(%rcx)", AT, 0, RCX, 8)                                                        \
	X(store_immediate, "movl $5, (%rdx)", AT, 0, RDX, 0)                                                 \
	X(add_to_memory, "addq %rdx, (%rsi)", AT, 0, RSI, 0)                                                 \
	X(add_from_memory, "addq (%rsi), %rdx", AT, 0, RSI, 0)                                               \
	X(adc_memory, "adcq %rdx, (%rsi)", AT, 0, RSI, 0)                                                    \
	X(not_memory, "notq (%r8)", AT, 0, R8, 0)                                                            \
	X(shift_memory, "shlq %cl, (%r8)", AT, 0, R8, 0)                                                     \
	X(exchange, "xchgq %rax, (%rdi)", AT, 0, RDI, 0)                                                     \
	X(lock_add, "lock addq %rax, (%rdi)", AT, 0, RDI, 0)                                                 \
	X(lock_xadd, "lock xaddq %rax, (%rdi)", AT, 0, RDI, 0)                                               \
	X(lock_cmpxchg, "lock cmpxchgq %rdx, (%rdi)", AT, 0, RDI, 0)                                         \
	X(cmp_memory, "cmpq %rdx, (%r15)", AT, 0, R15, 0)                                                    \
	X(test_memory, "testq %rdx, (%r14)", AT, 0, R14, 0)                                                  \
	X(mul_memory, "mulq (%r13)", AT, 0, R13, 0)                                                          \
	X(div_memory, "divq (%r12)", AT, 0, R12, 0)                                                          \
	X(setcc_memory, "setz (%r11)", AT, 0, R11, 0)                                                        \
	X(cmov_memory, "cmovoq (%r10), %rax", AT, 0, R10, 0)                                                 \
	X(index_load, "movq 16(%r9,%rbp,8), %rax", AT, 0, R9, 16)                                            \
	X(vector_load, "vmovdqu (%r9), %ymm3", AT, 0, R9, 0)                                                 \
	X(vector_store, "vmovdqu %ymm5, (%r9)", AT, 0, R9, 0)                                                \
	X(vector_operand, "vpaddd (%rax), %ymm1, %ymm2", AT, 0, RAX, 0)                                      \
	X(lods, "lodsq", AT, 0, RSI, 0)                                                                      \
	X(stos, "stosb", AT, 0, RDI, 0)                                                                      \
	X(scas, "scasl", AT, 0, RDI, 0)                                                                      \
	X(movs_read, "movsw", AT, 0, RSI, 0)                                                                 \
	X(bit_test, "btq %rcx, (%rdx)", AT, 0, RDX, 0)                                                       \
	X(push, "pushq %rax", AT, 0, RSP, -8)                                                                \
	X(push_memory, "pushq (%rax)", AT, 0, RAX, 0)                                                        \
	X(pop, "popq %rax", AT, 0, RSP, 0)                                                                   \
	X(pop_memory, "popq (%rbx)", AT, 0, RBX, 0)                                                          \
	X(pushf, "pushfq", AT, 0, RSP, -8)                                                                   \
	X(leave, "leave", AT, 0, RBP, 0)                                                                     \
	X(return_bad_stack, "ret", AT, 0, RSP, 0)                                                            \
	X(call_bad_stack, "call push_resume", AT, 0, RSP, -8)                                                \
	X(jump_through, "jmp *(%r10)", AT, 0, R10, 0)                                                        \
	X(call_through, "call *8(%r10)", AT, 0, R10, 8)                                                      \
	X(jump_to, "jmp *%r10", TARGET, 0, R10, 0)                                                           \
	X(call_to, "call *%r11", TARGET, -8, R11, 0)                                                         \
	X(return_to, "ret", TARGET, 8, -1, 0)                                                                \
	X(divide, "divq %rcx", AT, 0, -1, 0)                                                                 \
	X(divide_signed, "idivl %ecx", AT, 0, -1, 0)                                                         \
	X(undefined, "ud2", AT, 0, -1, 0)                                                                    \
	X(breakpoint, "int3", AFTER, 0, -1, 0)                                                               \
	X(breakpoint_long, ".byte 0xcd, 3", AFTER, 0, -1, 0)                                                 \
	X(debug_trap, ".byte 0xf1", EITHER, 0, -1, 0)                                                        \
	X(interrupt_0x40, "int $0x40", AT, 0, -1, 0)                                                         \
	X(halt, "hlt", AT, 0, -1, 0)                                                                         \
	X(cli, "cli", AT, 0, -1, 0)                                                                          \
	X(in_port, "inb %dx, %al", AT, 0, -1, 0)                                                             \
	X(out_port, "outb %al, $0x80", AT, 0, -1, 0)                                                         \
	X(move_from_cr0, "movq %cr0, %rax", AT, 0, -1, 0)                                                    \
	X(move_to_cr3, "movq %rax, %cr3", AT, 0, -1, 0)                                                      \
	X(move_from_dr7, "movq %dr7, %rax", AT, 0, -1, 0)                                                    \
	X(rdmsr, "rdmsr", AT, 0, -1, 0)                                                                      \
	X(wrmsr, "wrmsr", AT, 0, -1, 0)                                                                      \
	X(wbinvd, "wbinvd", AT, 0, -1, 0)                                                                    \
	X(lgdt, "lgdt (%rsp)", AT, 0, -1, 0)                                                                 \
	X(clts, "clts", AT, 0, -1, 0)                                                                        \
	X(invlpg, "invlpg (%rsp)", AT, 0, -1, 0)                                                             \
	X(swapgs, "swapgs", AT, 0, -1, 0)                                                                    \
	X(sysret, "sysretq", AT, 0, -1, 0)                                                                   \
	X(invalid_opcode, ".byte 0x06", AT, 0, -1, 0)                                                        \
	X(invalid_lock, ".byte 0xf0, 0x90", AT, 0, -1, 0)                                                    \
	X(misaligned, "movaps 1(%rsp), %xmm0", AT, 0, -1, 0)

#define ASSEMBLE(name, instruction, pc, rsp, reg, offset) asm("probe " #name ", " instruction);
PROBES(ASSEMBLE)

#define DECLARE(name, instruction, pc, rsp, reg, offset)                                                     \
	void probe_##name(void);                                                                             \
	extern char name##_fault[], name##_resume[];
PROBES(DECLARE)

static const struct probe {
	const char *name;
	void (*run)(void);
	char *fault, *resume;
	int pc, rsp_change, reg, offset;
} probes[] = {
#define ENTRY(name, instruction, pc, rsp, reg, offset)                                                       \
	{#name, probe_##name, name##_fault, name##_resume, pc, rsp, reg, offset},
        PROBES(ENTRY)};

#define STATUS_FLAGS 0xcd5u /* CF PF AF ZF SF DF OF */
#define DIRECTION    0x400u

/* Instructions that do not read the flags and give new ones. */
static const char *const overwriting[] = {"add_to_memory", "add_from_memory", "lock_add", "lock_xadd",
        "lock_cmpxchg", "cmp_memory", "test_memory", "mul_memory", "scas"};
static uint64_t looked_at = STATUS_FLAGS;
static bool only_read;

static bool overwrites_flags(const char *name)
{
	for (unsigned i = 0; i < sizeof overwriting / sizeof *overwriting; i++)
		if (!strcmp(overwriting[i], name))
			return true;
	return false;
}

static const struct probe *current;
static uint64_t landing, bad_address;
static int handled;
static unsigned ymm_high_offset;
static uint64_t random_state = 0x123456789abcdefu;

static uint8_t *ymm_low(mcontext_t *m, int n)
{
	return (uint8_t *)m->fpregs + 160 + 16 * n;
}

static uint8_t *ymm_high(mcontext_t *m, int n)
{
	return (uint8_t *)m->fpregs + ymm_high_offset + 16 * n;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	uint32_t *software = (uint32_t *)((char *)m->fpregs + 464);
	uint64_t rip = (uint64_t)m->gregs[REG_RIP];
	const char *where = "other";

	handled++;
	uint64_t expected = current->pc == AT      ? (uint64_t)current->fault
	                    : current->pc == AFTER ? (uint64_t)current->resume
	                    : current->pc == EITHER
	                            ? (rip == (uint64_t)current->fault ? rip : (uint64_t)current->resume)
	                            : landing;
	if (rip != expected)
		fail("%s: rip is %#llx, expected %#llx", current->name, (long long)rip, (long long)expected);
	for (int i = 0; i < 16; i++) {
		uint64_t want = in.gpr[i] + (uint64_t)(i == RSP ? current->rsp_change : 0);
		if ((uint64_t)m->gregs[context_index[i]] != want)
			fail("%s: register %d is %#llx, expected %#llx", current->name, i,
			        m->gregs[context_index[i]], (long long)want);
	}
	if (((uint64_t)m->gregs[REG_EFL] & looked_at) != (in.flags & looked_at))
		fail("%s: flags are %#llx, expected %#llx", current->name, m->gregs[REG_EFL],
		        (long long)in.flags);
	CHECK_EQ(software[0], 0x46505853); /* FP_XSTATE_MAGIC1 */
	CHECK_EQ(*(uint32_t *)((char *)m->fpregs + software[4]), 0x46505845);
	for (int i = 0; i < 16; i++)
		if (memcmp(ymm_low(m, i), in.ymm[i], 16) || memcmp(ymm_high(m, i), in.ymm[i] + 16, 16))
			fail("%s: ymm%d is wrong", current->name, i);
	if (current->pc == TARGET && current->rsp_change == -8)
		CHECK_EQ(*(uint64_t *)m->gregs[REG_RSP], current->resume);

	if (info->si_addr == 0)
		where = "0";
	else if ((uint64_t)info->si_addr == rip && current->pc != TARGET)
		where = "pc";
	else if ((uint64_t)info->si_addr == bad_address + (uint64_t)current->offset)
		where = "bad";
	printf("  signal %d code %d addr %s trap %lld error %#llx flags %#llx%s\n", sig, info->si_code, where,
	        m->gregs[REG_TRAPNO], m->gregs[REG_ERR], m->gregs[REG_EFL] & (greg_t)(looked_at | ~(uint64_t)STATUS_FLAGS),
	        rip == (uint64_t)current->resume ? " after" : "");

	for (int i = 0; i < 16; i++)
		m->gregs[context_index[i]] = (greg_t)edit.gpr[i];
	m->gregs[REG_EFL] = (greg_t)edit.flags;
	m->gregs[REG_RIP] = (greg_t)current->resume;
	for (int i = 0; i < 16; i++) {
		memcpy(ymm_low(m, i), edit.ymm[i], 16);
		memcpy(ymm_high(m, i), edit.ymm[i] + 16, 16);
	}
	*(uint64_t *)((char *)m->fpregs + 512) |= 7;
}

static void randomize(struct state *s, uint64_t rsp)
{
	for (int i = 0; i < 16; i++)
		s->gpr[i] = next_random(&random_state);
	s->gpr[RSP] = rsp;
	s->flags = (next_random(&random_state) & STATUS_FLAGS) | 0x202;
	for (unsigned i = 0; i < sizeof s->ymm; i++)
		((uint8_t *)s->ymm)[i] = (uint8_t)(next_random(&random_state) >> 11);
}

static void run(const struct probe *probe, uint64_t address, const char *kind)
{
	static uint64_t scratch_stack[2][64] __attribute__((aligned(64)));

	current = probe;
	bad_address = address;
	looked_at = only_read && overwrites_flags(probe->name) ? DIRECTION : STATUS_FLAGS;
	for (int round = 0; round < 3; round++) {
		randomize(&in, (uint64_t)&scratch_stack[0][32]);
		randomize(&edit, (uint64_t)&scratch_stack[1][32]);
		landing = address;
		if (probe->pc == TARGET && probe->reg < 0)
			scratch_stack[0][32] = address; /* ret */
		if (probe->reg >= 0)
			in.gpr[probe->reg] = address;
		/* Operands beside the one under test must not fault or move it. */
		if (!strcmp(probe->name, "index_load"))
			in.gpr[RBP] = 0;
		if (!strcmp(probe->name, "bit_test"))
			in.gpr[RCX] = 5;
		if (!strncmp(probe->name, "divide", 6))
			in.gpr[RCX] = 0;
		if (!strcmp(probe->name, "movs_read"))
			in.gpr[RDI] = (uint64_t)&scratch_stack[0][40];
		handled = 0;
		if (round == 0)
			printf("%s%s\n", probe->name, kind);
		fflush(stdout);
		probe->run();
		if (handled != 1)
			fail("%s: %d signals", probe->name, handled);
		for (int i = 0; i < 16; i++)
			if (out.gpr[i] != edit.gpr[i])
				fail("%s: after the handler register %d is %#llx, expected %#llx",
				        probe->name, i, (long long)out.gpr[i], (long long)edit.gpr[i]);
		if ((out.flags & STATUS_FLAGS) != (edit.flags & STATUS_FLAGS))
			fail("%s: flags after the handler: %#llx, expected %#llx", probe->name,
			        (long long)out.flags, (long long)edit.flags);
		if (memcmp(out.ymm, edit.ymm, sizeof out.ymm))
			fail("%s: ymm after the handler", probe->name);
	}
}

int main(int argc, char **argv)
{
	static char alternate[65536];
	unsigned a, b, c, d;

	only_read = argc > 1 && !strcmp(argv[1], "read");

	if (!__builtin_cpu_supports("avx"))
		skip("no AVX");
	CHECK(__get_cpuid_count(0xd, 2, &a, &b, &c, &d));
	ymm_high_offset = b;

	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
	CHECK(!sigaltstack(&stack, NULL));
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	for (unsigned i = 0; i < 5; i++)
		CHECK(!sigaction((int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}[i], &action, NULL));

	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	char *hole = pages + 4096, *none = pages + 2 * 4096;
	CHECK(!munmap(hole, 4096));
	CHECK(!mprotect(none, 4096, PROT_NONE));

	for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++) {
		const struct probe *probe = &probes[i];
		if (probe->reg < 0 && probe->pc != TARGET) {
			run(probe, 0, "");
			continue;
		}
		run(probe, (uint64_t)hole + 64, ", unmapped");
		run(probe, (uint64_t)none + 64, ", no access");
		if (probe->pc != TARGET)
			run(probe, 0x8000123456789000u, ", non-canonical");
	}
	return done();
}
