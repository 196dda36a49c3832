/*
 * Decoding and region discovery.
 *
 * From the requested pc, code is decoded in straight runs. A run ends at an
 * instruction that ends a block; where control may go from there is put in a
 * queue, so that near things come before far ones when the budget of
 * instructions runs out. Call targets are not followed: they are named in
 * callees, and the caller decides.
 *
 * A pc is an instruction of the region once it was decoded from exactly there.
 * A jump into the middle of another instruction just makes a second instruction
 * with overlapping bytes, in a block of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "translate/decode.h"
#include "translate/liveness.h"

/* -- registers and flags ------------------------------------------------- */

/* The number of the general register that `name` is a part of, or NO_REGISTER. */
static uint8_t register_number(ZydisRegister name)
{
	if (name >= ZYDIS_REGISTER_RAX && name <= ZYDIS_REGISTER_R15)
		return name - ZYDIS_REGISTER_RAX;
	if (name >= ZYDIS_REGISTER_EAX && name <= ZYDIS_REGISTER_R15D)
		return name - ZYDIS_REGISTER_EAX;
	if (name >= ZYDIS_REGISTER_AX && name <= ZYDIS_REGISTER_R15W)
		return name - ZYDIS_REGISTER_AX;
	if (name >= ZYDIS_REGISTER_AL && name <= ZYDIS_REGISTER_BL)
		return name - ZYDIS_REGISTER_AL;
	if (name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH)
		return name - ZYDIS_REGISTER_AH;
	if (name >= ZYDIS_REGISTER_SPL && name <= ZYDIS_REGISTER_R15B)
		return name - ZYDIS_REGISTER_SPL + RSP;
	return NO_REGISTER;
}

static uint16_t register_bit(ZydisRegister name)
{
	uint8_t number = register_number(name);

	return number == NO_REGISTER ? 0 : 1u << number;
}

static unsigned status_flags(ZydisAccessedFlagsMask mask)
{
	return (mask & ZYDIS_CPUFLAG_CF ? FLAG_CF : 0) | (mask & ZYDIS_CPUFLAG_PF ? FLAG_PF : 0) |
	       (mask & ZYDIS_CPUFLAG_AF ? FLAG_AF : 0) | (mask & ZYDIS_CPUFLAG_ZF ? FLAG_ZF : 0) |
	       (mask & ZYDIS_CPUFLAG_SF ? FLAG_SF : 0) | (mask & ZYDIS_CPUFLAG_OF ? FLAG_OF : 0);
}

/*
 * Flags the instruction surely gives a new value. Undefined ones do not count,
 * as some CPUs leave them alone (bsf, mul); logic operations are the exception,
 * all CPUs clear AF there and compilers use them too often to give that up.
 */
static unsigned flags_overwritten(const ZydisDecodedInstruction *zydis)
{
	const ZydisAccessedFlags *flags = zydis->cpu_flags;

	if (!flags)
		return 0;
	/* No iteration, no flags. */
	if (zydis->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return 0;

	unsigned overwritten = status_flags(flags->modified | flags->set_0 | flags->set_1);

	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_TEST:
		return FLAGS_ALL;
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
		/* A count of zero changes no flags; OF is only defined for a count of one. */
		if (zydis->opcode == 0xc0 || zydis->opcode == 0xc1)
			return zydis->raw.imm[0].value.u & 0x1f ? overwritten & ~(FLAG_OF | FLAG_AF) : 0;
		return zydis->opcode == 0xd0 || zydis->opcode == 0xd1 ? overwritten & ~FLAG_AF : 0;
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return 0;
	default:
		return overwritten & ~status_flags(flags->undefined);
	}
}

