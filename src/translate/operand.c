/*
 * Rewriting of memory operands at the level of encodings: prefixes, REX, VEX or EVEX,
 * opcode, modrm, sib, displacement, immediates.
 *
 * The registers used for [reg] are the six that need neither a SIB byte nor a
 * displacement nor an extension bit, so an instruction never gets longer and an
 * operand ah..bh, which allows no REX prefix, stays possible.
 */
#include <stdlib.h>
#include <string.h>

#include "translate/operand.h"

#define REX_R 0x04
#define REX_X 0x02
#define REX_B 0x01
#define VEX_X 0x40 /* inverted; in EVEX in the same place */
#define VEX_B 0x20

bool operand_is_near(const struct translate_request *request, uint64_t address)
{
	/* A page of slack: the instruction's end counts, not its start. */
	int64_t from_low = address - request->reach_low, from_high = address - request->reach_high;

	return from_low < INT32_MAX - 4096 && from_low > INT32_MIN + 4096 && from_high < INT32_MAX - 4096 &&
	       from_high > INT32_MIN + 4096;
}

bool operand_counts_units(const struct instruction *instruction)
{
	return instruction->encoding.disp_size == 1 && instruction->encoding.disp_unit > 1;
}

int32_t operand_displacement(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;
	int32_t displacement = 0;

	if (encoding->disp_size == 1)
		displacement = (int8_t)instruction->bytes[encoding->disp] * encoding->disp_unit;
	else if (encoding->disp_size == 4)
		memcpy(&displacement, instruction->bytes + encoding->disp, 4);
	return displacement;
}

uint8_t operand_register(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t extension = encoding->has_rex ? instruction->bytes[encoding->rex] & REX_B : 0;

	return (instruction->bytes[encoding->modrm] & 7) | extension << 3;
}

uint8_t operand_loaded(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t extension = encoding->has_rex ? instruction->bytes[encoding->rex] & REX_R : 0;

	return encoding->moffs ? RAX : (instruction->bytes[encoding->modrm] >> 3 & 7) | extension << 1;
}

uint8_t operand_pick(uint16_t avoid)
{
	static const uint8_t candidates[] = {RAX, RCX, RDX, RBX, RSI, RDI};

	for (unsigned i = 0; i < sizeof(candidates); i++)
		if (!(avoid & 1u << candidates[i]))
			return candidates[i];
	/* cmpxchg16b uses four besides its address; nothing uses more. */
	abort();
}

static bool is_segment(uint8_t prefix)
{
	return (prefix & 0xe7) == 0x26 || prefix == 0x64 || prefix == 0x65;
}

/*
 * Legacy prefixes and REX. A REX that is not the last prefix does not count;
 * it goes, or it would count once what stood behind it is gone.
 */
static void emit_prefixes(struct emitter *emitter, const struct instruction *instruction, bool flat,
        bool full_address, uint8_t rex_clear)
{
	const struct encoding *encoding = &instruction->encoding;

	for (unsigned i = 0; i < encoding->prefix_count; i++) {
		uint8_t prefix = instruction->bytes[i];

		if ((prefix & 0xf0) == 0x40) {
			if (encoding->has_rex && i == encoding->rex)
				EMIT(emitter, prefix & ~rex_clear);
			continue;
		}
		if ((flat && is_segment(prefix)) || (full_address && prefix == 0x67))
			continue;
		EMIT(emitter, prefix);
	}
}

/* VEX, XOP or EVEX if there is one, and the opcode; up to the modrm byte. */
static void emit_opcode(struct emitter *emitter, const struct instruction *instruction, uint8_t vex_set)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t bytes[INSTRUCTION_BYTES_MAX];
	unsigned start = encoding->prefix_count;

	memcpy(bytes, instruction->bytes, sizeof(bytes));
	if (encoding->vex_size >= 3)
		bytes[encoding->vex + 1] |= vex_set;
	emit_bytes(emitter, bytes + start, encoding->modrm - start);
}

static void emit_rest(struct emitter *emitter, const struct instruction *instruction, unsigned start)
{
	emit_bytes(emitter, instruction->bytes + start, instruction->length - start);
}

void operand_copy(struct emitter *emitter, const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;

	if (instruction->memory == MEMORY_RIP)
		emit_fixup(emitter, FIXUP_NEAR, instruction->target - emitter->pc,
		        emit_offset(emitter) + encoding->disp, instruction->length - encoding->disp);
	emit_bytes(emitter, instruction->bytes, instruction->length);
}

void operand_copy_flat(struct emitter *emitter, const struct instruction *instruction)
{
	emit_prefixes(emitter, instruction, true, false, 0);
	emit_rest(emitter, instruction, instruction->encoding.prefix_count);
}

