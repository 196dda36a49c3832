/*
 * The x87 unit remembers where its last instruction was: the program's pc and data address must show, never
 * others. CPUs differ in what they keep when: with an exception pending all keep it; without one, some lose
 * it at a context switch (then it is zero), so the test tries again.
 */
#include "instruction.h"

/* fld with an exception that is not masked, then each way to store. rdi: where to, rsi: a signalling NaN */
#define TRAP "fninit; fnstcw -8(%rsp); andw $~0x3f, -8(%rsp); fldcw -8(%rsp)\n"
SNIPPET(pending_fnstenv, TRAP "fldl (%rsi); fnstenv (%rdi); fninit; ret");
SNIPPET(pending_fnsave, TRAP "fldl (%rsi); fnsave (%rdi); fninit; ret");
SNIPPET(pending_fxsave64, TRAP "fldl (%rsi); fxsave64 (%rdi); fninit; ret");
SNIPPET(pending_xsave64, TRAP "fldl (%rsi); mov $1, %eax; xor %edx, %edx; xsave64 (%rdi); fninit; ret");
SNIPPET(pending_rip, TRAP "fldl x87_nan(%rip); fnstenv (%rdi); fninit; ret");
SNIPPET(plain_fnstenv, "fninit; fldl (%rsi); fnstenv (%rdi); fninit; ret");
SNIPPET(plain_fnsave, "fninit; fldl (%rsi); fnsave (%rdi); ret");
SNIPPET(across_blocks, "fninit; fldl (%rsi); jmp 1f; nop; 1: fnstenv (%rdi); fninit; ret");
SNIPPET(raised, TRAP "fldl (%rsi); fwait; fninit; ret");
SNIPPET(raised_by_next, TRAP "fldl (%rsi); fld1; fninit; ret");

__asm__(".pushsection .data\n.balign 8\n.hidden x87_nan\n.globl x87_nan\nx87_nan: .quad "
        "0x7ff0000000000001\n.popsection");
extern const uint64_t x87_nan __attribute__((visibility("hidden")));

struct environment {
	uint32_t control, status, tag, pc;
	uint16_t cs, opcode;
	uint32_t data, ds;
};

/* The offset of the fldl in a snippet. */
static unsigned find_fld(const char *code, unsigned char modrm)
{
	unsigned n = 0;
	while ((unsigned char)code[n] != 0xdd || (unsigned char)code[n + 1] != modrm)
		n++;
	return n;
}

static void check_environment(
        const char *name, const char *code, unsigned char modrm, const void *data, bool pending)
{
	static struct environment saved[8];
	uint64_t pc = ADDRESS(code) + find_fld(code, modrm);
	for (int attempt = 0; attempt < 1000; attempt++) {
		memset(saved, 0, sizeof saved);
		call(code, ADDRESS(saved), ADDRESS(data), 0, 0);
		if (saved[0].pc || pending)
			break;
	}
	CHECK_EQ(saved[0].pc, (uint32_t)pc);
	CHECK_EQ(saved[0].data, (uint32_t)ADDRESS(data));
	printf("%s: pc of the fldl, data right, status %#x tag %#x opcode %#x\n", name,
	        saved[0].status & 0xffff, saved[0].tag & 0xffff, saved[0].opcode & 0x7ff);
}

static void check_image(const char *name, const char *code)
{
	static _Alignas(64) unsigned char image[4096];
	uint64_t pc, data;
	memset(image, 0, sizeof image);
	call(code, ADDRESS(image), ADDRESS(&x87_nan), 0, 0);
	memcpy(&pc, image + 8, 8);
	memcpy(&data, image + 16, 8);
	CHECK_EQ(pc, ADDRESS(code) + find_fld(code, 6));
	CHECK_EQ(data, ADDRESS(&x87_nan));
	printf("%s: pc of the fldl, data right, opcode %#x\n", name, (image[6] | image[7] << 8) & 0x7ff);
}

int main(void)
{
	static const double one = 1.0;
	catch_faults();
	check_environment("fnstenv, exception pending", pending_fnstenv, 6, &x87_nan, true);
	check_environment("fnsave, exception pending", pending_fnsave, 6, &x87_nan, true);
	check_environment("fnstenv after fld [rip]", pending_rip, 5, &x87_nan, true);
	check_image("fxsave64, exception pending", pending_fxsave64);
	check_image("xsave64, exception pending", pending_xsave64);
	check_environment("fnstenv", plain_fnstenv, 6, &one, false);
	check_environment("fnsave", plain_fnsave, 6, &one, false);
	check_environment("fnstenv in another block", across_blocks, 6, &one, false);
	NAME_SNIPPET(raised);
	NAME_SNIPPET(raised_by_next);
	/* The signal comes at the next instruction; the frame tells which one was the cause. */
	CHECK(faults(raised, 0, ADDRESS(&x87_nan), 0, 0));
	show_fault("fwait");
	CHECK_EQ(caught.fp.rip, ADDRESS(raised) + find_fld(raised, 6));
	CHECK_EQ(caught.fp.rdp, ADDRESS(&x87_nan));
	CHECK(faults(raised_by_next, 0, ADDRESS(&x87_nan), 0, 0));
	show_fault("fld1");
	CHECK_EQ(caught.fp.rip, ADDRESS(raised_by_next) + find_fld(raised_by_next, 6));
	return 0;
}
