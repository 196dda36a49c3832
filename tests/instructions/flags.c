/* Flags: what each instruction keeps and changes, and that pushf shows the program's own. */
#include "instruction.h"

#define STATUS "pushfq; pop %rax; and $0x8d5, %eax; ret"
#define WITH   "push %rdi; popfq; mov %rsi, %rax; mov %rdx, %rcx; "

SNIPPET(inc_, WITH "inc %rax; " STATUS);
SNIPPET(dec_, WITH "dec %eax; " STATUS);
SNIPPET(not_, WITH "not %rax; " STATUS);
SNIPPET(shl_cl, WITH "shl %cl, %rax; " STATUS);
SNIPPET(sar_cl_8, WITH "sar %cl, %al; " STATUS);
SNIPPET(shld_cl, WITH "shld %cl, %rsi, %rax; " STATUS);
SNIPPET(shl_0, WITH "shl $0, %rax; " STATUS);
SNIPPET(rol_cl, WITH "rol %cl, %rax; " STATUS);
SNIPPET(rcr_1, WITH "rcr $1, %rax; " STATUS);
SNIPPET(rcl_cl, WITH "rcl %cl, %eax; " STATUS);
SNIPPET(mov_, WITH "mov %rsi, %rax; lea 8(%rax), %rax; xchg %rax, %rcx; bswap %rax; " STATUS);
SNIPPET(cmc_, WITH "cmc; " STATUS);
SNIPPET(sahf_, "mov %esi, %eax; shl $8, %eax; push %rdi; popfq; sahf; " STATUS);
SNIPPET(lahf_, WITH "xor %eax, %eax; push %rdi; popfq; lahf; movzbl %ah, %eax; ret");
SNIPPET(mulx_, WITH "mov %rsi, %rdx; mulx %rsi, %r8, %r9; shlx %rcx, %rax, %r8; " STATUS);
SNIPPET(adcx_, WITH "adcx %rsi, %rax; " STATUS);
SNIPPET(adox_, WITH "adox %rsi, %rax; " STATUS);
SNIPPET(bsf_, WITH "mov $77, %eax; bsf %rsi, %rax; jz 1f; mov $1, %eax; 1: ret");
SNIPPET(cmov_, WITH
        "mov $0xffffffffffffffff, %rax; cmp %rax, %rax; cmovne %esi, %eax; ret"); /* clears the upper half */
SNIPPET(setcc_, WITH "xor %eax, %eax; push %rdi; popfq; seto %al; setc %cl; lea (%rax,%rcx,2), %eax; movzbl "
                     "%al, %eax; ret");
SNIPPET(all_flags, "push %rdi; popfq; pushfq; pop %rax; pushq $0x202; popfq; ret");
SNIPPET(all_flags_16, "push %rdi; popfw; lea 6(%rsp), %rsp; pushfq; pop %rax; pushq $0x202; popfq; ret");
SNIPPET(live_over_jump, WITH "cmp %rcx, %rax; jmp 1f; nop; 1: mov $0, %eax; jmp 2f; nop; 2: setl %al; ret");
SNIPPET(live_over_call, WITH "cmp %rcx, %rax; call 1f; mov $0, %eax; setb %al; ret; 1: ret");
SNIPPET(live_over_indirect,
        WITH "lea 1f(%rip), %rdx; cmp %rcx, %rax; jmp *%rdx; nop; 1: mov $0, %eax; setg %al; ret");
SNIPPET(unaligned,
        "pushfq; orq $0x40000, (%rsp); popfq; mov (%rdi), %rax; pushfq; andq $~0x40000, (%rsp); popfq; ret");
SNIPPET(aligned_ac, "pushfq; orq $0x40000, (%rsp); popfq; mov (%rdi), %rax; movups (%rdi), %xmm0; pushfq; "
                    "pop %rax; pushq $0x202; "
                    "popfq; ret");

static uint64_t status(const char *code, uint64_t flags, uint64_t value, uint64_t count)
{
	return call(code, flags | 0x202, value, count, 0);
}