/* a0 mov al,[m]  a1 mov eax,[m]  a2 mov [m],al  a3 mov [m],eax  ->  8a 8b 88 89 with reg = 0 */
static uint8_t moffs_opcode(const struct instruction *instruction)
{
	static const uint8_t opcodes[4] = {0x8a, 0x8b, 0x88, 0x89};

	return opcodes[instruction->opcode & 3];
}

void operand_replace(struct emitter *emitter, const struct instruction *instruction, uint8_t reg, bool flat)
{
	const struct encoding *encoding = &instruction->encoding;

	/* 67 says more than how to form this address in movdir64b; it does no harm on a truncated one. */
	emit_prefixes(emitter, instruction, flat, flat, REX_X | REX_B | (encoding->moffs ? REX_R : 0));
	if (encoding->moffs) {
		EMIT(emitter, moffs_opcode(instruction), reg);
		return;
	}
	emit_opcode(emitter, instruction, VEX_X | VEX_B);
	EMIT(emitter, (instruction->bytes[encoding->modrm] & 0x38) | reg);
	emit_rest(emitter, instruction, encoding->tail);
}

void operand_copy_shadow(struct emitter *emitter, const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;
	uint32_t start;

	EMIT(emitter, 0x65);
	emit_prefixes(emitter, instruction, true, false, 0);
	start = emit_offset(emitter) - encoding->prefix_count;
	if (instruction->memory == MEMORY_RIP)
		emit_fixup(emitter, FIXUP_NEAR, instruction->target - emitter->pc, start + encoding->disp,
		        instruction->length - encoding->disp);
	emit_rest(emitter, instruction, encoding->prefix_count);
}

void operand_replace_offset(
        struct emitter *emitter, const struct instruction *instruction, uint8_t reg, int32_t offset)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t modrm;

	emit_prefixes(emitter, instruction, true, true, REX_X | REX_B | (encoding->moffs ? REX_R : 0));
	if (encoding->moffs) {
		modrm = 0;
		EMIT(emitter, moffs_opcode(instruction));
	} else {
		modrm = instruction->bytes[encoding->modrm] & 0x38;
		emit_opcode(emitter, instruction, VEX_X | VEX_B);
	}
	if (offset == 0) {
		EMIT(emitter, modrm | reg);
	} else {
		EMIT(emitter, 0x80 | modrm | reg);
		emit_u32(emitter, (uint32_t)offset);
	}
	if (!encoding->moffs)
		emit_rest(emitter, instruction, encoding->tail);
}

void operand_replace_absolute(struct emitter *emitter, const struct instruction *instruction, uint32_t number)
{
	const struct encoding *encoding = &instruction->encoding;

	emit_prefixes(emitter, instruction, false, true, REX_X | REX_B);
	emit_opcode(emitter, instruction, VEX_X | VEX_B);
	EMIT(emitter, (instruction->bytes[encoding->modrm] & 0x38) | 0x04, 0x25);
	emit_u32(emitter, number);
	emit_rest(emitter, instruction, encoding->tail);
}

void operand_replace_shadow(struct emitter *emitter, const struct instruction *instruction, uint64_t address)
{
	const struct encoding *encoding = &instruction->encoding;

	EMIT(emitter, 0x65);
	emit_prefixes(emitter, instruction, true, true, REX_X | REX_B);
	emit_opcode(emitter, instruction, VEX_X | VEX_B);
	EMIT(emitter, (instruction->bytes[encoding->modrm] & 0x38) | 0x05);
	emit_fixup(emitter, FIXUP_NEAR, address - emitter->pc, emit_offset(emitter),
	        4 + instruction->length - encoding->tail);
	emit_u32(emitter, 0);
	emit_rest(emitter, instruction, encoding->tail);
}

/* Without segments, address size and REX. */
static void emit_legacy_prefixes(struct emitter *emitter, const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->encoding.prefix_count; i++) {
		uint8_t prefix = instruction->bytes[i];

		if ((prefix & 0xf0) != 0x40 && !is_segment(prefix) && prefix != 0x67)
			EMIT(emitter, prefix);
	}
}

uint16_t operand_registers(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;

	/* Its other operand may be ah, which allows no REX. */
	if (instruction->access_size == 1 && !encoding->has_rex && !encoding->vex_size)
		return 1u << RAX | 1u << RCX | 1u << RDX | 1u << RBX;
	return encoding->vex_size ? 0xff : 0xffff;
}

