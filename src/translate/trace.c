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
 *     jmp   ROUTINE_FILTERED
 * on: (the note of emit_known)
 *     mov   rcx, gs:[SLOT_RCX]
 * instruction:
 *
 * Flags are not touched. What is always told has only the first line and the last part of it, and goes to
 * ROUTINE_ACCESS. What is told is noted as known by the stub, which may want to know first whether it was.
 */
#include "translate/lowering.h"
#include "translate/operand.h"

/* The images of fxsave and the like are larger; what lies behind counts as unknown. */
#define NOTED_MOST 64u

_Static_assert(TRACE_SHIFT == 8, "the filter's index begins with the second byte of the address");

/* movzx ecx, word gs:[SLOT_ADDRESS + byte]: as if the instruction ended so many bytes earlier. */
static void emit_address_word(struct emitter *emitter, unsigned byte)
{
	EMIT(emitter, 0x65, 0x0f, 0xb7, 0x0d);
	emit_fixup(emitter, FIXUP_SLOT, SLOT_ADDRESS, emit_offset(emitter), 4 - byte);
	emit_u32(emitter, 0);
}

static void emit_filter(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_address_word(emitter, TRACE_SHIFT / 8);
	emit_spill(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX | RECORD_R11);
	emit_number(emitter, R11, lowering->request->trace_filter);
	EMIT(emitter, 0x41, 0x0f, 0xb6, 0x0c, 0x0b); /* movzx ecx, byte [r11+rcx] */
	emit_reload(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX);
}

/* Ones at [r11+rcx+at], in the largest of 8, 4, 2 and 1 bytes that is not too large; its size. */
static unsigned emit_notes(struct emitter *emitter, unsigned at, unsigned size)
{
	unsigned part = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;

	if (part == 2)
		EMIT(emitter, 0x66);
	EMIT(emitter, part == 8 ? 0x49 : 0x41, part == 1 ? 0xc6 : 0xc7, 0x44, 0x0b, (uint8_t)at);
	for (unsigned i = 0; i < (part == 8 ? 4 : part); i++)
		EMIT(emitter, 0xff);
	return part;
}

/*
 *     movzx ecx, word gs:[SLOT_ADDRESS + 4]   ; the window
 *     mov  gs:[SLOT_R11], r11
 *     mov  r11, table
 *     mov  r11, [r11+rcx*8]
 *     mov  ecx, gs:[SLOT_ADDRESS]
 *     mov  [r11+rcx], -1                      ; as large as the access, at most NOTED_MOST
 *     mov  r11, gs:[SLOT_R11]
 */
static void emit_known(struct lowering *lowering, const struct instruction *instruction, unsigned size)
{
	struct emitter *emitter = lowering->emitter;

	if (!lowering->request->known_table)
		return;
	emit_address_word(emitter, KNOWN_WINDOW_BITS / 8);
	emit_spill(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX | RECORD_R11);
	emit_number(emitter, R11, lowering->request->known_table);
	EMIT(emitter, 0x4d, 0x8b, 0x1c, 0xcb);
	EMIT(emitter, 0x65, 0x8b, 0x0d);
	emit_fixup(emitter, FIXUP_SLOT, SLOT_ADDRESS, emit_offset(emitter), 4);
	emit_u32(emitter, 0);
	for (unsigned at = 0; at < size && at < NOTED_MOST;)
		at += emit_notes(emitter, at, size - at);
	emit_reload(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX);
}

/* `what` and the size of ACCESS_DETAIL; rcx is the program's in its slot, and, for accesses, the address. */
static void emit_telling(struct lowering *lowering, const struct instruction *instruction, unsigned what,
        unsigned size, bool always)
{
	struct emitter *emitter = lowering->emitter;
	uint32_t around = 0;

	if (!always) {
		emit_filter(lowering, instruction);
		EMIT(emitter, 0xe3, 0); /* jrcxz */
		around = emit_offset(emitter) - 1;
	}
	emit_slot_number(
	        emitter, SLOT_DETAIL, ACCESS_DETAIL(what, (uint32_t)size, (uint32_t)emitter->executed));
	EMIT(emitter, 0x48, 0x8d, 0x0d); /* lea rcx, [rip+x] */
	emit_u32(emitter, 0);
	uint32_t field = emit_offset(emitter) - 4;
	emit_routine(emitter, always ? ROUTINE_ACCESS : ROUTINE_FILTERED);
	if (!always) {
		emit_rel8_here(emitter, around);
		emit_record(emitter, instruction->pc, RECORD_RCX);
		emit_known(lowering, instruction, size);
		emit_reload(emitter, RCX, SLOT_RCX);
	}
	emit_rel32_to(emitter, field, emit_offset(emitter));
	emit_record(emitter, instruction->pc, RECORD_BOUNDARY);
}

