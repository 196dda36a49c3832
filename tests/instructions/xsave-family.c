/* xsave, xsavec, xsaveopt and xrstor: what was saved comes back; bad areas are refused. */
#include "instruction.h"
#include <cpuid.h>

/* rdi: area, rsi: mask, rdx: source of 16 vectors, rcx: where the vectors go afterwards */
#define LOAD                                                                                                 \
	"mov %rdx, %r8; vmovdqu (%r8), %ymm0; vmovdqu 32(%r8), %ymm7; vmovdqu 480(%r8), %ymm15; fninit; "    \
	"fld1; fldpi\n"                                                                                      \
	"mov %esi, %eax; xor %edx, %edx\n"
#define CLEAR_AND_RESTORE(xrstor)                                                                            \
	"vzeroall; fninit; mov %esi, %eax; xor %edx, %edx; " xrstor " (%rdi)\n"                              \
	"vmovdqu %ymm0, (%rcx); vmovdqu %ymm7, 32(%rcx); vmovdqu %ymm15, 64(%rcx); fstpl 96(%rcx); fninit; " \
	"vzeroupper; ret"

SNIPPET(with_xsave, LOAD "xsave (%rdi)\n" CLEAR_AND_RESTORE("xrstor"));
SNIPPET(with_xsave64, LOAD "xsave64 (%rdi)\n" CLEAR_AND_RESTORE("xrstor64"));
SNIPPET(with_xsavec, LOAD "xsavec (%rdi)\n" CLEAR_AND_RESTORE("xrstor"));
SNIPPET(with_xsavec64, LOAD "xsavec64 (%rdi)\n" CLEAR_AND_RESTORE("xrstor64"));
SNIPPET(with_xsaveopt, LOAD "xsaveopt (%rdi)\n" CLEAR_AND_RESTORE("xrstor"));
SNIPPET(with_fxsave, LOAD "fxsave (%rdi)\n" CLEAR_AND_RESTORE("fxrstor"));
SNIPPET(restore, "mov %esi, %eax; xor %edx, %edx; xrstor (%rdi); ret");
SNIPPET(save, "mov %esi, %eax; xor %edx, %edx; xsave (%rdi); ret");
SNIPPET(save_privileged, "mov %esi, %eax; xor %edx, %edx; xsaves (%rdi); ret");
SNIPPET(mxcsr_kept,
        "movl $0x7f80, -8(%rsp); ldmxcsr -8(%rsp); mov $2, %eax; xor %edx, %edx; xsave (%rdi)\n"
        "movl $0x1f80, -8(%rsp); ldmxcsr -8(%rsp); xrstor (%rdi); stmxcsr -8(%rsp); mov -8(%rsp), %ecx\n"
        "movl $0x1f80, -8(%rsp); ldmxcsr -8(%rsp); mov %ecx, %eax; ret");

static _Alignas(64) unsigned char area[8192];
static unsigned char vectors[512];

struct after {
	unsigned char ymm0[32], ymm7[32], ymm15[32];
	double st0;
};

static void round_trip(const char *name, const char *code, unsigned mask)
{
	struct after after, zero = {0};
	memset(area, 0, sizeof area);
	call(code, ADDRESS(area), mask, ADDRESS(vectors), ADDRESS(&after));
	bool x87 = mask & 1, sse = mask & 2, avx = mask & 4;
	CHECK(memcmp(after.ymm0, sse ? vectors : zero.ymm0, 16) == 0);
	CHECK(memcmp(after.ymm0 + 16, avx ? vectors + 16 : zero.ymm0, 16) == 0);
	CHECK(memcmp(after.ymm7, sse ? vectors + 32 : zero.ymm0, 16) == 0);
	CHECK(memcmp(after.ymm15, sse ? vectors + 480 : zero.ymm0, 16) == 0);
	CHECK(memcmp(after.ymm15 + 16, avx ? vectors + 496 : zero.ymm0, 16) == 0);
	CHECK(x87 ? after.st0 > 3.1415 && after.st0 < 3.1416 : after.st0 != after.st0);
	printf("%s: mask %u comes back\n", name, mask);
}

int main(void)
{
	unsigned eax, ebx, ecx, edx;
	catch_faults();
	for (unsigned n = 0; n < sizeof vectors; n++)
		vectors[n] = (unsigned char)(n * 11 + 3);
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE) || !(ecx & bit_AVX))
		skip("no xsave");
	for (unsigned mask = 0; mask < 8; mask++) {
		round_trip("xsave", with_xsave, mask);
		round_trip("xsave64", with_xsave64, mask);
	}
	round_trip("fxsave", with_fxsave, 3);
	__get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx);
	bool optimised = eax & 1, compact = eax & 2;
	for (unsigned mask = 0; mask < 8; mask++) {
		if (optimised)
			round_trip("xsaveopt", with_xsaveopt, mask);
		if (compact) {
			round_trip("xsavec", with_xsavec, mask);
			round_trip("xsavec64", with_xsavec64, mask);
		}
	}
	CHECK_EQ(call(mxcsr_kept, ADDRESS(area), 0, 0, 0), 0x7f80);
	/* What is not selected stays as it is in memory. */
	memset(area, 0xab, sizeof area);
	memset(area + 512, 0, 64);
	call(save, ADDRESS(area), 0, 0, 0);
	CHECK(area[0] == 0xab && area[160] == 0xab && area[600] == 0xab);
	/* The size the CPU names covers what it writes. */
	__get_cpuid_count(13, 0, &eax, &ebx, &ecx, &edx);
	CHECK(ebx >= 832 && ebx <= ecx && ecx <= sizeof area);
	memset(area, 0xab, sizeof area);
	memset(area + 512, 0, 64);
	call(save, ADDRESS(area), eax, 0, 0);
	for (unsigned n = ebx; n < sizeof area; n++)
		CHECK_EQ(area[n], 0xab);

	NAME_SNIPPET(restore);
	NAME_SNIPPET(save);
	NAME_SNIPPET(save_privileged);
	memset(area, 0, sizeof area);
	area[24] = 0x80;
	area[25] = 0x1f;
	area[512 + 7] = 0x40; /* a component that does not exist */
	expect_fault("xrstor of a bad header", restore, SIGSEGV, 4, ADDRESS(area), 7);
	area[512 + 7] = 0;
	area[512] = 2;
	area[27] = 0xff; /* reserved bits of mxcsr */
	expect_fault("xrstor of a bad mxcsr", restore, SIGSEGV, 4, ADDRESS(area), 7);
	expect_fault("xsave, not aligned", save, SIGSEGV, 4, ADDRESS(area + 16), 7);
	faults(save_privileged, ADDRESS(area), 7, 0, 0);
	show_fault("xsaves");
	CHECK(caught.signal == SIGSEGV || caught.signal == SIGILL);
	unsigned char *memory = guarded("memory", 1);
	expect_fault("xsave into a guard page", save, SIGSEGV, 4, ADDRESS(memory + PAGE - 64), 7);
	return 0;
}