void operand_to_register(struct emitter *emitter, const struct instruction *instruction, uint8_t reg)
{
	const struct encoding *encoding = &instruction->encoding;

	bool named_by_rex = instruction->access_size == 1 && reg >= RSP;
	uint8_t rex = encoding->has_rex ? instruction->bytes[encoding->rex] & ~(REX_X | REX_B) : 0;

	if (encoding->moffs)
		rex &= ~REX_R;
	emit_legacy_prefixes(emitter, instruction);
	if (!encoding->vex_size)
		rex |= reg >> 3;
	if (rex || encoding->has_rex || named_by_rex)
		EMIT(emitter, 0x40 | rex);
	if (encoding->moffs) {
		EMIT(emitter, moffs_opcode(instruction), 0xc0 | (reg & 7));
		return;
	}
	emit_opcode(emitter, instruction, VEX_X | (reg & 8 ? 0 : VEX_B));
	EMIT(emitter, 0xc0 | (instruction->bytes[encoding->modrm] & 0x38) | (reg & 7));
	emit_rest(emitter, instruction, encoding->tail);
}

void operand_replace_base(struct emitter *emitter, const struct instruction *instruction, uint8_t reg)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t modrm = instruction->bytes[encoding->modrm], sib = instruction->bytes[encoding->sib];

	emit_prefixes(emitter, instruction, true, true, REX_B);
	emit_opcode(emitter, instruction, VEX_B);
	/* [vector*scale+disp32] without a base has mod 0 and base 5; with one it is mod 2. */
	if (modrm >> 6 == 0 && (sib & 7) == 5)
		modrm |= 0x80;
	EMIT(emitter, modrm, (sib & 0xf8) | reg);
	emit_rest(emitter, instruction, encoding->sib + 1);
}

/* `opcode` reg, [operand] with REX.W and the program's own modrm, sib and displacement */
static void emit_with_operand(
        struct emitter *emitter, const struct instruction *instruction, uint8_t opcode, uint8_t reg)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t rex = 0x48 | (reg & 8) >> 1, modrm = instruction->bytes[encoding->modrm];

	if (encoding->has_rex)
		rex |= instruction->bytes[encoding->rex] & (REX_X | REX_B);
	if (encoding->vex_size >= 3) {
		uint8_t byte = instruction->bytes[encoding->vex + 1];

		rex |= (byte & VEX_X ? 0 : REX_X) | (byte & VEX_B ? 0 : REX_B);
	}
	if (instruction->address32)
		EMIT(emitter, 0x67);
	if (operand_counts_units(instruction)) {
		EMIT(emitter, rex, opcode, 0x80 | (modrm & 7) | (reg & 7) << 3);
		if (encoding->sib)
			EMIT(emitter, instruction->bytes[encoding->sib]);
		emit_u32(emitter, (uint32_t)operand_displacement(instruction));
		return;
	}
	EMIT(emitter, rex, opcode, (modrm & 0xc7) | (reg & 7) << 3);
	emit_bytes(emitter, instruction->bytes + encoding->modrm + 1, encoding->tail - encoding->modrm - 1);
}

static bool is_rip_relative(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;

	return encoding->modrm && (instruction->bytes[encoding->modrm] & 0xc7) == 0x05;
}

void operand_offset(struct emitter *emitter, const struct instruction *instruction, uint8_t reg)
{
	const struct encoding *encoding = &instruction->encoding;

	if (encoding->moffs) {
		uint64_t address = 0;

		memcpy(&address, instruction->bytes + encoding->disp, encoding->disp_size);
		emit_number(emitter, reg, address);
		return;
	}
	if (is_rip_relative(instruction)) {
		emit_address(emitter, reg, instruction->target);
		if (instruction->address32)
			emit_truncate(emitter, reg);
		return;
	}
	if (instruction->vector_index) {
		if (instruction->base == NO_REGISTER) {
			emit_number(emitter, reg, (uint64_t)(int64_t)operand_displacement(instruction));
			return;
		}
		emit_move(emitter, reg, instruction->base);
		emit_add_number(emitter, reg, operand_displacement(instruction));
		return;
	}
	emit_with_operand(emitter, instruction, 0x8d, reg);
	/* pop [rsp+x] forms its address when rsp has moved already */
	if (instruction->is_pop && instruction->base == RSP)
		emit_add_number(emitter, reg, instruction->width);
}

void operand_load(struct emitter *emitter, const struct instruction *instruction, uint8_t reg)
{
	if (instruction->fs)
		EMIT(emitter, 0x64);
	emit_with_operand(emitter, instruction, 0x8b, reg);
	if (is_rip_relative(instruction))
		emit_fixup(
		        emitter, FIXUP_NEAR, instruction->target - emitter->pc, emit_offset(emitter) - 4, 4);
}

bool operand_has_segment(const struct instruction *instruction)
{
	return instruction->fs || instruction->memory >= MEMORY_GS;
}

void operand_segment_base(struct emitter *emitter, const struct instruction *instruction, uint8_t reg)
{
	if (instruction->fs)
		EMIT(emitter, 0xf3, 0x48 | reg >> 3, 0x0f, 0xae, 0xc0 | (reg & 7)); /* rdfsbase reg */
	else
		emit_reload(emitter, reg, SLOT_PROGRAM_GS);
}
