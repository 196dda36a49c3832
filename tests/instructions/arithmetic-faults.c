/* Division faults and floating point exceptions that are not masked: SIGFPE with its code at the right pc. */
#include "instruction.h"
#include <math.h>

SNIPPET(div_64, "mov %rdi, %rax; mov %rcx, %r8; mov %rdx, %rdx; div %rsi; ret");
SNIPPET(div_32, "mov %edi, %eax; xor %edx, %edx; div %esi; ret");
SNIPPET(div_8, "mov %edi, %eax; div %sil; movzwl %ax, %eax; ret");
SNIPPET(idiv_64, "mov %rdi, %rax; cqo; idiv %rsi; ret");
SNIPPET(idiv_32, "mov %edi, %eax; cltd; idiv %esi; ret");
SNIPPET(idiv_memory, "mov %rdi, %rax; cqo; idivq (%rsi); ret");
SNIPPET(aam_missing, "nop; .byte 0xd4, 0x00; ret"); /* not in this mode */

/* rdi: mxcsr, xmm from memory at rsi and rdx */
#define SSE(name, text)                                                                                      \
	SNIPPET(name,                                                                                        \
	        "mov %edi, -8(%rsp); ldmxcsr -8(%rsp); movupd (%rsi), %xmm0; movupd (%rdx), %xmm1; " text    \
	        "; ret")
SSE(divsd_, "divsd %xmm1, %xmm0");
SSE(mulsd_, "mulsd %xmm1, %xmm0");
SSE(addsd_, "addsd %xmm1, %xmm0");
SSE(sqrtsd_, "sqrtsd %xmm1, %xmm0");
SSE(cvtsd2si_, "cvtsd2si %xmm1, %eax");
SSE(divpd_memory, "divpd (%rdx), %xmm0");
SSE(vdivsd_, "vdivsd %xmm1, %xmm0, %xmm2");

/* rdi: control word; the exception is raised by the instruction after the one that causes it */
#define X87(name, text)                                                                                      \
	SNIPPET(name, "mov %edi, -8(%rsp); fninit; fldcw -8(%rsp); " text "; fwait; fninit; ret")
X87(x87_zero, "fldz; fld1; fdivp");
X87(x87_invalid, "fldz; fldz; fdivp");
X87(x87_stack, "fstp %st(0)");
X87(x87_inexact, "fldpi; fstps -16(%rsp)");

static _Alignas(16) const double one[2] = {1, 1}, zero[2] = {0, 0}, huge[2] = {1e308, 1e308},
                                 tiny[2] = {1e-308, 1e-308}, third[2] = {1.0 / 3, 3}, minus[2] = {-1, -1},
                                 denormal[2] = {5e-324, 5e-324};

static void integers(void)
{
	static const int64_t memory_zero = 0;
	NAME_SNIPPET(div_64);
	NAME_SNIPPET(div_32);
	NAME_SNIPPET(div_8);
	NAME_SNIPPET(idiv_64);
	NAME_SNIPPET(idiv_32);
	NAME_SNIPPET(idiv_memory);
	NAME_SNIPPET(aam_missing);
	CHECK_EQ(call(div_64, 100, 7, 0, 0), 14);
	CHECK_EQ(call(div_64, 0, 3, 2, 0), 0xaaaaaaaaaaaaaaaa);
	CHECK_EQ((int64_t)call(idiv_64, (uint64_t)-100, 7, 0, 0), -14);
	expect_fault("div by 0", div_64, SIGFPE, 9, 100, 0);
	CHECK_EQ(caught.code, FPE_INTDIV);
	CHECK_EQ(caught.address, caught.pc);
	CHECK_EQ(caught.registers[REG_RAX], 100);
	CHECK(faults(div_64, 0, 3, 3, 0));
	show_fault("div, too large");
	expect_fault("div 32 by 0", div_32, SIGFPE, 4, 5, 0);
	expect_fault("div 8, too large", div_8, SIGFPE, 2, 0x1000, 1);
	expect_fault("idiv, the smallest by -1", idiv_64, SIGFPE, 5, 1ull << 63, (uint64_t)-1);
	expect_fault("idiv 32, the smallest by -1", idiv_32, SIGFPE, 3, 1ull << 31, (uint64_t)-1);
	expect_fault("idiv by a 0 in memory", idiv_memory, SIGFPE, 5, 7, ADDRESS(&memory_zero));
	CHECK(faults(aam_missing, 0, 0, 0, 0));
	CHECK_EQ(caught.signal, SIGILL);
}

static void sse(
        const char *name, const char *code, unsigned exception, int si_code, const double *a, const double *b)
{
	unsigned mxcsr = 0x1f80 & ~(1u << (7 + exception));
	range_count = 0;
	name_range("code", code, 64);
	CHECK(!faults(code, 0x1f80, ADDRESS(a), ADDRESS(b), 0));
	CHECK(faults(code, mxcsr, ADDRESS(a), ADDRESS(b), 0));
	show_fault(name);
	CHECK_EQ(caught.signal, SIGFPE);
	CHECK_EQ(caught.code, si_code);
	CHECK_EQ(caught.trap, 19);
	CHECK_EQ(caught.address, caught.pc);
	CHECK_EQ(caught.fp.mxcsr & (1u << exception), 1u << exception);
	CHECK(memcmp(caught.fp._xmm[0].element, a, 16) == 0); /* not changed */
	printf("%s: mxcsr %#x\n", name, caught.fp.mxcsr);
	__builtin_ia32_ldmxcsr(0x1f80);
}

static void x87(const char *name, const char *code, unsigned exception, int si_code)
{
	range_count = 0;
	name_range("code", code, 64);
	CHECK(!faults(code, 0x37f, 0, 0, 0));
	CHECK(faults(code, 0x37f & ~(1u << exception), 0, 0, 0));
	show_fault(name);
	CHECK_EQ(caught.signal, SIGFPE);
	CHECK_EQ(caught.code, si_code);
	CHECK_EQ(caught.trap, 16);
	printf("%s: status %#x control %#x\n", name, caught.fp.swd, caught.fp.cwd);
}

int main(void)
{
	catch_faults();
	integers();
	sse("divide by zero", divsd_, 2, FPE_FLTDIV, one, zero);
	sse("invalid, 0/0", divsd_, 0, FPE_FLTINV, zero, zero);
	sse("invalid, root", sqrtsd_, 0, FPE_FLTINV, one, minus);
	sse("invalid, conversion", cvtsd2si_, 0, FPE_FLTINV, one, huge);
	sse("overflow", mulsd_, 3, FPE_FLTOVF, huge, huge);
	sse("underflow", mulsd_, 4, FPE_FLTUND, tiny, tiny);
	sse("inexact", divsd_, 5, FPE_FLTRES, one, third);
	sse("denormal", addsd_, 1, FPE_FLTUND, one, denormal);
	sse("packed, from memory", divpd_memory, 2, FPE_FLTDIV, one, zero);
	sse("VEX", vdivsd_, 2, FPE_FLTDIV, one, zero);
	x87("x87 divide by zero", x87_zero, 2, FPE_FLTDIV);
	x87("x87 invalid", x87_invalid, 0, FPE_FLTINV);
	x87("x87 stack", x87_stack, 0, FPE_FLTINV);
	x87("x87 inexact", x87_inexact, 5, FPE_FLTRES);
	return 0;
}
