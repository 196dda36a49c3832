/*
 * The small pieces of translate.h that a code cache needs besides whole
 * translations: thunks, exits, bridges and veneers.
 */
#include "translate/emit.h"

/*
 *     thunk for pc, flags kept
 *     jmp  pc              ; site[0]
 *     exit for pc
 *
 * entry[0].offset and .thunk both are where the thunk starts.
 */
int translate_thunk(uint64_t pc, bool loop_is_fast, struct translation *out)
{
	struct emitter emitter;
	struct entry *entry;
	uint32_t next, thunk;

	emit_init(&emitter, out, pc);
	entry = emit_entry(&emitter, pc, true);
	next = emit_thunk(&emitter, pc, loop_is_fast, &thunk);
	if (entry) {
		entry->offset = entry->thunk = thunk;
		entry->thunk_next = next;
	}
	emit_record(&emitter, pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	emit_site(&emitter, JMP, pc);
	emit_tail(&emitter, NULL);
	return emit_finish(&emitter);
}

int translate_exit(uint64_t pc, struct translation *out)
{
	struct emitter emitter;

	emit_init(&emitter, out, pc);
	emit_entry(&emitter, pc, false);
	emit_exit(&emitter, pc);
	return emit_finish(&emitter);
}

/*
 *     jmp  [rip+2]
 *     int3 ; int3
 *     literal
 */
int translate_bridge(uint64_t pc, struct translation *out, uint32_t *literal_offset)
{
	struct emitter emitter;

	emit_init(&emitter, out, pc);
	emit_entry(&emitter, pc, false);
	emit_record(&emitter, pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	EMIT(&emitter, 0xff, 0x25, 2, 0, 0, 0);
	emit_breaks(&emitter, 2);
	*literal_offset = emit_offset(&emitter);
	emit_u64(&emitter, 0);
	return emit_finish(&emitter);
}

/*
 *     mov  gs:[SLOT_SCRATCH_A], rax
 *     mov  rax, gs:[slot]              ; for each slot that the routine reads
 *     mov  gs:[stub's slot], rax       ; the form with a 64-bit address, which only rax has
 *     mov  rax, gs:[SLOT_SCRATCH_A]
 *     jmp  [literal]
 *
 * The pc is in rcx and not known here: records have pc 0.
 */
int translate_veneer(
        unsigned routine, uint64_t slots_address, uint64_t routine_address, struct translation *out)
{
	static const struct {
		uint8_t slots[4], count;
	} moved[ROUTINE_COUNT] = {
	        [ROUTINE_EXIT] = {{SLOT_RCX}, 1},
	        [ROUTINE_MISS] = {{SLOT_RCX, SLOT_R11, SLOT_BRANCH, SLOT_UNDER_STACK}, 4},
	        [ROUTINE_SYSCALL] = {{SLOT_RCX}, 1},
	        [ROUTINE_EMULATE] = {{SLOT_RCX, SLOT_ADDRESS, SLOT_DETAIL, SLOT_SCRATCH_B}, 4},
	        [ROUTINE_ACCESS] = {{SLOT_RCX, SLOT_ADDRESS, SLOT_DETAIL}, 3},
	        [ROUTINE_STOP] = {{SLOT_RCX}, 1},
	        [ROUTINE_FILTERED] = {{SLOT_RCX, SLOT_ADDRESS, SLOT_DETAIL}, 3},
	};
	uint32_t state = RECORD_RCX | (routine == ROUTINE_MISS ? RECORD_R11 : 0);
	uint32_t spilled = RECORD_SCRATCH_A | RAX << 8;
	struct emitter emitter;

	emit_init(&emitter, out, 0);
	emit_record(&emitter, 0, state);
	emit_spill(&emitter, RAX, SLOT_SCRATCH_A);
	emit_record(&emitter, 0, state | spilled);
	for (unsigned i = 0; i < moved[routine].count; i++) {
		unsigned slot = moved[routine].slots[i];

		emit_reload(&emitter, RAX, slot);
		EMIT(&emitter, 0x65, 0x48, 0xa3);
		emit_u64(&emitter, slots_address + 8 * slot);
	}
	emit_reload(&emitter, RAX, SLOT_SCRATCH_A);
	emit_record(&emitter, 0, state);
	EMIT(&emitter, 0xff, 0x25);
	emit_literal(&emitter, false, routine_address, 4);
	emit_tail(&emitter, NULL);
	return emit_finish(&emitter);
}
