/* record: --cpu native | --cpu native --interval 300 */
/*
 * AVX-512 where the CPU has it: operands in memory of every form, masks that leave out what would fault, and registers
 * that come through signals and images.
 */
#include "instruction.h"
#include <cpuid.h>

/* rdi: where results go, rsi: source, rdx: another, rcx: anything; zmm16 and k1 are used for what is loaded */
#define OUT  "vmovdqu64 %zmm16, (%rdi); vzeroupper; ret"
#define MASK "kmovq %rcx, %k1; "
SNIPPET(scaled, "vmovdqu64 64(%rsi), %zmm16; vpaddq -64(%rdx), %zmm16, %zmm16; " OUT);
SNIPPET(scaled_indexed, "mov $2, %eax; vmovdqu64 -128(%rsi,%rax,8), %zmm16; vpxorq 128(%rdx,%rax,2), %zmm16, %zmm16; " OUT);
SNIPPET(unscaled, "vmovdqu64 0x1234(%rsi), %zmm16; vpaddb 1(%rdx), %zmm16, %zmm16; " OUT);
SNIPPET(high_bases, "push %r12; push %r13; mov %rsi, %r13; mov $1, %r12d; vmovdqu32 192(%r13,%r12,4), %zmm16; pop %r13; pop %r12; " OUT);
SNIPPET(halves, "vmovdqu16 32(%rsi), %ymm16; vpermw 16(%rdx), %xmm16, %xmm17; vinserti64x4 $1, %ymm17, %zmm16, %zmm16; " OUT);
SNIPPET(broadcast, "vpternlogd $0xff, %zmm16, %zmm16, %zmm16; vpaddd 4(%rsi){1to16}, %zmm16, %zmm16; "
                   "vpmullq 8(%rdx){1to8}, %zmm16, %zmm16; " OUT);
SNIPPET(static_broadcast, "vbroadcasti64x4 32(%rsi), %zmm16; vpbroadcastb 3(%rdx), %zmm17; vpsubb %zmm17, %zmm16, %zmm16; " OUT);
SNIPPET(scalar, "vmovsd 8(%rsi), %xmm16; vaddsd 16(%rdx), %xmm16, %xmm16; vcvtsi2sdq 24(%rsi), %xmm16, %xmm17; "
                "vmovss 4(%rdx), %xmm18; vpinsrd $3, 12(%rsi), %xmm17, %xmm17; vinserti32x4 $1, %xmm17, %zmm16, %zmm16; "
                "vinserti32x4 $2, %xmm18, %zmm16, %zmm16; " OUT);
SNIPPET(rounded, "vmovupd 64(%rsi), %zmm17; vcvtpd2dq {rd-sae}, %zmm17, %ymm16; vsqrtpd {rn-sae}, %zmm17, %zmm18; "
                 "vpxorq %zmm18, %zmm16, %zmm16; " OUT);
SNIPPET(near_code, "vmovdqu64 numbers(%rip), %zmm16; vpsllvd numbers+4(%rip){1to16}, %zmm16, %zmm16; vmovdqu64 %zmm16, "
                   "results(%rip); " OUT);
SNIPPET(thread_local, "vmovdqu64 %fs:0x10, %xmm16; vpbroadcastq %fs:0, %zmm17; mov %fs:0, %rax; vpbroadcastq %rax, %zmm18; "
                      "vpcmpeqq %zmm18, %zmm17, %k1; kmovb %k1, %eax; vpxorq %zmm16, %zmm16, %zmm16; " OUT);
SNIPPET(by_mask, MASK "vmovdqu8 (%rsi), %zmm16{%k1}{z}; vmovdqu64 (%rdx), %zmm17; vpaddb 64(%rsi), %zmm17, %zmm17{%k1}; "
                      "vpxorq %zmm17, %zmm16, %zmm16; " OUT);
SNIPPET(compared, MASK "vmovdqu64 (%rsi), %zmm17; vpcmpub $1, (%rdx), %zmm17, %k2; vpcmpeqd 4(%rdx){1to16}, %zmm17, %k3{%k1}; "
                       "vptestmb 64(%rdx), %zmm17, %k4{%k1}; kunpckwd %k3, %k2, %k5; vpmovm2b %k2, %zmm16; vpmovm2d %k5, %zmm18; "
                       "vpmovm2b %k4, %zmm19; vpaddb %zmm18, %zmm16, %zmm16; vpsubb %zmm19, %zmm16, %zmm16; " OUT);
