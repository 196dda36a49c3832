/*
 * The CPU that a program is told of. It is this one, less what the translator does
 * not offer, and less what is beyond the level that a recording is made for: it can
 * then be replayed on every CPU of that level.
 *
 * A level is one of the x86-64 ABI's. What is in none of them (AES, SHA, ADX, ...)
 * is hidden with every level, although programs like to use it: a CPU of the level
 * need not have it. What stays although no level has it are instructions that are
 * never executed in replay, because their results come from the log: RDRAND,
 * RDSEED, RDPID, RDTSCP and, where there is XSAVE, its variants; what bugnet itself
 * needs: FSGSBASE; and what merely is fast: ERMS, FSRM.
 */
#include "target/stub.h"

#define BIT(n) (1u << (n))
#define ALL    ~0u

#define ANY_SUBLEAF ALL

static struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
	struct cpuid r;
	__asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(subleaf));
	return r;
}

static uint64_t xgetbv(uint32_t index)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* ---- what is offered ---- */

/* AVX-512 in leaf 7: F, DQ, IFMA, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; VP2INTERSECT, FP16 */
#define AVX512_7B (BIT(16) | BIT(17) | BIT(21) | BIT(28) | BIT(30) | BIT(31))
#define AVX512_7C (BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))
#define AVX512_7D (BIT(8) | BIT(23))

/*
 * What is hidden: everything that the translator refuses (AMX, APX, transactions, shadow stacks, user
 * interrupts, key locker) or that its decoder (Zydis 4.0) does not know yet, and the state components that
 * belong to it. A program that asks is told of a CPU that does not have them. Where new features are still
 * being added, only those that are known are let through.
 */
static struct cpuid translated_cpuid(
        uint32_t leaf, uint32_t subleaf, struct cpuid r, const volatile struct info *info)
{
	bool wide = info->vectors & VECTORS_AVX512;

	if (leaf == 7 && subleaf == 0) {
		r.b &= ~(BIT(4) | BIT(11) | BIT(14)); /* HLE, RTM, MPX */
		r.b &= wide ? ~(BIT(26) | BIT(27))
		            : ~(AVX512_7B | BIT(26) | BIT(27)); /* PF, ER: Xeon Phi's */
		r.c &= wide ? ALL : ~AVX512_7C;
		r.c &= ~(BIT(7) | BIT(23)); /* CET_SS, key locker */
		r.d &= wide ? ALL : ~AVX512_7D;
		/* 4VNNIW, 4FMAPS: Xeon Phi's; user interrupts, CET_IBT, AMX */
		r.d &= ~(BIT(2) | BIT(3) | BIT(5) | BIT(20) | BIT(22) | BIT(24) | BIT(25));
		if (r.a > 2)
			r.a = 2;
	} else if (leaf == 7 && subleaf == 1) {
		/* AVX_VNNI; fast short rep movs, stos, cmps; AVX512_BF16 */
		r.a &= BIT(4) | BIT(10) | BIT(11) | BIT(12) | (wide ? BIT(5) : 0);
		r.b = r.c = r.d = 0;
	} else if (leaf == 7 && subleaf > 2) {
		r = (struct cpuid){0};
	} else if (leaf == 0xd && subleaf == 0) {
		uint32_t size =
		        wide ? info->standard_at[INFO_COMPONENTS - 1] + VECTORS_BYTES - VECTORS_AT_ZMM_MORE
		             : VECTORS_AVX_BYTES;
		r.a &= info->vectors;
		r.d = 0;
		if (r.c > size)
			r.b = r.c = size;
	} else if (leaf == 0xd && subleaf == 1) {
		r.c = 0;
		r.d = 0;
	} else if (leaf == 0xd && subleaf > 2 && !(subleaf < 64 && info->vectors >> subleaf & 1)) {
		r = (struct cpuid){0};
	} else if (leaf == 0x19 || leaf == 0x1d || leaf == 0x1e || leaf == 0x24 || leaf == 0x29) {
		r = (struct cpuid){0}; /* key locker, AMX, AVX10, APX */
	} else if (leaf == 0x80000021) {
		r.a &= ~(1u << 20 | 1u << 23); /* PREFETCHI, AVX512_BMM */
	}
	return r;
}

/* ---- levels ---- */

