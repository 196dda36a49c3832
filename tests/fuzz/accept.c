/*
 * Which decoded instructions may be in a sequence.
 *
 * Not those whose result differs from run to run (time, random numbers, the CPU's number), or by design
 * (cpuid, xgetbv), not system calls, not waits, and not branches: pieces.c makes those with targets that
 * exist. Those that fault by their nature or that many CPUs lack are kept, but few, because nothing after
 * them in the sequence would be tested.
 */
#include "fuzz.h"

/* What pieces.c emits with operands under control: random ones would not be repeatable, or set TF. */
static const ZydisMnemonic never[] = {
        /* system calls and the like */
        ZYDIS_MNEMONIC_SYSCALL,
        ZYDIS_MNEMONIC_SYSENTER,
        ZYDIS_MNEMONIC_SYSEXIT,
        ZYDIS_MNEMONIC_SYSRET,
        /* not repeatable */
        ZYDIS_MNEMONIC_RDTSC,
        ZYDIS_MNEMONIC_RDTSCP,
        ZYDIS_MNEMONIC_RDRAND,
        ZYDIS_MNEMONIC_RDSEED,
        ZYDIS_MNEMONIC_RDPID,
        ZYDIS_MNEMONIC_RDPMC,
        ZYDIS_MNEMONIC_RDPRU,
        ZYDIS_MNEMONIC_LSL,
        ZYDIS_MNEMONIC_SGDT,
        ZYDIS_MNEMONIC_SIDT,
        /* differ by design */
        ZYDIS_MNEMONIC_CPUID,
        ZYDIS_MNEMONIC_XGETBV,
        /* waits */
        ZYDIS_MNEMONIC_MONITOR,
        ZYDIS_MNEMONIC_MWAIT,
        ZYDIS_MNEMONIC_MONITORX,
        ZYDIS_MNEMONIC_MWAITX,
        /* memory protection keys would lock us out */
        ZYDIS_MNEMONIC_WRPKRU,
        ZYDIS_MNEMONIC_RDPKRU,
        /* far transfers */
        ZYDIS_MNEMONIC_IRET,
        ZYDIS_MNEMONIC_IRETD,
        ZYDIS_MNEMONIC_IRETQ,
        /* in pieces.c */
        ZYDIS_MNEMONIC_POPF,
        ZYDIS_MNEMONIC_POPFD,
        ZYDIS_MNEMONIC_POPFQ,
        ZYDIS_MNEMONIC_XSAVE,
        ZYDIS_MNEMONIC_XSAVE64,
        ZYDIS_MNEMONIC_XSAVEC,
        ZYDIS_MNEMONIC_XSAVEC64,
        ZYDIS_MNEMONIC_XSAVEOPT,
        ZYDIS_MNEMONIC_XSAVEOPT64,
        ZYDIS_MNEMONIC_FXSAVE,
        ZYDIS_MNEMONIC_FXSAVE64,
        ZYDIS_MNEMONIC_FNSAVE,
        ZYDIS_MNEMONIC_FNSTENV,
        ZYDIS_MNEMONIC_FLDCW,
        /* wait for what may never come */
        ZYDIS_MNEMONIC_MCOMMIT,
};

/* Of AVX-512, what many CPUs that have it lack. */
static enum acceptance accept_wide(ZydisISASet set)
{
	switch (set) {
	case ZYDIS_ISA_SET_AVX512ER_512:
	case ZYDIS_ISA_SET_AVX512ER_SCALAR:
	case ZYDIS_ISA_SET_AVX512PF_512:
	case ZYDIS_ISA_SET_AVX512_4FMAPS_512:
	case ZYDIS_ISA_SET_AVX512_4FMAPS_SCALAR:
	case ZYDIS_ISA_SET_AVX512_4VNNIW_512:
	case ZYDIS_ISA_SET_AVX512_FP16_128:
	case ZYDIS_ISA_SET_AVX512_FP16_128N:
	case ZYDIS_ISA_SET_AVX512_FP16_256:
	case ZYDIS_ISA_SET_AVX512_FP16_512:
	case ZYDIS_ISA_SET_AVX512_FP16_SCALAR:
	case ZYDIS_ISA_SET_AVX512_VP2INTERSECT_128:
	case ZYDIS_ISA_SET_AVX512_VP2INTERSECT_256:
	case ZYDIS_ISA_SET_AVX512_VP2INTERSECT_512:
		return RARELY;
	default:
		return ALWAYS;
	}
}