static bool writes_flags(const ZydisDecodedInstruction *zydis)
{
	const ZydisAccessedFlags *flags = zydis->cpu_flags;

	return flags && status_flags(flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
}

/* -- classification ------------------------------------------------------ */

/* xor r,r and sub r,r give zero whatever r was. */
static bool is_zero_idiom(const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands)
{
	return (zydis->mnemonic == ZYDIS_MNEMONIC_XOR || zydis->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[0].reg.value == operands[1].reg.value && operands[0].size >= 32;
}

/* Operations on general registers that cannot fault when no memory is involved. */
static bool is_harmless(const ZydisDecodedInstruction *zydis)
{
	if (zydis->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return false;
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
		return false;
	default:
		break;
	}
	switch (zydis->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_FLAGOP:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
		return true;
	default:
		return zydis->mnemonic == ZYDIS_MNEMONIC_LEA || zydis->mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	}
}

static bool is_access(const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
	       zydis->meta.category != ZYDIS_CATEGORY_NOP && zydis->meta.category != ZYDIS_CATEGORY_WIDENOP &&
	       zydis->meta.category != ZYDIS_CATEGORY_PREFETCH;
}

/* mov between the accumulator and an absolute address, which stands in the instruction itself */
static bool is_moffs(const ZydisDecodedInstruction *zydis)
{
	return !zydis->raw.modrm.offset && zydis->raw.disp.size;
}

static void examine_memory(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operand)
{
	bool access = is_access(zydis, operand);
	bool explicit = operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM || is_moffs(zydis);

	instruction->is_memory |= operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM;
	instruction->vector_index |= operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
	if (operand->mem.segment == ZYDIS_REGISTER_FS)
		instruction->fs = true;
	if (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP) {
		/* A nop's operand is no address of anything: leave it. */
		if (zydis->meta.category == ZYDIS_CATEGORY_NOP ||
		        zydis->meta.category == ZYDIS_CATEGORY_WIDENOP)
			return;
		instruction->memory = MEMORY_RIP;
		instruction->target = instruction->pc + zydis->length + zydis->raw.disp.value;
		if (zydis->mnemonic == ZYDIS_MNEMONIC_LEA)
			instruction->kind = KIND_LEA;
	} else {
		instruction->base = register_number(operand->mem.base);
	}
	if (!access || operand->mem.segment != ZYDIS_REGISTER_GS)
		return;
	if (operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
		instruction->memory = MEMORY_GS_VECTOR;
	else
		instruction->memory = explicit ? MEMORY_GS : MEMORY_GS_IMPLICIT;
}

static void examine_operands(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	bool idiom = is_zero_idiom(zydis, operands);
	bool stack_only = zydis->mnemonic == ZYDIS_MNEMONIC_PUSH || zydis->mnemonic == ZYDIS_MNEMONIC_CALL;
	uint16_t reads = 0, writes = 0, kills = 0;

	for (unsigned i = 0; i < zydis->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			uint16_t address = register_bit(operand->mem.base) | register_bit(operand->mem.index);
			bool rewritten = instruction->memory;

			if (operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM || is_moffs(zydis) ||
			        operand->mem.segment == ZYDIS_REGISTER_GS)
				examine_memory(instruction, zydis, operand);
			rewritten = instruction->memory != MEMORY_AS_IS && !rewritten;
			instruction->use |= address;
			if (operand->encoding ==
			        ZYDIS_OPERAND_ENCODING_MODRM_RM) /* not the stack of a push */
				instruction->address_registers |= address;
			if (!rewritten || instruction->memory == MEMORY_GS_IMPLICIT)
				instruction->used |= address;
			if (is_access(zydis, operand)) {
				instruction->may_fault = true;
				if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
					instruction->reads_memory = true;
				if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
					*(stack_only ? &instruction->writes_stack
					             : &instruction->writes_memory) = true;
			}
		} else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			uint16_t bit = register_bit(operand->reg.value);

			if (!bit) {
				if (ZydisRegisterGetClass(operand->reg.value) != ZYDIS_REGCLASS_FLAGS &&
				        ZydisRegisterGetClass(operand->reg.value) != ZYDIS_REGCLASS_IP)
					instruction->may_fault = true;
				continue;
			}
			if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ && !idiom)
				reads |= bit;
			if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				writes |= bit;
			/* A 32-bit write clears the upper half; shorter ones leave the rest alone. */
			if (operand->actions & ZYDIS_OPERAND_ACTION_WRITE && operand->size >= 32) {
				kills |= bit;
				if (i == 0)
					instruction->destination = register_number(operand->reg.value);
			}
		}
	}
	/* With a source of zero they may leave the destination as it is. */
	if (zydis->mnemonic == ZYDIS_MNEMONIC_BSF || zydis->mnemonic == ZYDIS_MNEMONIC_BSR) {
		reads |= kills;
		kills = 0;
	}
	/* f3 41 90 is no pause to the CPU, but xchg r8, rax. */
	if (zydis->mnemonic == ZYDIS_MNEMONIC_PAUSE && zydis->raw.rex.B)
		reads |= register_bit(ZYDIS_REGISTER_RAX) | register_bit(ZYDIS_REGISTER_R8);
	if (zydis->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		kills = 0;
	instruction->used |= reads | writes;
	instruction->written = writes;
	instruction->use |= reads;
	instruction->kill |= kills;
	instruction->overwrites = instruction->destination != NO_REGISTER &&
	                          kills & (1u << instruction->destination) &&
	                          !(reads & (1u << instruction->destination));
	if (!is_harmless(zydis))
		instruction->may_fault = true;
}

static void examine_encoding(
        struct instruction *instruction, const ZydisDecodedInstruction *zydis, unsigned disp_unit)
{
	struct encoding *encoding = &instruction->encoding;

	encoding->prefix_count = zydis->raw.prefix_count;
	if (zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
		encoding->vex = zydis->raw.vex.offset;
		encoding->vex_size = zydis->raw.vex.size;
	} else if (zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_XOP) {
		encoding->vex = zydis->raw.xop.offset;
		encoding->vex_size = 3;
	} else if (zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
		encoding->vex = zydis->raw.evex.offset;
		encoding->vex_size = 4;
	} else if (zydis->attributes & ZYDIS_ATTRIB_HAS_REX) {
		encoding->has_rex = true;
		encoding->rex = zydis->raw.rex.offset;
	}
	encoding->modrm = zydis->raw.modrm.offset;
	encoding->sib = zydis->raw.sib.offset;
	encoding->disp = zydis->raw.disp.offset;
	encoding->disp_size = zydis->raw.disp.size / 8;
	encoding->disp_unit = (uint8_t)(disp_unit ? disp_unit : 1);
	encoding->moffs = is_moffs(zydis);
	if (encoding->disp_size)
		encoding->tail = encoding->disp + encoding->disp_size;
	else if (encoding->sib)
		encoding->tail = encoding->sib + 1;
	else
		encoding->tail = encoding->modrm ? encoding->modrm + 1 : zydis->length;
}

static void set_emulated(struct instruction *instruction, unsigned kind, unsigned argument)
{
	instruction->kind = KIND_EMULATE;
	instruction->detail = EMULATE_DETAIL(kind, instruction->length, argument);
}

static void set_image(struct instruction *instruction, unsigned argument)
{
	instruction->kind = KIND_IMAGE;
	instruction->detail = EMULATE_DETAIL(EMULATE_FIX_X87_PC, instruction->length, argument);
}

/* Is operand 0 of a mov, pop the GS selector? */
static bool is_gs(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == ZYDIS_REGISTER_GS;
}

static void classify_branch(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	bool call = zydis->mnemonic == ZYDIS_MNEMONIC_CALL;

	if (zydis->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
		set_emulated(instruction, EMULATE_FAR, (call ? FAR_CALL : FAR_JMP) | instruction->width << 4);
	} else if (operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		instruction->kind = call ? KIND_CALL : KIND_JUMP;
	} else {
		/* With a 66 prefix AMD takes 16 bits, Intel 64 as always; we do the latter. */
		instruction->kind = call ? KIND_CALL_INDIRECT : KIND_JUMP_INDIRECT;
	}
}

static void classify(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	unsigned width = instruction->width;

	instruction->wide = zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
	                    zydis->meta.category == ZYDIS_CATEGORY_KMASK;
	if (zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
	        zydis->meta.category == ZYDIS_CATEGORY_AMX_TILE ||
	        zydis->meta.category == ZYDIS_CATEGORY_UINTR) {
		instruction->kind = KIND_REFUSED;
		return;
	}
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		classify_branch(instruction, zydis, operands);
		return;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		instruction->kind = KIND_LOOP;
		return;
	case ZYDIS_MNEMONIC_RET:
		if (zydis->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || (zydis->opcode & 0xfe) == 0xca) {
			set_emulated(instruction, EMULATE_FAR, FAR_RET | width << 4);
			instruction->pop = zydis->opcode == 0xca ? zydis->raw.imm[0].value.u : 0;
			return;
		}
		instruction->kind = KIND_RETURN;
		instruction->pop = zydis->opcode == 0xc2 ? zydis->raw.imm[0].value.u : 0;
		return;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		set_emulated(instruction, EMULATE_FAR, FAR_IRET | width << 4);
		return;
	case ZYDIS_MNEMONIC_SYSCALL:
		instruction->kind = KIND_SYSCALL;
		return;
	case ZYDIS_MNEMONIC_INT:
		if (zydis->raw.imm[0].value.u == 0x80)
			set_emulated(instruction, EMULATE_INT80, 0);
		else if (zydis->raw.imm[0].value.u != 3 && zydis->raw.imm[0].value.u != 4)
			instruction->kind = KIND_STOP;
		return;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		instruction->kind = KIND_STOP;
		return;
	case ZYDIS_MNEMONIC_CPUID:
		set_emulated(instruction, EMULATE_CPUID, 0);
		return;
	case ZYDIS_MNEMONIC_XGETBV:
		set_emulated(instruction, EMULATE_XGETBV, 0);
		return;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
		set_emulated(instruction, EMULATE_POPF, zydis->mnemonic == ZYDIS_MNEMONIC_POPF ? 2 : 8);
		return;
	case ZYDIS_MNEMONIC_RDGSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
		set_emulated(instruction,
		        zydis->mnemonic == ZYDIS_MNEMONIC_RDGSBASE ? EMULATE_RDGSBASE : EMULATE_WRGSBASE,
		        register_number(operands[0].reg.value) | operands[0].size / 8 << 4);
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (is_gs(&operands[0]))
			set_emulated(instruction, EMULATE_NATIVE, 0);
		return;
	case ZYDIS_MNEMONIC_POP:
		if (is_gs(&operands[0]))
			set_emulated(instruction, EMULATE_NATIVE, 0);
		instruction->is_pop = true;
		return;
	case ZYDIS_MNEMONIC_LGS:
		set_emulated(instruction, EMULATE_NATIVE, 0);
		return;
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FNSAVE:
		/* 16 bits of a code-cache address would not tell where it is: the stub does it. */
		if (zydis->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
			set_emulated(
			        instruction, EMULATE_X87_ENV16, zydis->mnemonic == ZYDIS_MNEMONIC_FNSAVE);
		else
			set_image(instruction, X87_IMAGE_ENV32);
		return;
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEOPT:
		instruction->xstate = zydis->mnemonic != ZYDIS_MNEMONIC_FXSAVE;
		set_image(instruction, X87_IMAGE_FX32 | (instruction->xstate ? X87_IMAGE_XSAVE : 0));
		return;
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
		instruction->xstate = zydis->mnemonic != ZYDIS_MNEMONIC_FXSAVE64;
		set_image(instruction, X87_IMAGE_FX64 | (instruction->xstate ? X87_IMAGE_XSAVE : 0));
		return;
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
		instruction->xstate = true;
		return;
	case ZYDIS_MNEMONIC_SYSENTER:
		instruction->kind = KIND_UNDEFINED;
		return;
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_WRSSD:
	case ZYDIS_MNEMONIC_WRSSQ:
	case ZYDIS_MNEMONIC_WRUSSD:
	case ZYDIS_MNEMONIC_WRUSSQ:
	case ZYDIS_MNEMONIC_INCSSPD:
	case ZYDIS_MNEMONIC_INCSSPQ:
	case ZYDIS_MNEMONIC_SAVEPREVSSP:
	case ZYDIS_MNEMONIC_RSTORSSP:
		instruction->kind = KIND_REFUSED;
		return;
	default:
		if (zydis->meta.category == ZYDIS_CATEGORY_COND_BR)
			instruction->kind = KIND_CONDITIONAL;
	}
}

/*
 * An address that is truncated before the GS base is added cannot be had by
 * adding it to a register. The x87 unit remembers where an operand was in its
 * segment. A bit offset is added before the address is truncated. And what shows system registers is done by
 * the kernel in the CPU's place (UMIP), which does not understand every operand.
 */
static bool needs_gs_base(const struct instruction *instruction)
{
	if (instruction->kind != KIND_PLAIN)
		return false;
	if (instruction->memory == MEMORY_GS_IMPLICIT || instruction->memory == MEMORY_GS_VECTOR)
		return instruction->address32;
	if (instruction->memory == MEMORY_RIP)
		return instruction->umip && instruction->address32;
	if (instruction->memory != MEMORY_GS)
		return false;
	return instruction->x87 || instruction->umip || (instruction->bit_string && instruction->address32);
}

/* bt, bts, btr, btc with a register for the bit: it reaches beyond the operand. */
static bool is_bit_string(const ZydisDecodedInstruction *zydis)
{
	return zydis->opcode_map == ZYDIS_OPCODE_MAP_0F && (zydis->opcode & 0xe7) == 0xa3 &&
	       zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

/* How exact they are is for the processor to choose, within bounds. */
static bool is_approximate(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_RCPPS:
	case ZYDIS_MNEMONIC_RCPSS:
	case ZYDIS_MNEMONIC_RSQRTPS:
	case ZYDIS_MNEMONIC_RSQRTSS:
	case ZYDIS_MNEMONIC_VRCPPS:
	case ZYDIS_MNEMONIC_VRCPSS:
	case ZYDIS_MNEMONIC_VRSQRTPS:
	case ZYDIS_MNEMONIC_VRSQRTSS:
	case ZYDIS_MNEMONIC_VRCP14PD:
	case ZYDIS_MNEMONIC_VRCP14PS:
	case ZYDIS_MNEMONIC_VRCP14SD:
	case ZYDIS_MNEMONIC_VRCP14SS:
	case ZYDIS_MNEMONIC_VRCP28PD:
	case ZYDIS_MNEMONIC_VRCP28PS:
	case ZYDIS_MNEMONIC_VRCP28SD:
	case ZYDIS_MNEMONIC_VRCP28SS:
	case ZYDIS_MNEMONIC_VRCPPH:
	case ZYDIS_MNEMONIC_VRCPSH:
	case ZYDIS_MNEMONIC_VRSQRT14PD:
	case ZYDIS_MNEMONIC_VRSQRT14PS:
	case ZYDIS_MNEMONIC_VRSQRT14SD:
	case ZYDIS_MNEMONIC_VRSQRT14SS:
	case ZYDIS_MNEMONIC_VRSQRT28PD:
	case ZYDIS_MNEMONIC_VRSQRT28PS:
	case ZYDIS_MNEMONIC_VRSQRT28SD:
	case ZYDIS_MNEMONIC_VRSQRT28SS:
	case ZYDIS_MNEMONIC_VRSQRTPH:
	case ZYDIS_MNEMONIC_VRSQRTSH:
	case ZYDIS_MNEMONIC_VEXP2PD:
	case ZYDIS_MNEMONIC_VEXP2PS:
	case ZYDIS_MNEMONIC_F2XM1:
	case ZYDIS_MNEMONIC_FYL2X:
	case ZYDIS_MNEMONIC_FYL2XP1:
	case ZYDIS_MNEMONIC_FPTAN:
	case ZYDIS_MNEMONIC_FPATAN:
	case ZYDIS_MNEMONIC_FSIN:
	case ZYDIS_MNEMONIC_FCOS:
	case ZYDIS_MNEMONIC_FSINCOS:
		return true;
	default:
		return false;
	}
}

static bool is_umip(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_SGDT || mnemonic == ZYDIS_MNEMONIC_SIDT ||
	       mnemonic == ZYDIS_MNEMONIC_SLDT || mnemonic == ZYDIS_MNEMONIC_STR ||
	       mnemonic == ZYDIS_MNEMONIC_SMSW;
}

/* -- recording ----------------------------------------------------------- */

/* Results that differ from one time to the next: the stub gets them, and the log keeps them. */
static bool classify_result(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	unsigned what;

	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
		what = RESULT_RDTSC;
		break;
	case ZYDIS_MNEMONIC_RDTSCP:
		what = RESULT_RDTSCP;
		break;
	case ZYDIS_MNEMONIC_RDRAND:
		what = RESULT_RDRAND;
		break;
	case ZYDIS_MNEMONIC_RDSEED:
		what = RESULT_RDSEED;
		break;
	case ZYDIS_MNEMONIC_RDPID:
		what = RESULT_RDPID;
		break;
	case ZYDIS_MNEMONIC_MOV:
		if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		        operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		        ZydisRegisterGetClass(operands[1].reg.value) != ZYDIS_REGCLASS_SEGMENT)
			return false;
		what = RESULT_SELECTOR + (unsigned)(operands[1].reg.value - ZYDIS_REGISTER_ES);
		break;
	default:
		return false;
	}
	if (what >= RESULT_RDRAND)
		what |= (unsigned)register_number(operands[0].reg.value) << 4 | operands[0].size / 8u << 8;
	set_emulated(instruction, EMULATE_RESULT, what);
	return true;
}

