/* Instructions that trap or are refused: signal, code, address and pc as the CPU gives them. */
#include "instruction.h"

/* Each begins with a nop, so that the pc is not the start of the snippet, and one follows. */
#define TRAP(name, text) SNIPPET(name, "nop; " text "; nop; ret")

TRAP(int3_, "int3");
TRAP(int3_long, ".byte 0xcd, 0x03");
TRAP(int1_, ".byte 0xf1");
TRAP(int_1, ".byte 0xcd, 0x01");
TRAP(int_4, ".byte 0xcd, 0x04");
TRAP(int_13, ".byte 0xcd, 0x0d");
TRAP(int_20, ".byte 0xcd, 0x20");
TRAP(int_ff, ".byte 0xcd, 0xff");
TRAP(ud2_, "ud2");
TRAP(ud1_, "ud1 %eax, %eax");
TRAP(ud0_, ".byte 0x0f, 0xff, 0xc0");
TRAP(hlt_, "hlt");
TRAP(cli_, "cli");
TRAP(sti_, "sti");
TRAP(in_, "in $0x80, %al");
TRAP(in_dx, "in %dx, %eax");
TRAP(out_, "out %al, $0x80");
TRAP(outs, "outsb");
TRAP(ins, "insb");
TRAP(rdmsr_, "rdmsr");
TRAP(wrmsr_, "wrmsr");
TRAP(read_cr0, "mov %cr0, %rax");
TRAP(write_cr3, "mov %rax, %cr3");
TRAP(read_dr7, "mov %dr7, %rax");
TRAP(clts_, "clts");
TRAP(invlpg_, "invlpg (%rdi)");
TRAP(wbinvd_, "wbinvd");
TRAP(lgdt_, "lgdt (%rdi)");
TRAP(lidt_, "lidt (%rdi)");
TRAP(ltr_, "ltr %ax");
TRAP(lmsw_, "lmsw %ax");
TRAP(swapgs_, "swapgs");
TRAP(sysretq_, "sysretq");
TRAP(xsetbv_, "xsetbv");
TRAP(push_es, ".byte 0x06");
TRAP(daa_, ".byte 0x27");
TRAP(pusha_, ".byte 0x60");
TRAP(into_, ".byte 0xce");
TRAP(salc_, ".byte 0xd6");
TRAP(far_call, ".byte 0x9a, 0, 0, 0, 0, 0, 0");
TRAP(far_jump_register, ".byte 0xff, 0xe8"); /* jmp far eax */
TRAP(lock_nop, ".byte 0xf0, 0x90");
TRAP(lock_add_register, ".byte 0xf0, 0x01, 0xc0");
TRAP(vex_with_66, ".byte 0x66, 0xc5, 0xf8, 0x28, 0xc0");
TRAP(vex_with_rex, ".byte 0x48, 0xc5, 0xf8, 0x28, 0xc0");
TRAP(fifteen_bytes,
        ".byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90");
TRAP(sixteen_bytes, ".byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, "
                    "0x66, 0x66, 0x90");
/* What was borrowed for the load is put back between the trap and the next instruction. */
SNIPPET(int3_behind_load, "psubq (%rdi), %mm0; int3; mov (%rdi), %rax; ret");
SNIPPET(int3_behind_use, "paddb (%rdi), %xmm0; add (%rdi), %eax; int3; add %rcx, %rax; xor %edx, %edx; ret");
SNIPPET(int3_before_end, "psubq (%rdi), %mm0; test %rdi, %rdi; jz 1f; psubq (%rdi), %mm0; int3\n1: ret");
SNIPPET(bad_iret, "mov $0x1230, %edi; push %rdi; push %rdi; pushfq; push %rdi; push %rdi; iretq");

/* A handler sees the flags, although nobody else will; there are two ways of different lengths to the trap.
 */
#define FLAGS(name, trap)                                                                                    \
	SNIPPET(name, "test %rsi, %rsi; jz 1f; nop; nop; cmp $9, %rsi\n1: " trap "; xor %eax, %eax; ret")
FLAGS(int3_flags, "int3");
FLAGS(int1_flags, ".byte 0xf1");
FLAGS(int_20_flags, ".byte 0xcd, 0x20");
FLAGS(ud2_flags, "ud2");

static void check_flags(const char *name, const char *code)
{
	for (uint64_t n = 0; n < 4; n++) {
		CHECK(faults(code, 0, n, 0, 0));
		printf("%s after %llu: flags %#llx\n", name, (unsigned long long)n,
		        (unsigned long long)caught.registers[REG_EFL] & 0x8d5);
	}
}

