#include "translate/flags.h"

#include <stdlib.h>

#include "translate/keep.h"
#include "translate/liveness.h"
#include "translate/operand.h"

bool flags_live(const struct instruction *instruction)
{
	return !liveness_flags_dead_before(instruction);
}

/* Overwrites all of them, so that nobody can miss what was there. */
static bool renews_flags(const struct instruction *instruction)
{
	return (instruction->kill & LIVE_FLAGS(FLAGS_ALL)) == LIVE_FLAGS(FLAGS_ALL) &&
	       !(instruction->use & LIVE_FLAGS(FLAGS_ALL));
}

/* Does it want the flags as they were, to read or to keep some of them? */
static bool needs_flags(const struct instruction *instruction)
{
	return (instruction->use & LIVE_FLAGS(FLAGS_ALL)) ||
	       (instruction->writes_flags && !renews_flags(instruction));
}

/* Loads and compares before the program's own instruction is executed. */
static bool checks_first(const struct instruction *instruction)
{
	return instruction->kind == KIND_PLAIN &&
	       (instruction->access == ACCESS_USE || instruction->access == ACCESS_MODIFY);
}

/* All that the instruction reads or writes. */
static uint16_t registers_of(const struct instruction *instruction)
{
	return instruction->used | instruction->address_registers;
}

static bool is_added(const struct lowering *lowering)
{
	return RECORD_ADDED(lowering->emitter->kept);
}

/* -- repeated ------------------------------------------------------------ */

void flags_enter(struct lowering *lowering)
{
	lowering->setter = NULL;
}

void flags_note(struct lowering *lowering, const struct instruction *instruction)
{
	const struct instruction *setter = lowering->setter;

	if (instruction->writes_flags) {
		lowering->setter = instruction->repeat ? instruction : NULL;
		lowering->setter_start = lowering->start;
		return;
	}
	if (!setter)
		return;
	/* A miss may change the shadow of what it compared: then it has to be executed again, and only that.
	 */
	if ((instruction->written & registers_of(setter)) || setter->repeat == REPEAT_SHADOW)
		lowering->setter = NULL;
}

static void emit_repeated(struct lowering *lowering, const struct instruction *setter)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t reg = setter->destination, wide = setter->width == 8 ? 0x08 : 0;

	switch ((enum repeat_kind)setter->repeat) {
	case REPEAT_TEST: /* test reg, reg */
		if (wide || reg & 8)
			EMIT(emitter, 0x40 | wide | (reg & 8 ? 5 : 0));
		EMIT(emitter, 0x85, 0xc0 | (reg & 7) << 3 | (reg & 7));
		break;
	case REPEAT_UNDONE: /* lea reg, [reg-number] ; the instruction */
		emit_add_number(emitter, reg, -setter->number);
		operand_copy(emitter, setter);
		break;
	case REPEAT_SHADOW:
		shadow_execute(lowering, setter);
		break;
	case REPEAT_ITSELF:
		operand_copy(emitter, setter);
		break;
	default:
		abort();
	}
}

/*
 * Is what the setter needs in place, and does it stay there although the instruction overwrites some? What
 * has more than one part to compare may fault at the second one, with the flags of the first compare.
 */
static bool can_repeat(
        const struct lowering *lowering, const struct instruction *instruction, uint16_t overwritten)
{
	const struct instruction *setter = lowering->setter;

	if (!setter || instruction->access_size > 8)
		return false;
	/* A fault of its store shows the flags from before it, which it has changed then. */
	if (instruction->access == ACCESS_MODIFY && instruction->writes_flags)
		return false;
	uint16_t registers = registers_of(setter);

	/* When that one is executed again, all registers have to be as they were before it. */
	if (setter->repeat == REPEAT_SHADOW && (overwritten || !shadow_is_direct(lowering, setter)))
		return false;
	return !(registers & (overwritten | keep_registers(lowering))) &&
	       keep_has_enough(lowering, instruction, registers);
}

bool flags_need_registers(const struct lowering *lowering, const struct instruction *instruction)
{
	/* mov al, [number] has no form with a register for its operand. */
	return flags_live(instruction) && !lowering->flags_in_slot && !is_added(lowering) &&
	       !instruction->encoding.moffs && can_repeat(lowering, instruction, 0) &&
	       ((registers_of(lowering->setter) & instruction->written) ||
	               lowering->setter->repeat == REPEAT_SHADOW);
}

bool flags_are_repeated(const struct lowering *lowering)
{
	return lowering->repeating;
}

/* -- in a slot ----------------------------------------------------------- */

/* `pc` and `state`: what holds afterwards. */
static void restore_slot(struct lowering *lowering, uint64_t pc, uint32_t state)
{
	if (!lowering->flags_in_slot)
		return;
	emit_restore_flags(lowering->emitter);
	lowering->flags_in_slot = false;
	emit_record(lowering->emitter, pc, state);
}

uint32_t flags_state(const struct lowering *lowering)
{
	return lowering->flags_in_slot ? RECORD_FLAGS : 0;
}