/* Shows or changes state that is none of the program's memory, or touches memory without using it. */
static bool touches_no_data(const ZydisDecodedInstruction *zydis)
{
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
	case ZYDIS_MNEMONIC_CLDEMOTE:
	case ZYDIS_MNEMONIC_LEA:
		return true;
	default:
		return zydis->meta.category == ZYDIS_CATEGORY_PREFETCH;
	}
}

/*
 * What a register in place of the operand would not do, or what reads less than its operand. Moves by a mask
 * do, too, but are not among them: all of the operand is compared, and where that faults the CPU is asked to
 * execute the instruction, which may be fine.
 */
static bool is_exotic(const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *memory)
{
	bool rip = memory->mem.base == ZYDIS_REGISTER_RIP || memory->mem.base == ZYDIS_REGISTER_EIP;

	if (memory->mem.type != ZYDIS_MEMOP_TYPE_MEM || memory->encoding == ZYDIS_OPERAND_ENCODING_NONE)
		return true;
	/* The GS base is ours, and few use their own. */
	if (memory->mem.segment == ZYDIS_REGISTER_GS || (memory->mem.segment == ZYDIS_REGISTER_FS && rip))
		return true;
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_ENQCMDS:
	case ZYDIS_MNEMONIC_FLDENV:
	case ZYDIS_MNEMONIC_FRSTOR:
	case ZYDIS_MNEMONIC_LFS:
	case ZYDIS_MNEMONIC_LSS:
	case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_LSL:
	case ZYDIS_MNEMONIC_VERR:
	case ZYDIS_MNEMONIC_VERW:
		return true;
	default:
		return false;
	}
}