SNIPPET(packed, MASK "vmovdqu64 (%rdx), %zmm16; vpexpandd (%rsi), %zmm16{%k1}; " OUT);
SNIPPET(gathered, MASK "vmovdqu64 (%rdx), %zmm17; vpandd 60(%rdx){1to16}, %zmm17, %zmm17; vpsrld $27, %zmm17, %zmm17; "
                       "vmovdqu64 64(%rdx), %zmm16; vpgatherdd 4(%rsi,%zmm17,4), %zmm16{%k1}; kmovq %k1, %rax; "
                       "vpinsrq $0, %rax, %xmm16, %xmm17; vinserti32x4 $3, %xmm17, %zmm16, %zmm16; " OUT);
/* stores: to rdi, of what is at rsi, under the mask rcx */
#define WHAT MASK "vmovdqu64 (%rsi), %zmm16; "
SNIPPET(store, WHAT "vmovdqu64 %zmm16, 64(%rdi); vmovdqu8 %ymm16, 1(%rdi); vextracti32x4 $2, %zmm16, 160(%rdi); vzeroupper; ret");
SNIPPET(store_masked, WHAT "vmovdqu8 %zmm16, (%rdi){%k1}; vmovdqu32 %zmm16, 64(%rdi){%k1}; vzeroupper; ret");
SNIPPET(store_packed, WHAT "vpcompressd %zmm16, (%rdi){%k1}; vpmovdb %zmm16, 64(%rdi); vpmovqd %zmm16, 96(%rdi){%k1}; vzeroupper; ret");
SNIPPET(store_converted, WHAT "vcvtps2ph $0, %zmm16, 32(%rdi); vmovntdq %zmm16, 64(%rdi); vmovhps %xmm16, 128(%rdi); "
                              "vpextrw $5, %xmm16, 136(%rdi); vzeroupper; ret");
SNIPPET(store_scattered, WHAT "vpsrld $28, (%rdx), %zmm17; vpscatterdd %zmm16, (%rdi,%zmm17,8){%k1}; vzeroupper; ret");
SNIPPET(store_below_4g, WHAT "vmovdqu64 %zmm16, 64(%edi); vmovdqu8 %zmm16, 256(%edi){%k1}; vpaddd 64(%edi), %zmm16, %zmm16; "
                             "vmovdqu64 %zmm16, 128(%edi); vzeroupper; ret");
SNIPPET(masks, "kmovq 8(%rsi), %k1; kmovd 4(%rsi), %k2; kmovw 2(%rsi), %k3; kmovb 1(%rsi), %k4; kmovq %k1, (%rdi); "
               "kmovd %k2, 8(%rdi); kmovw %k3, 16(%rdi); kmovb %k4, 24(%rdi); kaddq %k1, %k2, %k5; kmovq %k5, 32(%rdi); "
               "kortestb %k4, %k3; setc %al; setz %ah; ktestd %k1, %k2; setc 40(%rdi); movzwl %ax, %eax; ret");
SNIPPET(flags_kept, "xor %eax, %eax; cmp $3, %rcx; vmovdqu64 (%rsi), %zmm16; vpaddd 64(%rdx), %zmm16, %zmm16; setb %al; "
                    "vmovdqu64 %zmm16, (%rdi); vcomisd 8(%rsi), %xmm16; setp %ah; vzeroupper; ret");
SNIPPET(aligned, "vmovdqa64 (%rsi), %zmm16; " OUT);
/* All registers: from rsi, to rdi; rdx is an area for an image of them. */
#define EACH(text) ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n" text "\n.endr\n"
#define EACH_MASK(text) ".irp n,0,1,2,3,4,5,6,7\n" text "\n.endr\n"
#define LOAD_ALL  EACH("vmovdqu64 64*\\n(%rsi), %zmm\\n") EACH_MASK("kmovq 2048+8*\\n(%rsi), %k\\n")
#define STORE_ALL EACH("vmovdqu64 %zmm\\n, 64*\\n(%rdi)") EACH_MASK("kmovq %k\\n, 2048+8*\\n(%rdi)")
#define CLEAR_ALL "vzeroall\n" EACH("vpxorq %zmm\\n, %zmm\\n, %zmm\\n") EACH_MASK("kxorq %k\\n, %k\\n, %k\\n")
#define ALL_STATE "mov %rdx, %r8; mov %ecx, %eax; xor %edx, %edx\n"
SNIPPET(with_xsave, LOAD_ALL ALL_STATE "xsave64 (%r8)\n" CLEAR_ALL "xrstor64 (%r8)\n" STORE_ALL "vzeroupper; ret");
SNIPPET(with_xsavec, LOAD_ALL ALL_STATE "xsavec (%r8)\n" CLEAR_ALL "xrstor (%r8)\n" STORE_ALL "vzeroupper; ret");
/* The SSE registers, mxcsr among them, are initial, and nobody may find zeros for it. */
SNIPPET(from_initial, "ldmxcsr (%rcx); mov $2, %eax; mov %rdx, %r8; xor %edx, %edx; xrstor64 (%r8); vpxord %zmm16, %zmm16, %zmm16; "
                      "kxnorw %k0, %k0, %k1; vpgatherdd (%rsi,%zmm16,4), %zmm17{%k1}; stmxcsr (%rdi); mov (%rdi), %eax; vzeroupper; ret");