static enum acceptance accept_isa_set(ZydisISASet set)
{
	if (set >= ZYDIS_ISA_SET_AVX512BW_128 && set <= ZYDIS_ISA_SET_AVX512_VPOPCNTDQ_512)
		return settings.wide ? accept_wide(set) : settings.avx512 ? RARELY : NEVER;
	switch (set) {
	case ZYDIS_ISA_SET_AMX_BF16:
	case ZYDIS_ISA_SET_AMX_INT8:
	case ZYDIS_ISA_SET_AMX_TILE:
		return settings.avx512 ? RARELY : NEVER;
	case ZYDIS_ISA_SET_AMD3DNOW:
	case ZYDIS_ISA_SET_AMD_INVLPGB:
	case ZYDIS_ISA_SET_ENQCMD:
	case ZYDIS_ISA_SET_HRESET:
	case ZYDIS_ISA_SET_KEYLOCKER:
	case ZYDIS_ISA_SET_KEYLOCKER_WIDE:
	case ZYDIS_ISA_SET_KNCE:
	case ZYDIS_ISA_SET_KNCJKBR:
	case ZYDIS_ISA_SET_KNCSTREAM:
	case ZYDIS_ISA_SET_KNCV:
	case ZYDIS_ISA_SET_KNC_MISC:
	case ZYDIS_ISA_SET_KNC_PF_HINT:
	case ZYDIS_ISA_SET_PADLOCK_ACE:
	case ZYDIS_ISA_SET_PADLOCK_PHE:
	case ZYDIS_ISA_SET_PADLOCK_PMM:
	case ZYDIS_ISA_SET_PADLOCK_RNG:
	case ZYDIS_ISA_SET_PCONFIG:
	case ZYDIS_ISA_SET_PKU:
	case ZYDIS_ISA_SET_PT:
	case ZYDIS_ISA_SET_RTM:
	case ZYDIS_ISA_SET_SGX:
	case ZYDIS_ISA_SET_SGX_ENCLV:
	case ZYDIS_ISA_SET_SMX:
	case ZYDIS_ISA_SET_SNP:
	case ZYDIS_ISA_SET_SVM:
	case ZYDIS_ISA_SET_TDX:
	case ZYDIS_ISA_SET_UINTR:
	case ZYDIS_ISA_SET_VMFUNC:
	case ZYDIS_ISA_SET_VTX:
	case ZYDIS_ISA_SET_WAITPKG:
		return NEVER;
	case ZYDIS_ISA_SET_XOP:
	case ZYDIS_ISA_SET_FMA4:
	case ZYDIS_ISA_SET_TBM:
	case ZYDIS_ISA_SET_LWP:
	case ZYDIS_ISA_SET_CET:
	case ZYDIS_ISA_SET_MPX:
	case ZYDIS_ISA_SET_MOVDIR:
	case ZYDIS_ISA_SET_SERIALIZE:
	case ZYDIS_ISA_SET_TSX_LDTRK:
	case ZYDIS_ISA_SET_AVX_VNNI:
		return RARELY;
	case ZYDIS_ISA_SET_SSE4A:
	case ZYDIS_ISA_SET_GFNI:
	case ZYDIS_ISA_SET_AVX_GFNI:
	case ZYDIS_ISA_SET_CLZERO:
		return SELDOM;
	default:
		return ALWAYS;
	}
}

static bool is_never[ZYDIS_MNEMONIC_MAX_VALUE + 1];

static void fill_never(void)
{
	for (unsigned n = 0; n < sizeof never / sizeof *never; n++)
		is_never[never[n]] = true;
	is_never[ZYDIS_MNEMONIC_INVALID] = true;
}

/* mov to a segment register, pop fs and gs, lss, lfs, lgs, wrfsbase, wrgsbase */
static bool changes_segments(const ZydisDecodedInstruction *d)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_LSS:
	case ZYDIS_MNEMONIC_LFS:
	case ZYDIS_MNEMONIC_LGS:
	case ZYDIS_MNEMONIC_WRFSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
		return true;
	case ZYDIS_MNEMONIC_POP:
		return d->opcode == 0xa1 || d->opcode == 0xa9;
	case ZYDIS_MNEMONIC_MOV:
		return d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && d->opcode == 0x8e;
	default:
		return false;
	}
}

/*
 * push fs, push gs, mov r/m, sreg. The CPU keeps the two low bits of a null selector only until the next interrupt, so
 * what these read after such a selector was loaded is a matter of luck, natively too.
 */
static bool reads_selector(const ZydisDecodedInstruction *d)
{
	if (d->mnemonic == ZYDIS_MNEMONIC_PUSH)
		return d->opcode_map == ZYDIS_OPCODE_MAP_0F && (d->opcode == 0xa0 || d->opcode == 0xa8);
	return d->mnemonic == ZYDIS_MNEMONIC_MOV && d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && d->opcode == 0x8c;
}

enum acceptance accept_instruction(const ZydisDecodedInstruction *d)
{
	if (!is_never[ZYDIS_MNEMONIC_INVALID])
		fill_never();
	if (is_never[d->mnemonic] || d->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		return NEVER;
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
		return NEVER;
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		if (d->mnemonic == ZYDIS_MNEMONIC_INT && d->raw.imm[0].value.u == 0x80)
			return NEVER;
		return RARELY;
	default:
		break;
	}
	if ((settings.without & WITHOUT_SEGMENTS && changes_segments(d)) || reads_selector(d))
		return NEVER;
	enum acceptance by_set = accept_isa_set(d->meta.isa_set);
	if (by_set != ALWAYS)
		return by_set;
	if (d->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return RARELY;
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_LDMXCSR:
	case ZYDIS_MNEMONIC_VLDMXCSR:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_LSS:
	case ZYDIS_MNEMONIC_LFS:
	case ZYDIS_MNEMONIC_LGS:
		return RARELY; /* random operands make them fault */
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_FNOP:
	case ZYDIS_MNEMONIC_ENTER:
		return SELDOM;
	default:
		return ALWAYS;
	}
}

bool has_forbidden_bytes(const uint8_t *bytes, unsigned size)
{
	for (unsigned n = 0; n + 1 < size; n++) {
		uint8_t a = bytes[n], b = bytes[n + 1], c = n + 2 < size ? bytes[n + 2] : 0;
		if (a == 0xcd && b == 0x80)
			return true;
		if (a != 0x0f)
			continue;
		/* syscall, sysenter, rdtsc, rdpmc, cpuid */
		if (b == 0x05 || b == 0x34 || b == 0x31 || b == 0x33 || b == 0xa2)
			return true;
		/* rdrand, rdseed, rdpid */
		if (b == 0xc7 && c >= 0xf0)
			return true;
		/* xgetbv, rdtscp, monitorx, mwaitx, rdpru, vmmcall and more of that group */
		if (b == 0x01 && (c >= 0xf8 || (c >= 0xc0 && c < 0xe0)))
			return true;
	}
	return false;
}