static bool names_segment(const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < zydis->operand_count_visible; i++) {
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		        ZydisRegisterGetClass(operands[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return true;
	}
	return false;
}

static enum access_kind stack_access(
        const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands)
{
	bool wide = zydis->operand_width == 64, memory = operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY;

	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		if (!wide || names_segment(zydis, operands) || operands[0].reg.value == ZYDIS_REGISTER_RSP ||
		        (memory && is_exotic(zydis, &operands[0])))
			return ACCESS_NONE;
		return memory ? ACCESS_PUSH_MEMORY : ACCESS_PUSH;
	case ZYDIS_MNEMONIC_POP:
		if (!wide || memory || names_segment(zydis, operands) ||
		        operands[0].reg.value == ZYDIS_REGISTER_RSP)
			return ACCESS_NONE;
		return ACCESS_POP;
	case ZYDIS_MNEMONIC_LEAVE:
		return wide ? ACCESS_LEAVE : ACCESS_NONE;
	default:
		return ACCESS_NONE;
	}
}

static bool is_general(const ZydisDecodedOperand *operand)
{
	return operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	       register_number(operand->reg.value) != NO_REGISTER;
}

static enum access_kind x87_access(const ZydisDecodedInstruction *zydis, unsigned actions)
{
	if (!(actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return ACCESS_USE;
	switch (zydis->mnemonic) {
	/* Not twice either: the second one would trap on the exception of the first. */
	case ZYDIS_MNEMONIC_FST:
	case ZYDIS_MNEMONIC_FIST:
	case ZYDIS_MNEMONIC_FSTP:
	case ZYDIS_MNEMONIC_FISTP:
	case ZYDIS_MNEMONIC_FISTTP:
	case ZYDIS_MNEMONIC_FBSTP:
		return ACCESS_POP_STORE;
	default:
		return ACCESS_STORE;
	}
}

#define NO_ATOMIC 0xff

/* Exchanges with memory, and cmpxchg and xadd, which change registers besides, whether locked or not. */
static bool is_atomic(const ZydisDecodedInstruction *zydis)
{
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_XADD:
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
		return true;
	default:
		return zydis->attributes & ZYDIS_ATTRIB_HAS_LOCK;
	}
}

static enum access_kind data_access(const struct instruction *instruction,
        const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands,
        const ZydisDecodedOperand *memory)
{
	unsigned actions = memory->actions;
	bool reads = actions & ZYDIS_OPERAND_ACTION_MASK_READ,
	     writes = actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

	if (is_exotic(zydis, memory) || instruction->bit_string || is_atomic(zydis))
		return ACCESS_NONE;
	/* The x87 unit remembers its operand's address without the segment's base. */
	if (instruction->x87)
		return instruction->fs ? ACCESS_NONE : x87_access(zydis, actions);
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (reads && names_segment(zydis, operands))
			return ACCESS_NONE;
		/* movsxd to 16 bits has more to compare than it loads. */
		if (reads && memory->size > zydis->operand_width)
			return ACCESS_NONE;
		return reads ? ACCESS_LOAD : ACCESS_STORE;
	default:
		break;
	}
	if (reads && writes) {
		for (unsigned i = 0; i < zydis->operand_count; i++) {
			if (!is_general(&operands[i]) &&
			        ZydisRegisterGetClass(operands[i].reg.value) != ZYDIS_REGCLASS_FLAGS)
				return ACCESS_NONE;
		}
		return ACCESS_MODIFY;
	}
	if (writes)
		return ACCESS_STORE;
	return ACCESS_USE;
}

/* Plain arithmetic: its memory operand may as well be a general register. */
static bool has_register_form(const struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	if (zydis->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || instruction->x87 ||
	        zydis->mnemonic == ZYDIS_MNEMONIC_MOVBE)
		return false;
	switch (zydis->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_BITBYTE:
		break;
	default:
		return false;
	}
	for (unsigned i = 0; i < zydis->operand_count; i++) {
		if (!is_general(&operands[i]) &&
		        ZydisRegisterGetClass(operands[i].reg.value) != ZYDIS_REGCLASS_FLAGS)
			return false;
	}
	return true;
}

/*
 * May it leave something in the vector or x87 registers? Operands do not tell: what reads an MMX register
 * changes the x87 stack, and what converts a number in memory may set a flag in mxcsr. And where the kernel
 * does an instruction in the CPU's place, the trap of a single step comes after the next one.
 */
static bool changes_vectors(const ZydisDecodedInstruction *zydis)
{
	if (is_umip(zydis->mnemonic))
		return true;
	switch (zydis->meta.isa_ext) {
	case ZYDIS_ISA_EXT_BASE:
	case ZYDIS_ISA_EXT_LONGMODE:
	case ZYDIS_ISA_EXT_BMI1:
	case ZYDIS_ISA_EXT_BMI2:
	case ZYDIS_ISA_EXT_LZCNT:
	case ZYDIS_ISA_EXT_MOVBE:
	case ZYDIS_ISA_EXT_ADOX_ADCX:
	case ZYDIS_ISA_EXT_RDWRFSGS:
		return false;
	default:
		return true;
	}
}

static unsigned log2_of(unsigned bits)
{
	return __builtin_ctz(bits / 8);
}

/* The last of the prefixes f2 and f3 counts: 0: none, 1: f3, 2: f2. */
static unsigned repeat_prefix(const struct instruction *instruction)
{
	for (unsigned i = instruction->encoding.prefix_count; i-- > 0;) {
		if (instruction->bytes[i] == 0xf3 || instruction->bytes[i] == 0xf2)
			return instruction->bytes[i] == 0xf3 ? 1 : 2;
	}
	return 0;
}

/* The segment of [rsi], as STRING_SEGMENT has it. */
static unsigned source_segment(const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < zydis->operand_count; i++) {
		if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		        register_number(operands[i].mem.base) != RSI)
			continue;
		if (operands[i].mem.segment == ZYDIS_REGISTER_FS)
			return 1;
		if (operands[i].mem.segment == ZYDIS_REGISTER_GS)
			return 2;
	}
	return 0;
}

/* String instructions: how much memory they use is known only while they run. */
static bool classify_string(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, enum translate_mode mode)
{
	static const uint8_t kinds[] = {
	        [0xa4 - 0xa4] = STRING_MOVS,
	        [0xa6 - 0xa4] = STRING_CMPS,
	        [0xaa - 0xa4] = STRING_STOS,
	        [0xac - 0xa4] = STRING_LODS,
	        [0xae - 0xa4] = STRING_SCAS,
	};

	if (zydis->meta.category != ZYDIS_CATEGORY_STRINGOP)
		return false;
	unsigned argument = STRING_ARGUMENT(kinds[(zydis->opcode & 0xfe) - 0xa4], log2_of(operands[0].size),
	        repeat_prefix(instruction), instruction->address32, source_segment(zydis, operands));
	if (mode == TRANSLATE_RECORD)
		set_emulated(instruction, EMULATE_STRING, argument);
	instruction->trace = TRACE_STRING;
	instruction->trace_size = (uint16_t)argument;
	return true;
}