enum { NONE = -1, EITHER = -2 }; /* some hypervisors report int1 at its own pc, not at the next */

static const struct {
	const char *name, *code, *end;
	int signal, pc; /* what must come; signal 0: not said; pc NONE: no fault */
} traps[] = {
#define ENTRY(name, signal, pc)                                                                              \
	{                                                                                                    \
#name, name, name##_end, signal, pc                                                          \
	}
        ENTRY(int3_, SIGTRAP, 2), ENTRY(int3_long, SIGTRAP, 3), ENTRY(int1_, SIGTRAP, EITHER),
        ENTRY(int_1, SIGSEGV, 1), ENTRY(int_4, SIGSEGV, 3), ENTRY(int_13, SIGSEGV, 1),
        ENTRY(int_20, SIGSEGV, 1), ENTRY(int_ff, SIGSEGV, 1), ENTRY(ud2_, SIGILL, 1), ENTRY(ud1_, SIGILL, 1),
        ENTRY(ud0_, SIGILL, 1), ENTRY(hlt_, SIGSEGV, 1), ENTRY(cli_, SIGSEGV, 1), ENTRY(sti_, SIGSEGV, 1),
        ENTRY(in_, SIGSEGV, 1), ENTRY(in_dx, SIGSEGV, 1), ENTRY(out_, SIGSEGV, 1), ENTRY(outs, SIGSEGV, 1),
        ENTRY(ins, SIGSEGV, 1), ENTRY(rdmsr_, SIGSEGV, 1), ENTRY(wrmsr_, SIGSEGV, 1),
        ENTRY(read_cr0, SIGSEGV, 1), ENTRY(write_cr3, SIGSEGV, 1), ENTRY(read_dr7, SIGSEGV, 1),
        ENTRY(clts_, SIGSEGV, 1), ENTRY(invlpg_, SIGSEGV, 1), ENTRY(wbinvd_, SIGSEGV, 1),
        ENTRY(lgdt_, SIGSEGV, 1), ENTRY(lidt_, SIGSEGV, 1), ENTRY(ltr_, SIGSEGV, 1), ENTRY(lmsw_, SIGSEGV, 1),
        ENTRY(swapgs_, SIGSEGV, 1), ENTRY(sysretq_, 0, 1), ENTRY(xsetbv_, SIGSEGV, 1),
        ENTRY(push_es, SIGILL, 1), ENTRY(daa_, SIGILL, 1), ENTRY(pusha_, SIGILL, 1), ENTRY(into_, SIGILL, 1),
        ENTRY(salc_, SIGILL, 1), ENTRY(far_call, SIGILL, 1), ENTRY(far_jump_register, SIGILL, 1),
        ENTRY(lock_nop, SIGILL, 1), ENTRY(lock_add_register, SIGILL, 1), ENTRY(vex_with_66, SIGILL, 1),
        ENTRY(vex_with_rex, SIGILL, 1), ENTRY(fifteen_bytes, 0, NONE), ENTRY(sixteen_bytes, SIGSEGV, 1),
        ENTRY(int3_behind_load, SIGTRAP, 4), ENTRY(int3_behind_use, SIGTRAP, 7),
        ENTRY(int3_before_end, SIGTRAP, 12), ENTRY(bad_iret, SIGSEGV, 10)};

int main(void)
{
	static char page[64] __attribute__((aligned(16)));
	catch_faults();
	for (unsigned n = 0; n < sizeof traps / sizeof *traps; n++) {
		range_count = 0;
		name_range("code", traps[n].code, (size_t)(traps[n].end - traps[n].code));
		name_range("data", page, sizeof page);
		bool faulted = faults(traps[n].code, ADDRESS(page), ADDRESS(page), 0, 0);
		show_fault(traps[n].name);
		CHECK_EQ(faulted, traps[n].pc != NONE);
		if (faulted) {
			CHECK(traps[n].pc == EITHER ||
			        (int)(caught.pc - ADDRESS(traps[n].code)) == traps[n].pc);
			CHECK(!traps[n].signal || caught.signal == traps[n].signal);
		}
	}
	check_flags("int3", int3_flags);
	check_flags("int1", int1_flags);
	check_flags("int 20", int_20_flags);
	check_flags("ud2", ud2_flags);
	return 0;
}
