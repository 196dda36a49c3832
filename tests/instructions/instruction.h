/*
 * What the tests of single instructions share: snippets of assembly with a name, a way to run one that may
 * fault, and a printout of the fault in which addresses are offsets from names, so that it is the same in
 * every run.
 */
#ifndef INSTRUCTION_H
#define INSTRUCTION_H

#include "../programs/check.h"
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>
#include <sys/mman.h>

#define PAGE 4096ul

/*
 * A function in assembly: SNIPPET(name, "instructions") defines `const char name[], name_end[]`. Arguments
 * come in rdi, rsi, rdx, rcx; the result goes to rax. It must end with ret and keep the registers a function
 * keeps.
 */
#define SNIPPET(name, text)                                                                                  \
	extern const char name[] __attribute__((visibility("hidden")));                                      \
	extern const char name##_end[] __attribute__((visibility("hidden")));                                \
	__asm__(".pushsection .text\n.hidden " #name ", " #name "_end\n.globl " #name ", " #name             \
	        "_end\n" #name ":\n" text "\n" #name "_end:\n.popsection\n")

static inline uint64_t call(const void *code, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return ((uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t))(uintptr_t)code)(a, b, c, d);
}

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

/* ---- names for addresses
 * ------------------------------------------------------------------------------------- */

static struct {
	const char *name;
	uint64_t start, size;
} ranges[32];
static unsigned range_count;

static inline void name_range(const char *name, const void *start, size_t size)
{
	CHECK(range_count < sizeof ranges / sizeof *ranges);
	ranges[range_count].name = name;
	ranges[range_count].start = ADDRESS(start);
	ranges[range_count++].size = size;
}
#define NAME_SNIPPET(name) name_range(#name, name, (size_t)(name##_end - name))

static inline const char *where(uint64_t address)
{
	static char text[8][64];
	static unsigned next;
	char *out = text[next++ % 8];
	for (unsigned n = 0; n < range_count; n++)
		if (address - ranges[n].start < ranges[n].size) {
			snprintf(out, sizeof text[0], "%s+%llu", ranges[n].name,
			        (unsigned long long)(address - ranges[n].start));
			return out;
		}
	snprintf(out, sizeof text[0], address < 4096 || address >> 47 ? "%#llx" : "elsewhere",
	        (unsigned long long)address);
	return out;
}

/* ---- faults
 * ------------------------------------------------------------------------------------------------------- */

static struct {
	int signal, code;
	uint64_t address, pc, trap, error, cr2;
	greg_t registers[NGREG];
	struct _libc_fpstate fp;
} caught;
static sigjmp_buf caught_return;
static volatile sig_atomic_t catching;

/* The kernel leaves AC set when it calls a handler; C code does not expect that. */
void fault_entry(int signal, siginfo_t *info, void *context) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n.hidden fault_entry\n.globl fault_entry\n"
        "fault_entry: pushfq; andq $~0x40000, (%rsp); popfq; jmp on_fault\n.popsection");

static __attribute__((used)) void on_fault(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	if (!catching)
		fail("unexpected signal %d, code %d, at %s", signal, info->si_code,
		        where((uint64_t)uc->uc_mcontext.gregs[REG_RIP]));
	caught.signal = signal;
	caught.code = info->si_code;
	caught.address = ADDRESS(info->si_addr);
	memcpy(caught.registers, uc->uc_mcontext.gregs, sizeof caught.registers);
	if (uc->uc_mcontext.fpregs)
		caught.fp = *uc->uc_mcontext.fpregs;
	caught.pc = (uint64_t)caught.registers[REG_RIP];
	caught.trap = (uint64_t)caught.registers[REG_TRAPNO];
	caught.error = (uint64_t)caught.registers[REG_ERR];
	catching = 0;
	siglongjmp(caught_return, 1);
}

static inline void catch_faults(void)
{
	static char stack[64 << 10];
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	struct sigaction action = {.sa_sigaction = fault_entry, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	for (unsigned n = 0; n < sizeof signals / sizeof *signals; n++)
		CHECK(sigaction(signals[n], &action, NULL) == 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* True when it faulted; what happened is in `caught`. Flags AC and DF are clear again in both cases. */
static __attribute__((noinline)) bool faults(const void *code, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	memset(&caught, 0, sizeof caught);
	if (sigsetjmp(caught_return, 1) == 0) {
		catching = 1;
		call(code, a, b, c, d);
		catching = 0;
		__asm__ volatile("pushfq; andq $~0x40500, (%%rsp); popfq" ::: "cc", "memory");
		return false;
	}
	__asm__ volatile("pushfq; andq $~0x40500, (%%rsp); popfq; fninit" ::: "cc", "memory");
	__builtin_ia32_ldmxcsr(0x1f80);
	return true;
}

/* Prints what was caught, or that there was no fault. */
static inline void show_fault(const char *name)
{
	if (!caught.signal) {
		printf("%s: no fault\n", name);
		return;
	}
	printf("%s: SIG%s code %d address %s pc %s trap %llu error %#llx\n", name,
	        sigabbrev_np(caught.signal), caught.code, where(caught.address), where(caught.pc),
	        (unsigned long long)caught.trap, (unsigned long long)caught.error);
}

/* It must fault with this signal, and the pc must be this offset in the snippet. */
static inline void expect_fault(
        const char *name, const char *code, int signal, unsigned offset, uint64_t a, uint64_t b)
{
	CHECK(faults(code, a, b, 0, 0));
	show_fault(name);
	CHECK_EQ(caught.signal, signal);
	CHECK_EQ(caught.pc - ADDRESS(code), offset);
}

/* ---- memory
 * ---------------------------------------------------------------------------------------------------------
 */

/* `pages` pages of read-write memory between two guard pages. */
static inline unsigned char *guarded(const char *name, size_t pages)
{
	unsigned char *memory = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	memory += PAGE;
	CHECK(mprotect(memory, pages * PAGE, PROT_READ | PROT_WRITE) == 0);
	memset(memory, 0, pages * PAGE);
	if (name)
		name_range(name, memory - PAGE, (pages + 2) * PAGE);
	return memory;
}

static inline void show_bytes(const char *name, const void *bytes, size_t size)
{
	printf("%s:", name);
	for (size_t n = 0; n < size; n++)
		printf(" %02x", ((const unsigned char *)bytes)[n]);
	printf("\n");
}

#endif