/* ATOMIC_* for what may have a lock prefix, and bt. */
static unsigned atomic_kind(ZydisMnemonic mnemonic)
{
	static const struct {
		uint16_t mnemonic, kind;
	} kinds[] = {
	        {ZYDIS_MNEMONIC_ADD, ATOMIC_ADD},
	        {ZYDIS_MNEMONIC_OR, ATOMIC_OR},
	        {ZYDIS_MNEMONIC_ADC, ATOMIC_ADC},
	        {ZYDIS_MNEMONIC_SBB, ATOMIC_SBB},
	        {ZYDIS_MNEMONIC_AND, ATOMIC_AND},
	        {ZYDIS_MNEMONIC_SUB, ATOMIC_SUB},
	        {ZYDIS_MNEMONIC_XOR, ATOMIC_XOR},
	        {ZYDIS_MNEMONIC_INC, ATOMIC_INC},
	        {ZYDIS_MNEMONIC_DEC, ATOMIC_DEC},
	        {ZYDIS_MNEMONIC_NOT, ATOMIC_NOT},
	        {ZYDIS_MNEMONIC_NEG, ATOMIC_NEG},
	        {ZYDIS_MNEMONIC_XCHG, ATOMIC_XCHG},
	        {ZYDIS_MNEMONIC_XADD, ATOMIC_XADD},
	        {ZYDIS_MNEMONIC_CMPXCHG, ATOMIC_CMPXCHG},
	        {ZYDIS_MNEMONIC_CMPXCHG8B, ATOMIC_CMPXCHG2},
	        {ZYDIS_MNEMONIC_CMPXCHG16B, ATOMIC_CMPXCHG2},
	        {ZYDIS_MNEMONIC_BT, ATOMIC_BT},
	        {ZYDIS_MNEMONIC_BTS, ATOMIC_BTS},
	        {ZYDIS_MNEMONIC_BTR, ATOMIC_BTR},
	        {ZYDIS_MNEMONIC_BTC, ATOMIC_BTC},
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].mnemonic == mnemonic)
			return kinds[i].kind;
	}
	return NO_ATOMIC;
}

/* The operand of an atomic instruction that is not memory: which bits of the argument name it. */
static unsigned atomic_source(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < zydis->operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			instruction->number = operand->imm.value.s;
			return ATOMIC_IMMEDIATE;
		}
		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			bool high = operand->reg.value >= ZYDIS_REGISTER_AH &&
			            operand->reg.value <= ZYDIS_REGISTER_BH;

			return register_number(operand->reg.value) << 8 | (high ? ATOMIC_HIGH_BYTE : 0);
		}
	}
	return 0;
}

/*
 * What is locked, by a prefix or by nature, must be done by one instruction, on
 * memory and without a word from the shadow in between: the stub does it.
 */
static bool classify_atomic(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, enum translate_mode mode)
{
	unsigned kind = atomic_kind(zydis->mnemonic), bits = operands[0].size;
	bool moved = instruction->bit_string && instruction->address32;

	if (!instruction->is_memory || kind == NO_ATOMIC || (!is_atomic(zydis) && !instruction->bit_string))
		return false;
	if (moved && instruction->fs)
		return false; /* the stub would have to know where the segment begins */
	bool locked = zydis->mnemonic == ZYDIS_MNEMONIC_XCHG || zydis->attributes & ZYDIS_ATTRIB_HAS_LOCK;
	/* A bit's number in a register leads elsewhere: that it is locked is all that is told then. */
	instruction->trace = (uint8_t)((locked ? TRACE_LOCKED : 0) |
	                               (instruction->bit_string    ? 0
	                                       : kind == ATOMIC_BT ? TRACE_READ
	                                                           : TRACE_READ | TRACE_WRITE));
	instruction->trace_size = (uint16_t)(bits / 8);
	if (mode != TRANSLATE_RECORD)
		return true;
	if (kind == ATOMIC_CMPXCHG2)
		bits /= 2;
	set_emulated(instruction, EMULATE_ATOMIC,
	        ATOMIC_ARGUMENT(kind, log2_of(bits), 0) | atomic_source(instruction, zydis, operands) |
	                (moved ? ATOMIC_ADDRESS32 : 0) | (locked ? ATOMIC_LOCKED : 0));
	return true;
}

/* Instructions that load the x87 and vector registers as a whole. With a program's own GS they are exotic
 * enough. */
static bool classify_restore(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, enum translate_mode mode)
{
	unsigned what;

	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_FXRSTOR:
		what = 0;
		break;
	case ZYDIS_MNEMONIC_FXRSTOR64:
		what = RESTORE_WIDE;
		break;
	case ZYDIS_MNEMONIC_XRSTOR:
		what = RESTORE_EXTENDED;
		break;
	case ZYDIS_MNEMONIC_XRSTOR64:
		what = RESTORE_EXTENDED | RESTORE_WIDE;
		break;
	default:
		return false;
	}
	if (is_exotic(zydis, &operands[0]))
		return false;
	if (mode == TRANSLATE_RECORD)
		set_emulated(instruction, EMULATE_RESTORE, what);
	return true;
}

/* The number of a vector register. */
static unsigned vector_number(ZydisRegister name)
{
	return (unsigned)(uint8_t)ZydisRegisterGetId(name);
}

/* STATE_* of an instruction that is executed natively. */
static unsigned state_changes(const struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	unsigned vectors = changes_vectors(zydis) ? STATE_VECTORS : 0, stores = 0;

	if (zydis->mnemonic == ZYDIS_MNEMONIC_ENTER)
		return vectors | STATE_STORES;
	for (unsigned i = 0; i < zydis->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];
		if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		        !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		        (zydis->mnemonic == ZYDIS_MNEMONIC_PUSH &&
		                operand->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM))
			continue;
		bool plain = operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM && instruction->is_memory &&
		             operand->mem.type == ZYDIS_MEMOP_TYPE_MEM && !instruction->bit_string &&
		             operand->size / 8 <= STATE_MOST_BYTES;
		stores = plain && !stores ? STATE_STORES_AT | operand->size / 8u << STATE_BYTES_SHIFT
		                          : STATE_STORES;
	}
	return vectors | stores;
}

/*
 * Gathers whose registers are three different ones, as they must be. What has a segment, or an address that
 * is truncated behind the index, is executed natively.
 */
static bool classify_gather(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, enum translate_mode mode)
{
	bool evex = zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
	const ZydisDecodedOperand *memory = &operands[evex ? 2 : 1], *mask = &operands[evex ? 1 : 2];

	if (zydis->meta.category != ZYDIS_CATEGORY_AVX2GATHER &&
	        zydis->meta.category != ZYDIS_CATEGORY_GATHER)
		return false;
	if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || memory->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	        mask->type != ZYDIS_OPERAND_TYPE_REGISTER || instruction->address32 ||
	        memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	unsigned to = vector_number(operands[0].reg.value), by = vector_number(mask->reg.value);
	unsigned index = vector_number(memory->mem.index), element = memory->size / 8;
	/* 92 and 90: indexes of 32 bits, 93 and 91: of 64 */
	unsigned index_size = zydis->opcode & 1 ? 8 : 4;
	unsigned count = zydis->avx.vector_length / 8u / (element > index_size ? element : index_size);
	if (to == index || (!evex && (to == by || index == by)))
		return false;
	if (mode != TRANSLATE_RECORD)
		return true;
	instruction->number =
	        (int32_t)(to | index << 5 | by << 10 | (unsigned)__builtin_ctz(memory->mem.scale) << 14 |
	                  (element == 8 ? GATHER_WIDE_ELEMENTS : 0) |
	                  (index_size == 8 ? GATHER_WIDE_INDEX : 0) | (evex ? GATHER_BY_MASK_REGISTER : 0) |
	                  count << GATHER_COUNT_SHIFT);
	set_emulated(instruction, EMULATE_GATHER, 0);
	return true;
}