SNIPPET(through_trap, LOAD_ALL "ud2\n" STORE_ALL "vzeroupper; ret");
SNIPPET(see_all, STORE_ALL "ret");

unsigned numbers[16] __attribute__((used)) = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597};
unsigned char results[64] __attribute__((used));
static _Alignas(64) unsigned char source[8192], other[4096];
static unsigned char *out, *edge;

#define OUT_BYTES 512

static void show(const char *name, uint64_t value)
{
	uint64_t digest = 0xcbf29ce484222325;

	for (unsigned i = 0; i < OUT_BYTES; i++)
		digest = (digest ^ out[i]) * 0x100000001b3;
	printf("%s: %016llx %llx\n", name, (unsigned long long)digest, (unsigned long long)value);
	memset(out, 0x5a, OUT_BYTES);
}

/* The mask is in rcx; the result of a snippet that leaves none is what happens to be in rax. */
#define SHOW(code, mask)       (call(code, ADDRESS(out), ADDRESS(source + 256), ADDRESS(other + 256), mask), show(#code, 0))
#define SHOW_VALUE(code, mask) show(#code, call(code, ADDRESS(out), ADDRESS(source + 256), ADDRESS(other + 256), mask))

/* A value that is known to be there natively, so that it cannot be wrong everywhere. */
static void known_value(void)
{
	call(scaled, ADDRESS(out), ADDRESS(source + 256), ADDRESS(other + 256), 0);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t a, b, sum;
		memcpy(&a, source + 256 + 64 + 8 * i, 8);
		memcpy(&b, other + 256 - 64 + 8 * i, 8);
		memcpy(&sum, out + 8 * i, 8);
		CHECK_EQ(sum, a + b);
	}
	show("scaled", 0);
}

/* What the mask leaves out lies behind the last page. */
static void at_the_edge(void)
{
	for (unsigned i = 0; i < 64; i++)
		edge[PAGE - 64 + i] = (unsigned char)(i * 5 + 1);
	for (unsigned left = 1; left < 64; left += 9) {
		uint64_t mask = (1ul << left) - 1;

		call(by_mask, ADDRESS(out), ADDRESS(source), ADDRESS(other), mask);
		show("by_mask", left);
		CHECK(!faults(store_masked, ADDRESS(edge + PAGE - 64), ADDRESS(source), 0, mask & 0xff) ||
		        caught.signal == SIGSEGV);
		memcpy(out, edge + PAGE - 64, 64);
		show("store_masked at the edge", caught.signal);
		/* The first of its two stores is within the page by its mask, the second one never is. */
		CHECK(faults(store_masked, ADDRESS(edge + PAGE - left), ADDRESS(source), 0, mask));
		CHECK_EQ(caught.signal, SIGSEGV);
		CHECK_EQ(caught.address, ADDRESS(edge + PAGE - left + 64));
		memcpy(out, edge + PAGE - 64, 64);
		show("store_masked up to the edge", left);
	}
	uint64_t nowhere = ADDRESS(edge + PAGE);
	show_fault("nothing");
	CHECK(!faults(packed, ADDRESS(out), nowhere, ADDRESS(other), 0));
	show("packed, nothing of it", 0);
	CHECK(!faults(gathered, ADDRESS(out), nowhere, ADDRESS(other), 0));
	show("gathered, nothing of it", 0);
	CHECK(faults(gathered, ADDRESS(out), nowhere, ADDRESS(other), 0x10));
	CHECK(faults(packed, ADDRESS(out), nowhere, ADDRESS(other), 0x8000));
	CHECK_EQ(caught.address, nowhere);
	CHECK(faults(scaled, ADDRESS(out), nowhere, ADDRESS(other), 0));
	CHECK_EQ(caught.address, nowhere + 64);
	CHECK(faults(aligned, ADDRESS(out), ADDRESS(source + 8), 0, 0));
	show_fault("aligned");
}