void flags_settle(struct lowering *lowering, const struct instruction *instruction, uint64_t pc)
{
	if (!lowering->flags_in_slot)
		return;
	emit_record(lowering->emitter, pc, RECORD_FLAGS);
	if (!instruction) {
		const struct block *next = region_block(lowering->region, pc);

		if (!next || !liveness_flags_unread_at_entry(next))
			restore_slot(lowering, pc, 0);
	} else if (flags_live(instruction) && instruction->kind != KIND_RETURN &&
	           (instruction->kind >= KIND_JUMP ||
	                   (needs_flags(instruction) && !checks_first(instruction)))) {
		restore_slot(lowering, pc, 0);
	} else if (!flags_live(instruction)) {
		lowering->flags_in_slot = false;
	}
	if (!instruction)
		lowering->flags_in_slot = false;
}

void flags_begin(struct lowering *lowering, const struct instruction *instruction, uint16_t overwritten)
{
	if (!flags_live(instruction) || lowering->flags_in_slot || is_added(lowering))
		return;
	if (can_repeat(lowering, instruction, overwritten)) {
		lowering->repeating = true;
		return;
	}
	emit_save_flags(lowering->emitter);
	lowering->flags_in_slot = true;
	emit_record(lowering->emitter, instruction->pc, RECORD_FLAGS);
}

void flags_end(struct lowering *lowering)
{
	if (lowering->repeating)
		emit_repeated(lowering, lowering->setter);
	lowering->repeating = false;
}

void flags_in_place(struct lowering *lowering, uint64_t pc)
{
	restore_slot(lowering, pc, 0);
}

void flags_place(struct lowering *lowering, const struct instruction *instruction, uint32_t state)
{
	if (needs_flags(instruction))
		restore_slot(lowering, instruction->pc, state);
}

void flags_renewed(struct lowering *lowering, const struct instruction *instruction)
{
	if (instruction->writes_flags)
		lowering->flags_in_slot = false;
}

/* -- added --------------------------------------------------------------- */

/* Has it nothing to do with flags or memory, and leaves the stack alone? */
static bool is_apart(const struct instruction *instruction)
{
	return (instruction->kind == KIND_PLAIN || instruction->kind == KIND_LEA) && !instruction->access &&
	       !instruction->writes_flags && !(instruction->use & LIVE_FLAGS(FLAGS_ALL)) &&
	       !(instruction->written & 1u << RSP) && !instruction->may_fault;
}

bool flags_defer(struct lowering *lowering, const struct instruction *instruction)
{
	const struct block *block = lowering->block;
	struct emitter *emitter = lowering->emitter;
	unsigned pops = 0;

	bool is_add = (instruction->opcode == 0x81 || instruction->opcode == 0x83) &&
	              !(instruction->bytes[instruction->encoding.modrm] & 0x38);

	if (instruction->repeat != REPEAT_UNDONE || instruction->destination != RSP || !is_add ||
	        instruction->width != 8 || instruction->number <= 0 || instruction->number % 8 ||
	        instruction->number / 8 > 0xff || lowering->request->low_stack)
		return false;
	for (uint32_t i = lowering->index + 1; i + 1 < block->count; i++) {
		const struct instruction *next = region_at(lowering->region, block, i);

		if (next->access == ACCESS_POP)
			pops++;
		else if (!is_apart(next))
			return false;
	}
	if (pops > RECORD_ADDED_POPS_MAX ||
	        region_at(lowering->region, block, block->count - 1)->kind != KIND_RETURN)
		return false;
	emit_add_number(emitter, RSP, instruction->number);
	emitter->kept |= RECORD_ADDED_STATE(instruction->number, 0);
	return true;
}

void flags_popped(struct lowering *lowering)
{
	if (is_added(lowering))
		lowering->emitter->kept += RECORD_ADDED_ONE_POP;
}

/*
 *     lea  rsp, [rsp-all]
 *     add  rsp, n
 *     lea  rsp, [rsp+the rest]
 *
 * `dropped` bytes were taken from the stack since.
 */
static void emit_addition(struct emitter *emitter, uint32_t state, int32_t dropped)
{
	int32_t number = RECORD_ADDED_BYTES(state), since = RECORD_ADDED_POPS(state) * 8 + dropped;

	emit_add_number(emitter, RSP, -number - since);
	if (number == (int8_t)number) {
		EMIT(emitter, 0x48, 0x83, 0xc4, (uint8_t)number);
	} else {
		EMIT(emitter, 0x48, 0x81, 0xc4);
		emit_u32(emitter, (uint32_t)number);
	}
	if (since)
		emit_add_number(emitter, RSP, since);
}

/* -- at branches --------------------------------------------------------- */

bool flags_can_restore(struct lowering *lowering, const struct instruction *instruction)
{
	if (lowering->flags_in_slot || is_added(lowering))
		return true;
	if (!can_repeat(lowering, instruction, 1u << RCX | 1u << R11 | 1u << RSP))
		return false;
	lowering->repeating = true;
	return true;
}

void flags_restore(struct lowering *lowering, int32_t dropped)
{
	struct emitter *emitter = lowering->emitter;

	if (is_added(lowering)) {
		emit_addition(emitter, emitter->kept, dropped);
		emitter->kept &= ~RECORD_ADDED_MASK;
	}
	if (lowering->flags_in_slot)
		emit_restore_flags(emitter);
	lowering->flags_in_slot = false;
	flags_end(lowering);
}

void flags_restore_missed(struct lowering *lowering, const struct miss *miss)
{
	if (miss->repeat && miss->repeat->repeat != REPEAT_SHADOW)
		emit_repeated(lowering, miss->repeat);
	if (RECORD_ADDED(miss->state))
		emit_addition(lowering->emitter, miss->state, 0);
}