static bool is_pushf(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_PUSHF || mnemonic == ZYDIS_MNEMONIC_PUSHFD ||
	       mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
}

/* The stack of pushes and pops is left out: nobody else's, as a rule, and half of all accesses. */
static void trace_data(struct instruction *instruction, const ZydisDecodedOperand *memory)
{
	switch (instruction->access) {
	case ACCESS_LOAD:
	case ACCESS_USE:
		instruction->trace = TRACE_READ;
		break;
	case ACCESS_STORE:
	case ACCESS_POP_STORE:
		instruction->trace = TRACE_WRITE;
		break;
	case ACCESS_MODIFY:
		instruction->trace = TRACE_READ | TRACE_WRITE;
		break;
	default:
		return;
	}
	instruction->trace_size = memory->size / 8;
}

static void classify_recorded(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, enum translate_mode mode)
{
	const ZydisDecodedOperand *memory = NULL;

	if (classify_result(instruction, zydis, operands))
		return;
	if (zydis->mnemonic == ZYDIS_MNEMONIC_WRFSBASE) {
		set_emulated(instruction, EMULATE_WRFSBASE,
		        register_number(operands[0].reg.value) | operands[0].size / 8u << 4);
		return;
	}
	if (instruction->kind == KIND_EMULATE && EMULATE_KIND(instruction->detail) == EMULATE_NATIVE) {
		set_emulated(instruction, EMULATE_STATE, state_changes(instruction, zydis, operands));
		return;
	}
	/* Selectors are the system's, and loading one changes a base. */
	if (instruction->kind == KIND_PLAIN && names_segment(zydis, operands)) {
		set_emulated(instruction, EMULATE_STATE,
		        state_changes(instruction, zydis, operands) & ~STATE_VECTORS);
		return;
	}
	if (instruction->kind != KIND_PLAIN || touches_no_data(zydis))
		return;
	if (is_pushf(zydis->mnemonic)) {
		instruction->pushes = zydis->mnemonic == ZYDIS_MNEMONIC_PUSHF ? 2 : 8;
		if (mode == TRANSLATE_RECORD)
			set_emulated(
			        instruction, EMULATE_PUSHF, zydis->mnemonic == ZYDIS_MNEMONIC_PUSHF ? 2 : 8);
		return;
	}
	if (classify_restore(instruction, zydis, operands, mode) ||
	        classify_gather(instruction, zydis, operands, mode))
		return;
	if (classify_string(instruction, zydis, operands, mode) ||
	        classify_atomic(instruction, zydis, operands, mode))
		return;
	for (unsigned i = 0; i < zydis->operand_count; i++) {
		if (is_access(zydis, &operands[i]) &&
		        (!memory || operands[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM))
			memory = &operands[i];
	}
	if (!memory && !instruction->umip)
		return;
	if (memory) {
		instruction->access = stack_access(zydis, operands);
		if (!instruction->access && zydis->mnemonic != ZYDIS_MNEMONIC_PUSH &&
		        zydis->mnemonic != ZYDIS_MNEMONIC_POP)
			instruction->access = data_access(instruction, zydis, operands, memory);
		instruction->access_size = memory->size / 8;
		trace_data(instruction, memory);
		if (instruction->access == ACCESS_PUSH || instruction->access == ACCESS_PUSH_MEMORY)
			instruction->pushes = 8;
		instruction->has_register_form =
		        instruction->access == ACCESS_USE && has_register_form(instruction, zydis, operands);
	}
	if (!instruction->access)
		set_emulated(instruction, EMULATE_STATE, state_changes(instruction, zydis, operands));
}

/* Only of what is executed where it stands, and leaves all flags without having read any. */
static enum repeat_kind repeat_kind(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands)
{
	const live_set flags = LIVE_FLAGS(FLAGS_ALL);
	bool from_memory = instruction->access == ACCESS_USE;

	if (instruction->kind != KIND_PLAIN || (instruction->kill & flags) != flags ||
	        (instruction->use & flags) || (instruction->access && !from_memory))
		return REPEAT_NEVER;
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return from_memory ? REPEAT_SHADOW : REPEAT_ITSELF;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		if (is_zero_idiom(zydis, operands))
			return REPEAT_ITSELF;
		break;
	default:
		break;
	}
	if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return REPEAT_NEVER;
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
		return operands[0].size >= 32 ? REPEAT_TEST : REPEAT_NEVER;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		instruction->number = (int32_t)operands[1].imm.value.s;
		if (operands[0].size < 32 || operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		        instruction->number == INT32_MIN)
			return REPEAT_NEVER;
		if (zydis->mnemonic == ZYDIS_MNEMONIC_SUB)
			instruction->number = -instruction->number;
		return REPEAT_UNDONE;
	default:
		return REPEAT_NEVER;
	}
}

static void examine(struct instruction *instruction, const ZydisDecodedInstruction *zydis,
        const ZydisDecodedOperand *operands, unsigned disp_unit, enum translate_mode mode)
{
	instruction->length = zydis->length;
	instruction->opcode = zydis->opcode;
	instruction->width = zydis->operand_width / 8;
	instruction->address32 = zydis->address_width == 32;
	instruction->bit_string = is_bit_string(zydis);
	instruction->umip = is_umip(zydis->mnemonic);
	instruction->approximates = is_approximate(zydis->mnemonic);
	instruction->x87 = zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	                   zydis->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (zydis->opcode & 0xf8) == 0xd8;
	examine_encoding(instruction, zydis, disp_unit);
	examine_operands(instruction, zydis, operands);
	classify(instruction, zydis, operands);
	if (needs_gs_base(instruction))
		set_emulated(instruction, EMULATE_NATIVE, 0);
	if (mode != TRANSLATE_RUN)
		classify_recorded(instruction, zydis, operands, mode);
	if (zydis->raw.imm[0].is_relative)
		instruction->target = instruction->pc + instruction->length + zydis->raw.imm[0].value.s;

	unsigned read = zydis->cpu_flags ? status_flags(zydis->cpu_flags->tested) : 0;
	unsigned overwritten = flags_overwritten(zydis);

	instruction->writes_flags = writes_flags(zydis);
	instruction->use |= LIVE_FLAGS(read) | LIVE_SHOWN(read);
	instruction->kill |= LIVE_FLAGS(overwritten) | LIVE_SHOWN(overwritten);
	if (mode == TRANSLATE_RECORD)
		instruction->repeat = (uint8_t)repeat_kind(instruction, zydis, operands);
	if (instruction->may_fault)
		instruction->use |= LIVE_SHOWN(FLAGS_ALL);
	/* It traps: that a handler looks is what it is for. */
	if (zydis->meta.category == ZYDIS_CATEGORY_INTERRUPT ||
	        zydis->meta.category == ZYDIS_CATEGORY_SYSRET ||
	        zydis->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		instruction->use |= LIVE_ALL;
	if (instruction->kind > KIND_LOOP && !(instruction->kind == KIND_CALL && mode != TRANSLATE_RUN)) {
		/* Leaves the region: whoever comes next may look at everything. */
		instruction->use = LIVE_ALL;
		instruction->kill = 0;
	}
}

void decode_instruction(struct instruction *instruction, uint64_t pc, const uint8_t *bytes, unsigned size,
        enum translate_mode mode)
{
	/* The mode and the widths never vary, so this is only filled in, never changed. */
	ZydisDecoder decoder;
	ZydisDecoderContext context;
	ZydisDecodedInstruction zydis;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

	memset(instruction, 0, sizeof(*instruction));
	instruction->pc = pc;
	instruction->base = NO_REGISTER;
	instruction->destination = NO_REGISTER;
	if (size && fetch_in_vsyscall_page(pc)) {
		instruction->length = size;
		instruction->use = LIVE_ALL;
		instruction->may_fault = true;
		set_emulated(instruction, EMULATE_VSYSCALL, 0);
		return;
	}
	memcpy(instruction->bytes, bytes, size);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);

	ZyanStatus status = ZydisDecoderDecodeInstruction(&decoder, &context, bytes, size, &zydis);

	if (ZYAN_SUCCESS(status))
		status =
		        ZydisDecoderDecodeOperands(&decoder, &context, &zydis, operands, zydis.operand_count);
	if (ZYAN_SUCCESS(status)) {
		examine(instruction, &zydis, operands, context.cd8_scale, mode);
		return;
	}
	instruction->length = size;
	instruction->use = LIVE_ALL;
	instruction->may_fault = true;
	if (status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG)
		instruction->kind = KIND_TOO_LONG;
	else if (size < INSTRUCTION_BYTES_MAX)
		instruction->kind = KIND_UNREADABLE; /* undefined or not: the CPU may want the rest first */
	else
		instruction->kind = status == ZYDIS_STATUS_NO_MORE_DATA ? KIND_TOO_LONG : KIND_UNDEFINED;
}

