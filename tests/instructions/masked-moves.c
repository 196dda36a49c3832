/* Moves under a mask touch only what the mask selects; gathers keep what they had when an element faults. */
#include "instruction.h"

SNIPPET(maskmovdqu_, "movdqu (%rsi), %xmm0; movdqu (%rdx), %xmm1; maskmovdqu %xmm1, %xmm0; ret");
SNIPPET(maskmovq_, "movq (%rsi), %mm0; movq (%rdx), %mm1; maskmovq %mm1, %mm0; emms; ret");
/* As every MMX instruction it sets the top of the x87 stack to 0, although it changes no register of its own. */
SNIPPET(maskmovq_top, "movq (%rsi), %mm0; movq (%rdx), %mm1; fincstp; fincstp; maskmovq %mm1, %mm0; xor %eax, %eax\n"
                      "fnstsw %ax; fninit; ret");
SNIPPET(vpmaskmovd_store,
        "vmovdqu (%rsi), %ymm0; vmovdqu (%rdx), %ymm1; vpmaskmovd %ymm0, %ymm1, (%rdi); vzeroupper; ret");
SNIPPET(vmaskmovpd_load,
        "vmovdqu (%rdx), %ymm1; vmaskmovpd (%rsi), %ymm1, %ymm0; vmovdqu %ymm0, (%rdi); vzeroupper; ret");
SNIPPET(vpmaskmovq_load,
        "vmovdqu (%rdx), %xmm1; vpmaskmovq (%rsi), %xmm1, %xmm0; vmovdqu %ymm0, (%rdi); vzeroupper; ret");
/* index ymm2, mask ymm3, result ymm4; base rdi */
SNIPPET(gather, "vmovdqu (%rsi), %ymm2; vmovdqu (%rdx), %ymm3; vpcmpeqd %ymm4, %ymm4, %ymm4\n"
                "vpgatherdd %ymm3, (%rdi,%ymm2,4), %ymm4; vmovdqu %ymm4, (%rcx); vmovdqu %ymm3, 32(%rcx); "
                "vzeroupper; ret");
SNIPPET(gather_pd, "vmovdqu (%rsi), %xmm2; vmovdqu (%rdx), %ymm3; vpcmpeqd %ymm4, %ymm4, %ymm4\n"
                   "vgatherdpd %ymm3, (%rdi,%xmm2,8), %ymm4; vmovdqu %ymm4, (%rcx); vmovdqu %ymm3, 32(%rcx); "
                   "vzeroupper; ret");
SNIPPET(upper_halves,
        "vpcmpeqd %ymm5, %ymm5, %ymm5; pxor %xmm5, %xmm5; vmovdqu %ymm5, (%rdi)\n"           /* keeps */
        "vpcmpeqd %ymm5, %ymm5, %ymm5; vpxor %xmm5, %xmm5, %xmm5; vmovdqu %ymm5, 32(%rdi)\n" /* clears */
        "vpcmpeqd %ymm5, %ymm5, %ymm5; vzeroupper; vmovdqu %ymm5, 64(%rdi)\n"
        "vpcmpeqd %ymm5, %ymm5, %ymm5; vzeroall; vmovdqu %ymm5, 96(%rdi); ret");

