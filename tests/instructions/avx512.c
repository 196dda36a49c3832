/*
 * AVX-512 and AMX: a CPU that does not show them refuses them with SIGILL. On a CPU that does show them
 * nothing is executed, so that the output is the same there.
 */
#include "instruction.h"
#include <cpuid.h>

SNIPPET(zmm_add, "vpaddd %zmm1, %zmm2, %zmm3; ret");
SNIPPET(zmm_load, "vmovdqu32 (%rdi), %zmm1; ret");
SNIPPET(zmm_high, "vpxord %xmm17, %xmm18, %xmm19; ret");
SNIPPET(masked, "vmovdqu32 %ymm1, (%rdi){%k1}; ret");
SNIPPET(mask_move, "kmovw %eax, %k1; ret");
SNIPPET(mask_load, "kmovq (%rdi), %k1; ret");
SNIPPET(tile_release, "tilerelease; ret");
SNIPPET(tile_config, "ldtilecfg (%rdi); ret");

static _Alignas(64) unsigned char bytes[64];

static void refused(const char *code)
{
	CHECK(faults(code, ADDRESS(bytes), 0, 0, 0));
	CHECK_EQ(caught.signal, SIGILL);
	CHECK_EQ(caught.code, ILL_ILLOPN);
	CHECK_EQ(caught.pc, ADDRESS(code));
	CHECK_EQ(caught.address, ADDRESS(code));
}
int main(void)
{
	catch_faults();
	__builtin_cpu_init();
	printf("refused with SIGILL, or shown by cpuid\n");
	if (__builtin_cpu_supports("avx512f"))
		return 0;
	refused(zmm_add);
	refused(zmm_load);
	refused(zmm_high);
	refused(masked);
	refused(mask_move);
	refused(mask_load);
	unsigned eax, ebx, ecx, edx;
	__cpuid_count(7, 0, eax, ebx, ecx, edx);
	if (edx & 1u << 24)
		return 0;
	refused(tile_release);
	refused(tile_config);
	return 0;
}
