#include "translate/keep.h"

#include <stdlib.h>

#include "translate/liveness.h"

enum { KEPT_A, KEPT_B, KEPT_COUNT };

static const struct {
	uint32_t bit;
	unsigned shift; /* of the register's number in a record's state */
} places[KEPT_COUNT] = {
        [KEPT_A] = {RECORD_KEPT_A, 20},
        [KEPT_B] = {RECORD_KEPT_B, 24},
};

static uint32_t mask_of(unsigned which)
{
	return places[which].bit | 15u << places[which].shift;
}

static uint8_t register_in(uint32_t state, unsigned which)
{
	return state & places[which].bit ? state >> places[which].shift & 15 : NO_REGISTER;
}

static uint16_t bit_of(uint8_t reg)
{
	return reg == NO_REGISTER ? 0 : (uint16_t)(1u << reg);
}

/* All that the instruction reads, writes or forms an address of. (`use` may say more: what must be as it is.)
 */
static uint16_t touched_by(const struct instruction *instruction)
{
	return instruction->used | instruction->address_registers;
}

/* May the register have anything in it before? */
static bool overwrites(const struct instruction *instruction, uint8_t reg)
{
	return (instruction->kind == KIND_PLAIN || instruction->kind == KIND_LEA) &&
	       (instruction->access == ACCESS_NONE || instruction->access == ACCESS_LOAD) &&
	       (instruction->kill & LIVE_REGISTER(reg)) && !(instruction->use & LIVE_REGISTER(reg)) &&
	       !(instruction->address_registers & bit_of(reg));
}

/* What is put back now belongs to `pc`: an instruction that traps behind itself is shown there. */
static void note_behind(struct lowering *lowering, uint64_t pc)
{
	if (lowering->emitter->kept)
		emit_record(lowering->emitter, pc, lowering->flags_in_slot ? RECORD_FLAGS : 0);
}

static void put_back(struct lowering *lowering, unsigned which)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t reg = register_in(emitter->kept, which);

	if (reg == NO_REGISTER)
		return;
	emit_reload(emitter, reg, SLOT_KEPT + reg);
	emitter->kept &= ~mask_of(which);
	emitter->kept_until_behind &= ~mask_of(which);
}

void keep_restore(struct emitter *emitter, uint32_t state)
{
	for (unsigned i = 0; i < KEPT_COUNT; i++) {
		uint8_t reg = register_in(state, i);

		if (reg != NO_REGISTER)
			emit_reload(emitter, reg, SLOT_KEPT + reg);
	}
}

void keep_settle(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	bool plain = instruction->kind == KIND_PLAIN || instruction->kind == KIND_LEA;

	lowering->taken = 0;
	note_behind(lowering, instruction->pc);
	for (unsigned i = 0; i < KEPT_COUNT; i++) {
		uint8_t reg = register_in(emitter->kept, i);

		if (reg == NO_REGISTER)
			continue;
		if (plain && overwrites(instruction, reg))
			emitter->kept_until_behind |= mask_of(i);
		else if (!plain || (touched_by(instruction) & bit_of(reg)))
			put_back(lowering, i);
	}
}

void keep_enter(struct lowering *lowering)
{
	lowering->clean = 0;
}

void keep_note(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	lowering->clean &= ~instruction->written;
	emitter->kept &= ~emitter->kept_until_behind;
	emitter->kept_until_behind = 0;
}

void keep_end(struct lowering *lowering, uint64_t pc)
{
	note_behind(lowering, pc);
	for (unsigned i = 0; i < KEPT_COUNT; i++)
		put_back(lowering, i);
}

uint16_t keep_registers(const struct lowering *lowering)
{
	uint32_t kept = lowering->emitter->kept;

	return bit_of(register_in(kept, KEPT_A)) | bit_of(register_in(kept, KEPT_B));
}

/* One for a value, one for an address, and one that x87 instructions cannot have. */
bool keep_has_enough(
        const struct lowering *lowering, const struct instruction *instruction, uint16_t reserved)
{
	bool needs_none = instruction->kind != KIND_PLAIN || instruction->access == ACCESS_POP ||
	                  (instruction->access == ACCESS_LOAD && shadow_is_direct(lowering, instruction));

	return needs_none || __builtin_popcount(KEEP_ADDRESSES & ~touched_by(instruction) & ~reserved) >= 3;
}

/* The lowest of them, which must not be none. */
static uint8_t any_of(uint16_t registers)
{
	return (uint8_t)__builtin_ctz(registers);
}

/*
 * Whom the program misses least: one that is left alone for long, best if it is overwritten then, or not read
 * behind the block, so that nothing waits for it to come back.
 */
static uint8_t choose(const struct lowering *lowering, uint16_t candidates)
{
	const struct block *block = lowering->block;
	uint16_t left = candidates;
	uint8_t overwritten = NO_REGISTER;
	uint32_t overwritten_after = 0, distance = 1;

	for (uint32_t i = lowering->index + 1; i < block->count; i++, distance++) {
		const struct instruction *instruction = region_at(lowering->region, block, i);
		uint16_t touched = touched_by(instruction) & left;

		for (uint16_t rest = touched; rest; rest &= rest - 1) {
			if (overwrites(instruction, any_of(rest))) {
				overwritten = any_of(rest);
				overwritten_after = distance;
			}
		}
		if (!(left & ~touched))
			break;
		left &= ~touched;
	}
	if (overwritten != NO_REGISTER && overwritten_after * 2 >= distance)
		return overwritten;
	return left & ~block->live_out ? any_of(left & ~block->live_out) : any_of(left);
}

uint8_t keep_register(
        struct lowering *lowering, const struct instruction *instruction, uint16_t candidates, uint32_t state)
{
	struct emitter *emitter = lowering->emitter;
	unsigned which = lowering->taken++ ? KEPT_B : KEPT_A, other = KEPT_COUNT - 1 - which;

	candidates &= ~touched_by(instruction) & ~(1u << RSP);
	if (lowering->repeating)
		candidates &= ~touched_by(lowering->setter);
	if (bit_of(register_in(emitter->kept, which)) & candidates)
		return register_in(emitter->kept, which);
	put_back(lowering, which);
	if (which == KEPT_A && !(candidates & ~bit_of(register_in(emitter->kept, other))))
		put_back(lowering, other);
	candidates &= ~bit_of(register_in(emitter->kept, other));
	if (!candidates)
		abort();

	uint8_t reg = choose(lowering, candidates);

	if (!(lowering->clean & bit_of(reg)))
		emit_spill(emitter, reg, SLOT_KEPT + reg);
	lowering->clean |= bit_of(reg);
	emitter->kept |= places[which].bit | (uint32_t)reg << places[which].shift;
	emit_record(emitter, instruction->pc, state);
	return reg;
}