static void kept(void)
{
	for (uint64_t carry = 0; carry < 2; carry++) {
		CHECK_EQ(status(inc_, carry, ~0ull, 0), 0x54 | carry);
		CHECK_EQ(status(dec_, carry, 1, 0), 0x44 | carry);
		CHECK_EQ(status(inc_, carry, 0x7fffffffffffffff, 0), 0x894 | carry);
	}
	for (uint64_t n = 0; n < 64; n++) { /* every combination of the six */
		uint64_t flags =
		        (n & 1) | (n & 2) << 1 | (n & 4) << 2 | (n & 8) << 3 | (n & 16) << 3 | (n & 32) << 6;
		CHECK_EQ(status(not_, flags, 5, 0), flags);
		CHECK_EQ(status(shl_cl, flags, 5, 0), flags); /* by zero: nothing changes */
		CHECK_EQ(status(shl_cl, flags, 5, 64), flags);
		CHECK_EQ(status(sar_cl_8, flags, 5, 32), flags);
		CHECK_EQ(status(shld_cl, flags, 5, 0), flags);
		CHECK_EQ(status(shl_0, flags, 5, 0), flags);
		CHECK_EQ(status(rol_cl, flags, 5, 0), flags);
		CHECK_EQ(status(rcl_cl, flags, 5, 0), flags);
		CHECK_EQ(status(rcr_1, flags, 2, 0) & 0xd4, flags & 0xd4); /* rotates: only CF and OF */
		CHECK_EQ(status(rol_cl, flags, 5, 3) & 0xd4, flags & 0xd4);
		CHECK_EQ(status(mov_, flags, 5, 3), flags);
		CHECK_EQ(status(cmc_, flags, 0, 0), flags ^ 1);
		CHECK_EQ(status(sahf_, flags, 0xd5, 0), (flags & 0x800) | 0xd5);
		CHECK_EQ(status(lahf_, flags, 0, 0), (flags & 0xd5) | 2);
		CHECK_EQ(status(mulx_, flags, 5, 3), flags);
		CHECK_EQ(status(adcx_, flags, 1ull << 63, 0), (flags & 0x8d4) | 1);
		CHECK_EQ(status(adox_, flags, 1ull << 63, 0), (flags & 0xd5) | 0x800);
		CHECK_EQ(status(setcc_, flags, 0, 0), (flags >> 11 & 1) + 2 * (flags & 1));
	}
	CHECK_EQ(status(bsf_, 0, 0, 0), 77);
	CHECK_EQ(status(cmov_, 0, 5, 0), 0xffffffff);
	CHECK_EQ(status(live_over_jump, 0, 1, 2), 1);
	CHECK_EQ(status(live_over_call, 0, 1, 2), 1);
	CHECK_EQ(status(live_over_call, 0, 2, 1), 0);
	CHECK_EQ(status(live_over_indirect, 0, 2, 1), 1);
}

/* What the CPU leaves undefined must still be what this CPU does. */
static void undefined(void)
{
	for (uint64_t value = 1; value; value = value * 37 & 0xffffffffff) {
		printf("%llx: shl %#llx shld %#llx rcl %#llx\n", (unsigned long long)value,
		        (unsigned long long)status(shl_cl, 0x8d5, value, value >> 3 & 63),
		        (unsigned long long)status(shld_cl, 0, value, value >> 2 & 63),
		        (unsigned long long)status(rcl_cl, 1, value, value & 31));
		if (value > 0x8000000000)
			break;
	}
}

static void pushed(void)
{
	/* ID, AC, NT, OF, DF, SF, ZF, AF, PF, CF can be set; IF and IOPL cannot be changed; TF is not ours to
	 * set here. */
	CHECK_EQ(call(all_flags, 0x244cd5 | 0x202, 0, 0, 0), 0x244ed7);
	CHECK_EQ(call(all_flags, 2, 0, 0, 0), 0x202);
	CHECK_EQ(call(all_flags, 0x3002, 0, 0, 0), 0x202);
	CHECK_EQ(call(all_flags_16, 0x8d7 | 0xffff0000, 0, 0, 0), 0xad7);
}

static void alignment(void)
{
	static _Alignas(16) unsigned char bytes[64];
	NAME_SNIPPET(unaligned);
	name_range("bytes", bytes, sizeof bytes);
	CHECK_EQ(call(aligned_ac, ADDRESS(bytes), 0, 0, 0) & 0x40000, 0x40000);
	expect_fault("AC and a load that is not aligned", unaligned, SIGBUS, 10, ADDRESS(bytes + 1), 0);
	CHECK_EQ(caught.registers[REG_EFL] & 0x40000, 0x40000);
	CHECK_EQ(call(all_flags, 0x202, 0, 0, 0), 0x202);
}

int main(void)
{
	catch_faults();
	__builtin_cpu_init();
	kept();
	undefined();
	pushed();
	alignment();
	return 0;
}