static const int64_t wide_mask[4] = {-1, 0, 0, 0};
static const int32_t mask_1[8] = {-1, 0, -1, 0, 0, 0, 0, 0}, all[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

int main(void)
{
	unsigned char *memory = guarded("memory", 2), *end = memory + 2 * PAGE;
	unsigned char bytes[64], out[64];
	catch_faults();
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2"))
		skip("no AVX2");
	for (unsigned n = 0; n < 64; n++)
		bytes[n] = (unsigned char)(n + 1);

	NAME_SNIPPET(maskmovdqu_);
	NAME_SNIPPET(maskmovq_);
	NAME_SNIPPET(vpmaskmovd_store);
	NAME_SNIPPET(vmaskmovpd_load);
	NAME_SNIPPET(gather);
	NAME_SNIPPET(gather_pd);
	/* Only bytes whose mask has the top bit. Whether the others must be there differs between CPUs. */
	const unsigned char mask[16] = {0x80, 0x7f, 0xff, 0, 0x80};
	memset(memory, 0xee, 2 * PAGE);
	call(maskmovdqu_, ADDRESS(memory + PAGE - 3), ADDRESS(bytes), ADDRESS(mask), 0);
	show_bytes("maskmovdqu", memory + PAGE - 4, 8);
	CHECK(memcmp(memory + PAGE - 4, "\xee\1\xee\3\xee\5\xee\xee", 8) == 0);
	faults(maskmovdqu_, ADDRESS(end - 5), ADDRESS(bytes), ADDRESS(mask), 0);
	show_fault("maskmovdqu, a byte that is not selected is missing");
	CHECK(faults(maskmovdqu_, ADDRESS(end - 4), ADDRESS(bytes), ADDRESS(mask), 0));
	show_fault("maskmovdqu, a selected byte is missing");
	CHECK_EQ(caught.signal, SIGSEGV);
	memset(memory, 0xee, 2 * PAGE);
	call(maskmovq_, ADDRESS(memory + 5), ADDRESS(bytes), ADDRESS(mask), 0);
	CHECK(memcmp(memory + 5, "\1\xee\3\xee\5\xee\xee\xee", 8) == 0);
	CHECK_EQ(call(maskmovq_top, ADDRESS(memory + 5), ADDRESS(bytes), ADDRESS(mask), 0), 0);
	faults(maskmovq_, ADDRESS(end - 5), ADDRESS(bytes), ADDRESS(mask), 0);
	show_fault("maskmovq, a byte that is not selected is missing");

	memset(memory, 0xee, 2 * PAGE);
	call(vpmaskmovd_store, ADDRESS(end - 12), ADDRESS(bytes), ADDRESS(mask_1), 0);
	show_bytes("vpmaskmovd", end - 12, 12);
	CHECK(memcmp(end - 12, "\1\2\3\4\xee\xee\xee\xee\x9\xa\xb\xc", 12) == 0);
	memset(out, 0x77, sizeof out);
	call(vmaskmovpd_load, ADDRESS(out), ADDRESS(end - 8), ADDRESS(wide_mask), 0);
	show_bytes("vmaskmovpd", out, 32);
	CHECK(memcmp(out, end - 8, 8) == 0 && out[8] == 0);
	memset(out, 0x77, sizeof out);
	call(vpmaskmovq_load, ADDRESS(out), ADDRESS(memory), ADDRESS(all), 0);
	CHECK(memcmp(out, memory, 16) == 0 && out[16] == 0 && out[31] == 0);
	CHECK(faults(vpmaskmovd_store, ADDRESS(end - 8), ADDRESS(bytes), ADDRESS(mask_1), 0));
	show_fault("vpmaskmovd, a selected element is missing");
	CHECK(faults(vmaskmovpd_load, ADDRESS(out), ADDRESS(end - 8), ADDRESS(all), 0));
	show_fault("vmaskmovpd, a selected element is missing");
	CHECK_EQ(caught.address, ADDRESS(end));

	uint32_t *table = (uint32_t *)memory;
	for (unsigned n = 0; n < 2 * PAGE / 4; n++)
		table[n] = n * 3;
	struct {
		uint32_t result[8], mask[8];
	} gathered;
	int32_t index[8] = {5, 0, 100, 2047, 1, 7, 9, 1000};
	call(gather, ADDRESS(table), ADDRESS(index), ADDRESS(all), ADDRESS(&gathered));
	for (unsigned n = 0; n < 8; n++)
		CHECK(gathered.result[n] == (uint32_t)index[n] * 3 && gathered.mask[n] == 0);
	index[3] = 2048; /* not there, but not selected either */
	call(gather, ADDRESS(table), ADDRESS(index), ADDRESS(mask_1), ADDRESS(&gathered));
	CHECK(gathered.result[0] == 15 && gathered.result[1] == ~0u && gathered.result[2] == 300 &&
	        gathered.mask[0] == 0);

	/* Element 3 faults: the ones before it may be loaded, and if so their mask is clear; the ones after
	 * it are not. */
	index[3] = 2048;
	CHECK(faults(gather, ADDRESS(table), ADDRESS(index), ADDRESS(all), ADDRESS(&gathered)));
	show_fault("vpgatherdd");
	CHECK_EQ(caught.address, ADDRESS(end));
	uint32_t partial[2][4];
	memcpy(partial[0], caught.fp._xmm[4].element, 16);
	memcpy(partial[1], caught.fp._xmm[3].element, 16);
	for (unsigned n = 0; n < 4; n++) {
		printf("vpgatherdd at the fault: element %u %#x mask %#x\n", n, partial[0][n], partial[1][n]);
		CHECK(partial[1][n] ? partial[0][n] == ~0u
		                    : n < 3 && partial[0][n] == (uint32_t)index[n] * 3);
	}
	int32_t wide_index[4] = {1, 1024, 2, 3};
	CHECK(faults(gather_pd, ADDRESS(table), ADDRESS(wide_index), ADDRESS(all), ADDRESS(&gathered)));
	show_fault("vgatherdpd");
	CHECK_EQ(caught.address, ADDRESS(end));

	unsigned char halves[128];
	call(upper_halves, ADDRESS(halves), 0, 0, 0);
	CHECK(halves[0] == 0 && halves[16] == 0xff && halves[31] == 0xff);
	CHECK(halves[32] == 0 && halves[48] == 0);
	CHECK(halves[64] == 0xff && halves[79] == 0xff && halves[80] == 0);
	CHECK(halves[96] == 0 && halves[127] == 0);
	return 0;
}