/* The program is told of a processor that does not have it. */
static void refuse(struct instruction *instruction)
{
	instruction->kind = KIND_REFUSED;
	instruction->access = ACCESS_NONE;
	instruction->use = LIVE_ALL;
	instruction->kill = 0;
}

/* -- discovery ----------------------------------------------------------- */

struct discovery {
	struct region *region;
	const struct translate_request *request;
	struct fetcher fetcher;
	uint64_t *queue; /* leaders to look at; read from `head` */
	uint32_t head, tail, queue_capacity;
	uint32_t callee_capacity;
	struct map callees;
	bool failed; /* out of memory */
};

bool instruction_falls_through(const struct instruction *instruction)
{
	return instruction->kind < KIND_JUMP || instruction->kind == KIND_CONDITIONAL ||
	       instruction->kind == KIND_LOOP;
}

/* Ends a block: by what it is or, when code may change under us, by writing memory. */
static bool ends_block(const struct region *region, const struct instruction *instruction)
{
	return instruction->kind >= KIND_JUMP ||
	       (region->self_check && (instruction->writes_memory || instruction->writes_stack));
}

static void enqueue(struct discovery *discovery, uint64_t pc)
{
	if (discovery->tail == discovery->queue_capacity) {
		uint32_t capacity = discovery->queue_capacity ? discovery->queue_capacity * 2 : 256;
		uint64_t *queue = realloc(discovery->queue, capacity * sizeof(*queue));

		if (!queue) {
			discovery->failed = true;
			return;
		}
		discovery->queue = queue;
		discovery->queue_capacity = capacity;
	}
	discovery->queue[discovery->tail++] = pc;
}

static void add_callee(struct discovery *discovery, uint64_t pc)
{
	struct region *region = discovery->region;

	if (map_find(&discovery->callees, pc) != MAP_NONE)
		return;
	if (region->callee_count == discovery->callee_capacity) {
		uint32_t capacity = discovery->callee_capacity ? discovery->callee_capacity * 2 : 16;
		int64_t *callees = realloc(region->callees, capacity * sizeof(*callees));

		if (!callees) {
			discovery->failed = true;
			return;
		}
		region->callees = callees;
		discovery->callee_capacity = capacity;
	}
	if (!map_add(&discovery->callees, pc, region->callee_count))
		discovery->failed = true;
	region->callees[region->callee_count++] = pc - region->pc;
}

static struct instruction *append(struct discovery *discovery)
{
	struct region *region = discovery->region;

	if (region->instruction_count == region->instruction_capacity) {
		uint32_t capacity = region->instruction_capacity ? region->instruction_capacity * 2 : 256;
		struct instruction *grown = realloc(region->instructions, capacity * sizeof(*grown));

		if (!grown) {
			discovery->failed = true;
			return NULL;
		}
		region->instructions = grown;
		region->instruction_capacity = capacity;
	}
	return &region->instructions[region->instruction_count];
}

static void decode_at(struct discovery *discovery, uint64_t pc, struct instruction *instruction)
{
	uint8_t bytes[INSTRUCTION_BYTES_MAX];

	decode_instruction(
	        instruction, pc, bytes, fetch(&discovery->fetcher, pc, bytes), discovery->request->mode);
	if (instruction->wide && !discovery->request->wide_vectors)
		refuse(instruction);
}

/*
 * Decodes the instruction at pc and adds it to the region; NULL when there is none: the budget is used up, it
 * is known, or not all of it can be read. Branches to that pc then leave to the stub, which finds out more.
 */
static struct instruction *discover_instruction(struct discovery *discovery, uint64_t pc)
{
	struct region *region = discovery->region;
	const struct translate_request *request = discovery->request;

	if (region->instruction_count >= (request->exact ? request->exact : request->max_instructions) &&
	        region->instruction_count)
		return NULL;
	if (pc != request->pc && !request->exact && request->known && request->known(request->context, pc))
		return NULL;

	struct instruction *instruction = append(discovery);

	if (!instruction)
		return NULL;
	decode_at(discovery, pc, instruction);
	if (instruction->kind == KIND_UNREADABLE)
		return NULL;
	if (!map_add(&region->by_pc, pc, region->instruction_count)) {
		discovery->failed = true;
		return NULL;
	}
	region->instruction_count++;
	return instruction;
}

static void enqueue_successors(struct discovery *discovery, const struct instruction *last)
{
	uint64_t next = last->pc + last->length, target = last->target;

	switch (last->kind) {
	case KIND_JUMP:
		enqueue(discovery, target);
		break;
	case KIND_CONDITIONAL:
	case KIND_LOOP:
		enqueue(discovery, next);
		enqueue(discovery, target);
		break;
	case KIND_CALL:
		add_callee(discovery, target);
		enqueue(discovery, next);
		break;
	case KIND_CALL_INDIRECT:
	case KIND_SYSCALL:
	case KIND_IMAGE:
		enqueue(discovery, next);
		break;
	case KIND_EMULATE:
		if (EMULATE_KIND(last->detail) != EMULATE_FAR &&
		        EMULATE_KIND(last->detail) != EMULATE_VSYSCALL)
			enqueue(discovery, next);
		break;
	default:
		if (instruction_falls_through(last))
			enqueue(discovery, next);
	}
}

static void discover_block(struct discovery *discovery, uint64_t pc)
{
	struct region *region = discovery->region;
	uint32_t known = map_find(&region->by_pc, pc);
	struct instruction *instruction;
	bool leader = true;

	if (known != MAP_NONE) {
		region->instructions[known].leader = true;
		return;
	}
	for (;; leader = false) {
		instruction = discover_instruction(discovery, pc);
		if (!instruction)
			return;
		instruction->leader = leader;
		if (ends_block(region, instruction))
			break;
		pc += instruction->length;
		known = map_find(&region->by_pc, pc);
		if (known != MAP_NONE) {
			region->instructions[known].leader = true;
			return;
		}
	}
	enqueue_successors(discovery, instruction);
}

/* -- what comes behind ---------------------------------------------------- */

#define BEYOND_INSTRUCTIONS 8 /* that are looked at; nearly always two or three tell */

