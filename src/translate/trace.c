/*
 * Accesses to memory, told to the stub before they are made: for whoever wants to know what
 * a replayed thread loads and stores. Most are none of those that are wanted, and go on
 * after a look at the filter:
 *
 *     rcx = the operand's address          ; the program's rcx in its slot
 *     mov   gs:[SLOT_ADDRESS], rcx
 *     movzx ecx, word gs:[SLOT_ADDRESS + 1]
 *     mov   gs:[SLOT_R11], r11
 *     mov   r11, filter
 *     movzx ecx, byte [r11+rcx]
 *     mov   r11, gs:[SLOT_R11]
 *     jrcxz on
 *     mov   gs:[SLOT_DETAIL], detail
 *     lea   rcx, [instruction]
 *     jmp   ROUTINE_ACCESS
 * on: mov   rcx, gs:[SLOT_RCX]
 * instruction:
 *
 * Flags are not touched. What is always told has only the first line and the last part of it.
 */
#include "translate/lowering.h"
#include "translate/operand.h"

_Static_assert(TRACE_SHIFT == 8, "the filter's index begins with the second byte of the address");

static void emit_filter(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	EMIT(emitter, 0x65, 0x0f, 0xb7, 0x0d); /* movzx ecx, word gs:[rip+x] */
	/* The slot's second byte: as if the instruction ended one byte earlier. */
	emit_fixup(emitter, FIXUP_SLOT, SLOT_ADDRESS, emit_offset(emitter), 3);
	emit_u32(emitter, 0);
	emit_spill(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX | RECORD_R11);
	emit_number(emitter, R11, lowering->request->trace_filter);
	EMIT(emitter, 0x41, 0x0f, 0xb6, 0x0c, 0x0b); /* movzx ecx, byte [r11+rcx] */
	emit_reload(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX);
}

void trace_access(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	unsigned what = instruction->trace;
	bool always = what & (TRACE_LOCKED | TRACE_STRING);
	uint32_t around = 0;

	if (what & TRACE_STRING) {
		emit_spill(emitter, RCX, SLOT_RCX);
		emit_record(emitter, instruction->pc, RECORD_RCX);
	} else {
		lower_address(lowering, instruction);
		emit_spill(emitter, RCX, SLOT_ADDRESS);
	}
	if (!always) {
		emit_filter(lowering, instruction);
		EMIT(emitter, 0xe3, 0); /* jrcxz */
		around = emit_offset(emitter) - 1;
	}
	emit_slot_number(emitter, SLOT_DETAIL,
	        ACCESS_DETAIL(what, (uint32_t)instruction->trace_size, (uint32_t)emitter->executed));
	EMIT(emitter, 0x48, 0x8d, 0x0d); /* lea rcx, [rip+x] */
	emit_u32(emitter, 0);
	uint32_t field = emit_offset(emitter) - 4;
	emit_routine(emitter, ROUTINE_ACCESS);
	if (!always) {
		emit_rel8_here(emitter, around);
		emit_reload(emitter, RCX, SLOT_RCX);
	}
	emit_rel32_to(emitter, field, emit_offset(emitter));
	emit_record(emitter, instruction->pc, RECORD_BOUNDARY);
}