static unsigned char before[2112], after[2112], within[2112], seen[2112];
static _Alignas(64) unsigned char area[4096];

static void on_trap(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	call(see_all, ADDRESS(within), 0, 0, 0);
	call(with_xsave, ADDRESS(seen), ADDRESS(source), ADDRESS(area), 0xe7);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void whole_state(void)
{
	static const unsigned masks[] = {0xe7, 0xe4, 0x60, 0x80, 0x23, 0};

	for (unsigned i = 0; i < sizeof before; i++)
		before[i] = (unsigned char)(i * 131 + i / 64);
	for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++) {
		memset(other, 0, sizeof other);
		call(with_xsave, ADDRESS(after), ADDRESS(before), ADDRESS(other), masks[i]);
		CHECK_EQ(memcmp(before, after, sizeof before) == 0, masks[i] == 0xe7);
		memcpy(out, after + 1024, OUT_BYTES);
		show("xsave", masks[i]);
		memset(other, 0, sizeof other);
		call(with_xsavec, ADDRESS(after), ADDRESS(before), ADDRESS(other), masks[i]);
		CHECK_EQ(memcmp(before, after, sizeof before) == 0, masks[i] == 0xe7);
		memcpy(out, after + 1600, OUT_BYTES);
		show("xsavec", masks[i]);
	}
	static const uint64_t form = 1ull << 63 | 2;
	static const uint32_t mxcsr = 0x3f80;
	memset(other, 0, sizeof other);
	memcpy(other + 520, &form, sizeof form);
	uint64_t found = call(from_initial, ADDRESS(after), ADDRESS(before), ADDRESS(other), ADDRESS(&mxcsr));
	CHECK_EQ(found, 0x1f80);
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
	CHECK(sigaction(SIGILL, &action, &old) == 0);
	memset(after, 0, sizeof after);
	call(through_trap, ADDRESS(after), ADDRESS(before), 0, 0);
	CHECK(sigaction(SIGILL, &old, NULL) == 0);
	CHECK(memcmp(before, after, sizeof before) == 0);
	memset(out, 0x5a, OUT_BYTES);
	memcpy(out, within + 960, 64);
	show("a handler starts with", within[2048]);
}

int main(void)
{
	unsigned eax, ebx, ecx, edx;

	catch_faults();
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
		skip("no AVX-512");
	for (unsigned i = 0; i < sizeof source; i++)
		source[i] = (unsigned char)(i * 7 + i / 256);
	for (unsigned i = 0; i < sizeof other; i++)
		other[i] = (unsigned char)(i * 29 + 11 + i / 128);
	out = guarded("out", 1);
	edge = guarded("edge", 1);
	memset(out, 0x5a, OUT_BYTES);
	NAME_SNIPPET(aligned);
	name_range("source", source, sizeof source);
	__cpuid_count(13, 0, eax, ebx, ecx, edx);
	printf("state %#x\n", eax & 0xe7);

	known_value();
	/* Twice: the second time nothing is new to a recorder. */
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t mask = 0x5; mask; mask = mask * 3 << 7) {
			SHOW(by_mask, mask);
			SHOW(compared, mask);
			SHOW(packed, mask);
			SHOW(gathered, mask);
			SHOW(store, mask);
			SHOW(store_masked, mask);
			SHOW(store_packed, mask);
			SHOW(store_converted, mask);
			SHOW(store_scattered, mask);
		}
		SHOW(scaled_indexed, 0);
		SHOW(unscaled, 0);
		SHOW(high_bases, 0);
		SHOW(halves, 0);
		SHOW(broadcast, 0);
		SHOW(static_broadcast, 0);
		SHOW(scalar, 0);
		SHOW(rounded, 0);
		SHOW(near_code, 0);
		SHOW(aligned, 0);
		SHOW_VALUE(thread_local, 0);
		SHOW_VALUE(masks, 0);
		for (unsigned i = 1; i < 6; i += 2)
			SHOW_VALUE(flags_kept, i);
		source[300 + round]++;
	}
	unsigned char *low = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(low != MAP_FAILED);
	call(store_below_4g, ADDRESS(low), ADDRESS(source), 0, 0x1234567);
	memcpy(out, low, OUT_BYTES);
	show("store_below_4g", 0);
	at_the_edge();
	whole_state();
	return 0;
}