static void add_glance(struct discovery *discovery, const struct instruction *instruction)
{
	struct region *region = discovery->region;

	if (region->glance_count == region->glance_capacity) {
		uint32_t capacity = region->glance_capacity ? region->glance_capacity * 2 : 16;
		struct glance *glances = realloc(region->glances, capacity * sizeof(*glances));

		if (!glances) {
			discovery->failed = true;
			return;
		}
		region->glances = glances;
		region->glance_capacity = capacity;
	}
	struct glance *glance = &region->glances[region->glance_count++];

	*glance = (struct glance){.pc = instruction->pc, .length = instruction->length};
	memcpy(glance->bytes, instruction->bytes, instruction->length);
}

/* Which flags the program may still read at pc: the instructions that come first mostly tell that it is none.
 * Registers are left alone. */
static live_set look_beyond(struct discovery *discovery, uint64_t pc)
{
	const live_set flags = LIVE_FLAGS(FLAGS_ALL);
	uint32_t glances = discovery->region->glance_count;
	live_set use = 0, kill = 0;

	for (unsigned i = 0; i < BEYOND_INSTRUCTIONS && !(use & flags) && (kill & flags) != flags; i++) {
		struct instruction instruction;

		decode_at(discovery, pc, &instruction);
		if (instruction.kind == KIND_UNREADABLE)
			break;
		add_glance(discovery, &instruction);
		use |= instruction.use & ~kill;
		kill |= instruction.kill;
		if (instruction.kind == KIND_JUMP || instruction.kind == KIND_CALL)
			pc = instruction.target;
		else if (instruction.kind < KIND_JUMP)
			pc += instruction.length;
		else
			break;
	}
	/* Nothing was learnt from them. */
	if (!(kill & ~use & flags))
		discovery->region->glance_count = glances;
	return LIVE_ALL & ~(kill & ~use & (flags | LIVE_SHOWN(FLAGS_ALL)));
}

/* Without our being told? Such code tells nothing. */
static bool may_change(const struct translate_request *request)
{
	return request->self_check || (request->writable && *request->writable);
}

static void forget_beyond(struct region *region)
{
	map_deinit(&region->beyond);
	region->glance_count = 0;
}

static void discover_beyond(struct discovery *discovery, uint64_t pc)
{
	struct region *region = discovery->region;

	if (region_block(region, pc) || map_find(&region->beyond, pc) != MAP_NONE)
		return;
	if (!map_add(&region->beyond, pc, look_beyond(discovery, pc)))
		discovery->failed = true;
}

/* Where direct branches and calls leave the region. */
static void look_behind_blocks(struct discovery *discovery)
{
	const struct region *region = discovery->region;

	for (uint32_t i = 0; i < region->block_count && !discovery->failed; i++) {
		const struct block *block = &region->blocks[i];
		const struct instruction *last = region_at(region, block, block->count - 1);

		if (instruction_falls_through(last))
			discover_beyond(discovery, block->next);
		if (last->kind == KIND_JUMP || last->kind == KIND_CONDITIONAL || last->kind == KIND_LOOP ||
		        last->kind == KIND_CALL)
			discover_beyond(discovery, last->target);
	}
}

/* -- blocks -------------------------------------------------------------- */

struct leader {
	uint64_t pc;
	uint32_t index;
};

static int compare_leaders(const void *a, const void *b)
{
	const struct leader *left = a, *right = b;

	return (left->pc > right->pc) - (left->pc < right->pc);
}

static void fill_block(struct region *region, struct block *block, uint32_t index, uint32_t *order_count)
{
	struct instruction *instruction = &region->instructions[index];

	*block = (struct block){.pc = instruction->pc, .first = *order_count};
	for (;;) {
		region->order[(*order_count)++] = index;
		block->count++;
		block->bytes += instruction->length;
		block->next = instruction->pc + instruction->length;
		if (ends_block(region, instruction))
			break;
		index = map_find(&region->by_pc, block->next);
		if (index == MAP_NONE || region->instructions[index].leader)
			break;
		instruction = &region->instructions[index];
	}
}

/* Who is reached through the branch table after this block? */
static void mark_resumed(struct region *region, const struct block *block)
{
	const struct instruction *last = region_at(region, block, block->count - 1);
	uint32_t next;

	switch (last->kind) {
	case KIND_CALL:
	case KIND_CALL_INDIRECT:
	case KIND_SYSCALL:
	case KIND_EMULATE:
	case KIND_IMAGE:
		next = map_find(&region->by_pc, block->next);
		if (next == MAP_NONE)
			break;
		region->instructions[next].resumed = true;
		if (last->kind == KIND_CALL)
			region->instructions[next].callee = last->target;
		break;
	default:
		break;
	}
}

static int make_blocks(struct region *region)
{
	struct leader *leaders = malloc(region->instruction_count * sizeof(*leaders));
	uint32_t count = 0, order_count = 0;

	region->order = malloc(region->instruction_count * sizeof(*region->order));
	region->blocks = malloc(region->instruction_count * sizeof(*region->blocks));
	if (!leaders || !region->order || !region->blocks) {
		free(leaders);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < region->instruction_count; i++)
		if (region->instructions[i].leader)
			leaders[count++] = (struct leader){region->instructions[i].pc, i};
	qsort(leaders, count, sizeof(*leaders), compare_leaders);

	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		fill_block(region, &region->blocks[i], leaders[i].index, &order_count);
		if (!map_add(&region->block_by_pc, leaders[i].pc, i))
			error = -ENOMEM;
	}
	region->block_count = count;
	free(leaders);
	for (uint32_t i = 0; i < count && !error; i++)
		mark_resumed(region, &region->blocks[i]);
	return error;
}

struct block *region_block(const struct region *region, uint64_t pc)
{
	uint32_t index = map_find(&region->block_by_pc, pc);

	return index == MAP_NONE ? NULL : &region->blocks[index];
}

int region_discover(struct region *region, const struct translate_request *request)
{
	struct discovery discovery = {.region = region, .request = request};
	int error = 0;

	*region = (struct region){
	        .pc = request->pc, .self_check = request->self_check, .exact = request->exact != 0};
	if (fetch_in_vsyscall_page(request->pc) && !fetch_vsyscall_entry(request->pc))
		return -EFAULT;
	fetch_init(&discovery.fetcher, request);
	enqueue(&discovery, request->pc);
	while (discovery.head < (request->exact ? 1 : discovery.tail) && !discovery.failed)
		discover_block(&discovery, discovery.queue[discovery.head++]);
	if (discovery.failed || discovery.fetcher.failed)
		error = -ENOMEM;
	else if (!region->instruction_count)
		error = -EFAULT;
	else
		error = make_blocks(region);
	if (!error && request->mode != TRANSLATE_RUN && !request->exact && !request->whole_state) {
		look_behind_blocks(&discovery);
		error = discovery.failed || discovery.fetcher.failed ? -ENOMEM : 0;
		if (may_change(request))
			forget_beyond(region);
	}
	if (!error && request->indirect)
		region->instructions[map_find(&region->by_pc, request->pc)].resumed = true;
	free(discovery.queue);
	map_deinit(&discovery.callees);
	fetch_deinit(&discovery.fetcher);
	if (error)
		region_deinit(region);
	return error;
}

void region_deinit(struct region *region)
{
	free(region->instructions);
	free(region->order);
	free(region->blocks);
	free(region->callees);
	map_deinit(&region->by_pc);
	map_deinit(&region->block_by_pc);
	map_deinit(&region->beyond);
	free(region->glances);
	*region = (struct region){0};
}