static void spill_rcx(struct emitter *emitter, const struct instruction *instruction)
{
	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
}

static void trace_access(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	unsigned what = instruction->trace;

	if (what & TRACE_STRING) {
		spill_rcx(emitter, instruction);
	} else {
		lower_address(lowering, instruction);
		emit_spill(emitter, RCX, SLOT_ADDRESS);
	}
	emit_telling(
	        lowering, instruction, what, instruction->trace_size, what & (TRACE_LOCKED | TRACE_STRING));
}

/*
 *     mov  gs:[SLOT_RCX], rcx
 *     lea  rcx, [rsp-size]
 *     mov  gs:[SLOT_ADDRESS], rcx
 *     ...
 */
static void trace_push(struct lowering *lowering, const struct instruction *instruction, unsigned size)
{
	struct emitter *emitter = lowering->emitter;

	spill_rcx(emitter, instruction);
	EMIT(emitter, 0x48, 0x8d, 0x4c, 0x24, (uint8_t)-size);
	emit_spill(emitter, RCX, SLOT_ADDRESS);
	emit_telling(lowering, instruction, TRACE_WRITE, size, false);
}

/*
 * What is loaded from the stack, by pop, ret and leave:
 *
 *     mov  gs:[SLOT_RCX], rcx
 *     lea  rcx, [rsp]             ; leave: mov rcx, rbp
 *     mov  gs:[SLOT_ADDRESS], rcx
 *     ...
 */
static void trace_pop(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	spill_rcx(emitter, instruction);
	if (instruction->kind == KIND_PLAIN && instruction->access == ACCESS_LEAVE)
		EMIT(emitter, 0x48, 0x89, 0xe9);
	else
		EMIT(emitter, 0x48, 0x8d, 0x0c, 0x24);
	emit_spill(emitter, RCX, SLOT_ADDRESS);
	emit_telling(lowering, instruction, TRACE_READ, 8, false);
}

static bool pops(const struct instruction *instruction)
{
	return instruction->kind == KIND_RETURN ||
	       (instruction->kind == KIND_PLAIN &&
	               (instruction->access == ACCESS_POP || instruction->access == ACCESS_LEAVE));
}

/* What goes to the stack or to the pc, from memory. */
static bool loads_elsewhere(const struct instruction *instruction)
{
	bool indirect = instruction->kind == KIND_CALL_INDIRECT || instruction->kind == KIND_JUMP_INDIRECT;

	return (indirect && instruction->is_memory) ||
	       (instruction->kind == KIND_PLAIN && instruction->access == ACCESS_PUSH_MEMORY);
}

static void trace_load(struct lowering *lowering, const struct instruction *instruction)
{
	lower_address(lowering, instruction);
	emit_spill(lowering->emitter, RCX, SLOT_ADDRESS);
	emit_telling(lowering, instruction, TRACE_READ, 8, false);
}

static unsigned pushed_by(const struct instruction *instruction)
{
	bool call = instruction->kind == KIND_CALL || instruction->kind == KIND_CALL_INDIRECT;

	return call ? 8 : instruction->kind == KIND_PLAIN ? instruction->pushes : 0;
}

void trace_instruction(struct lowering *lowering, const struct instruction *instruction)
{
	const struct translate_request *request = lowering->request;

	if (request->probed && request->probed(request->context, instruction->pc)) {
		/* A jump may have no code of its own: where it goes on does not tell which one it was. */
		spill_rcx(lowering->emitter, instruction);
		emit_address(lowering->emitter, RCX, instruction->pc);
		emit_spill(lowering->emitter, RCX, SLOT_ADDRESS);
		emit_telling(lowering, instruction, TRACE_EXECUTES, 0, true);
	}
	if (!request->trace_filter)
		return;
	if (instruction->kind == KIND_PLAIN && instruction->trace)
		trace_access(lowering, instruction);
	if (!request->trace_stack)
		return;
	if (pops(instruction))
		trace_pop(lowering, instruction);
	if (loads_elsewhere(instruction))
		trace_load(lowering, instruction);
	if (pushed_by(instruction))
		trace_push(lowering, instruction, pushed_by(instruction));
}