/* Leaf 1, ECX */
#define PCLMULQDQ BIT(1)
#define FMA       BIT(12)
#define MOVBE     BIT(22)
#define AES       BIT(25)
#define XSAVE     (BIT(26) | BIT(27))
#define AVX       BIT(28)
#define F16C      BIT(29)
/* Leaf 7, EBX */
#define FSGSBASE  BIT(0)
#define BMI1      BIT(3)
#define AVX2      BIT(5)
#define BMI2      BIT(8)
#define ERMS      BIT(9)
#define RDSEED    BIT(18)
#define X87_KNOWN (BIT(6) | BIT(13)) /* how the x87 unit remembers its last instruction */
/* Leaf 7, ECX and EDX; leaf 7.1, EAX */
#define RDPID     BIT(22)
#define FSRM      BIT(4)
#define FAST_REP  (BIT(10) | BIT(11) | BIT(12))
/* Leaf 0x80000001, ECX and EDX */
#define LAHF      BIT(0)
#define LZCNT     BIT(5)
#define TOPOLOGY  (BIT(1) | BIT(3) | BIT(22)) /* how cores are numbered */
#define FFXSR     BIT(25)
#define NOW3D     (BIT(30) | BIT(31))

#define BEYOND_2 (FMA | MOVBE | XSAVE | AVX | F16C)
#define IN_3     (BMI1 | AVX2 | BMI2)

/*
 * Bits that stay, for level 2 and for those above. Leaf 1 is full, so that it is
 * enough to name what goes; elsewhere more may come, and what stays is named.
 */
/* clang-format off */
#define ALWAYS (FSGSBASE | ERMS | RDSEED | X87_KNOWN)
static const struct level_mask {
	uint32_t leaf, subleaf;
	struct cpuid keep_2, keep_3;
} level_masks[] = {
	{1, ANY_SUBLEAF, {ALL, ALL, ~(PCLMULQDQ | AES | BEYOND_2), ALL},
	                 {ALL, ALL, ~(PCLMULQDQ | AES), ALL}},
	{7, 0,           {ALL, ALWAYS, RDPID, FSRM},
	                 {ALL, ALWAYS | IN_3, RDPID, FSRM}},
	{7, ANY_SUBLEAF, {FAST_REP, 0, 0, 0},
	                 {FAST_REP, 0, 0, 0}},
	{0xd, 1,           {0, 0, 0, 0},
	                   {7, ALL, ALL, ALL}}, /* XSAVEOPT, XSAVEC, XGETBV with index 1 */
	{0xd, ANY_SUBLEAF, {0, 0, 0, 0},
	                   {ALL, ALL, ALL, ALL}},
	{0x12, ANY_SUBLEAF, {0}, {0}}, /* SGX */
	{0x14, ANY_SUBLEAF, {0}, {0}}, /* traces */
	{0x80000001, ANY_SUBLEAF, {ALL, ALL, LAHF | TOPOLOGY, ~(FFXSR | NOW3D)},
	                          {ALL, ALL, LAHF | TOPOLOGY | LZCNT, ~(FFXSR | NOW3D)}},
	{0x80000008, ANY_SUBLEAF, {ALL, 0, ALL, ALL},
	                          {ALL, 0, ALL, ALL}}, /* CLZERO, RDPRU, MCOMMIT, ... */
	{0x8000000a, ANY_SUBLEAF, {0}, {0}}, /* SVM */
	{0x8000001b, ANY_SUBLEAF, {0}, {0}}, /* IBS */
	{0x8000001c, ANY_SUBLEAF, {0}, {0}}, /* LWP */
	{0x80000021, ANY_SUBLEAF, {0}, {0}}, /* more of AMD's */
	{0xc0000001, ANY_SUBLEAF, {0}, {0}}, /* PadLock */
};
/* clang-format on */

static struct cpuid limited_cpuid(uint32_t leaf, uint32_t subleaf, struct cpuid r, unsigned level)
{
	for (unsigned i = 0; level && i < sizeof level_masks / sizeof level_masks[0]; i++) {
		const struct level_mask *mask = &level_masks[i];
		const struct cpuid *keep = level > 2 ? &mask->keep_3 : &mask->keep_2;

		if (mask->leaf == leaf && (mask->subleaf == subleaf || mask->subleaf == ANY_SUBLEAF))
			return (struct cpuid){r.a & keep->a, r.b & keep->b, r.c & keep->c, r.d & keep->d};
	}
	return r;
}

struct cpuid offered_cpuid(uint32_t leaf, uint32_t subleaf)
{
	struct cpuid r = translated_cpuid(leaf, subleaf, cpuid(leaf, subleaf), info());

	return limited_cpuid(leaf, subleaf, r, info()->cpu_level);
}

uint64_t offered_xgetbv(uint32_t index)
{
	return xgetbv(index) & info()->vectors;
}
