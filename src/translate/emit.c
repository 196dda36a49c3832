/*
 * The emitter of emit.h. Registers are numbers 0-15; every encoding that takes
 * one also takes r8-r15 unless its comment says otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "translate/emit.h"

#define PATCH_LINE 32 /* a patchable field lies within one of these */

void emit_init(struct emitter *emitter, struct translation *out, uint64_t pc)
{
	*emitter = (struct emitter){.out = out, .pc = pc, .counter = SLOT_POSITION};
	*out = (struct translation){.pc = pc};
}

int emit_finish(struct emitter *emitter)
{
	free(emitter->literals);
	free(emitter->failures);
	free(emitter->stops);
	if (!emitter->failed)
		return 0;
	translation_free(emitter->out);
	return -ENOMEM;
}

/* -- raw ----------------------------------------------------------------- */

/* Makes room for `more` elements behind `count`; returns the array, or NULL and sets `failed`. */
static void *grow(
        struct emitter *emitter, void *array, uint32_t count, uint32_t *capacity, size_t more, size_t size)
{
	if (emitter->failed)
		return NULL;
	if (count + more <= *capacity)
		return array;

	size_t wanted = *capacity ? (size_t)*capacity * 2 : 4096 / size;

	while (wanted < count + more)
		wanted *= 2;

	void *grown = wanted <= UINT32_MAX ? realloc(array, wanted * size) : NULL;

	if (!grown) {
		emitter->failed = true;
		return NULL;
	}
	*capacity = wanted;
	return grown;
}

/* A pointer to a new last element of array `a` in struct `owner`, or NULL. */
#define PUSH(emitter, owner, array, count, capacity)                                                         \
	({                                                                                                   \
		void *grown_ = grow(emitter, (owner)->array, (owner)->count, &(emitter)->capacity, 1,        \
		        sizeof(*(owner)->array));                                                            \
		if (grown_)                                                                                  \
			(owner)->array = grown_;                                                             \
		grown_ ? &(owner)->array[(owner)->count++] : NULL;                                           \
	})

void emit_bytes(struct emitter *emitter, const void *bytes, size_t size)
{
	struct translation *out = emitter->out;
	uint8_t *code = grow(emitter, out->code, out->code_size, &emitter->code_capacity, size, 1);

	if (!code)
		return;
	memcpy(code + out->code_size, bytes, size);
	out->code = code;
	out->code_size += size;
}

void emit_u32(struct emitter *emitter, uint32_t value)
{
	emit_bytes(emitter, &value, sizeof(value));
}

void emit_u64(struct emitter *emitter, uint64_t value)
{
	emit_bytes(emitter, &value, sizeof(value));
}

void emit_nops(struct emitter *emitter, unsigned size)
{
	static const uint8_t nops[8][8] = {
	        {0x90},
	        {0x66, 0x90},
	        {0x0f, 0x1f, 0x00},
	        {0x0f, 0x1f, 0x40, 0x00},
	        {0x0f, 0x1f, 0x44, 0x00, 0x00},
	        {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	        {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	        {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	};

	while (size) {
		unsigned step = size < 8 ? size : 8;

		emit_bytes(emitter, nops[step - 1], step);
		size -= step;
	}
}

void emit_breaks(struct emitter *emitter, unsigned size)
{
	while (size--)
		EMIT(emitter, 0xcc);
}

void emit_fixup(struct emitter *emitter, enum fixup_kind kind, int64_t value, uint32_t offset, unsigned end)
{
	struct fixup *fixup = PUSH(emitter, emitter->out, fixups, fixup_count, fixup_capacity);

	if (fixup)
		*fixup = (struct fixup){.offset = offset, .kind = kind, .end = end, .value = value};
}

/* A rel32 field here that ends its instruction. */
static void emit_rel32_fixup(struct emitter *emitter, enum fixup_kind kind, int64_t value)
{
	emit_fixup(emitter, kind, value, emit_offset(emitter), 4);
	emit_u32(emitter, 0);
}

void emit_rel32_to(struct emitter *emitter, uint32_t field, uint32_t target)
{
	uint32_t distance = target - (field + 4);

	if (!emitter->failed)
		memcpy(emitter->out->code + field, &distance, sizeof(distance));
}

void emit_rel8_here(struct emitter *emitter, uint32_t field)
{
	if (!emitter->failed)
		emitter->out->code[field] = emit_offset(emitter) - (field + 1);
}

void emit_record(struct emitter *emitter, uint64_t pc, uint32_t state)
{
	struct translation *out = emitter->out;
	/* What speaks of another pc, or of the way there, is behind the instruction. */
	bool behind = emitter->in_instruction && (pc != emitter->instruction_pc || (state & RECORD_TRANSIT));
	struct record *record;

	state |= behind ? emitter->kept & ~emitter->kept_until_behind : emitter->kept;
	/* Nothing was emitted since the last one: only the newer one counts, unless it says less. */
	if (out->record_count && out->records[out->record_count - 1].offset == out->code_size) {
		record = &out->records[out->record_count - 1];
		if (record->state & RECORD_BOUNDARY && !(state & RECORD_TRANSIT) &&
		        state == (record->state & ~(uint32_t)(RECORD_BOUNDARY | RECORD_REFUSED)) &&
		        record->pc == (int64_t)(pc - emitter->pc))
			return;
	} else {
		record = PUSH(emitter, out, records, record_count, record_capacity);
	}
	if (record)
		*record = (struct record){.offset = out->code_size,
		        .state = state,
		        .executed = emitter->executed + behind,
		        .pc = pc - emitter->pc};
}

/* -- instructions -------------------------------------------------------- */

/* 65 REX.W op modrm(00 reg 101) rel32 */
static void emit_slot_access(struct emitter *emitter, uint8_t opcode, uint8_t reg, int slot)
{
	EMIT(emitter, 0x65, 0x48 | (reg & 8) >> 1, opcode, 0x05 | (reg & 7) << 3);
	emit_rel32_fixup(emitter, FIXUP_SLOT, slot);
}

void emit_spill(struct emitter *emitter, uint8_t reg, int slot)
{
	emit_slot_access(emitter, 0x89, reg, slot);
}

void emit_reload(struct emitter *emitter, uint8_t reg, int slot)
{
	emit_slot_access(emitter, 0x8b, reg, slot);
}

/* mov qword gs:[rip+slot], imm32, which is extended with its sign: `value` must be below 2^31. */
void emit_slot_number(struct emitter *emitter, unsigned slot, uint32_t value)
{
	EMIT(emitter, 0x65, 0x48, 0xc7, 0x05);
	emit_fixup(emitter, FIXUP_SLOT, slot, emit_offset(emitter), 8);
	emit_u32(emitter, 0);
	emit_u32(emitter, value);
}

static int64_t table_of(const struct emitter *emitter, const struct instruction *branch)
{
	return branch->kind == KIND_RETURN ? (int64_t)(branch->pc - emitter->pc) : TABLE_OF_JUMPS;
}

/* mov qword gs:[SLOT_BRANCH], own place */
void emit_branch_place(struct emitter *emitter, const struct instruction *branch)
{
	emit_slot_number(emitter, SLOT_BRANCH, 0);
	emit_fixup(emitter, FIXUP_PLACE, table_of(emitter, branch), emit_offset(emitter) - 4, 4);
}

static void emit_mov_imm64(struct emitter *emitter, uint8_t reg)
{
	EMIT(emitter, 0x48 | reg >> 3, 0xb8 | (reg & 7));
}

void emit_number(struct emitter *emitter, uint8_t reg, uint64_t value)
{
	emit_mov_imm64(emitter, reg);
	emit_u64(emitter, value);
}

void emit_address(struct emitter *emitter, uint8_t reg, uint64_t address)
{
	emit_mov_imm64(emitter, reg);
	emit_fixup(emitter, FIXUP_ABSOLUTE, address - emitter->pc, emit_offset(emitter), 8);
	emit_u64(emitter, 0);
}

void emit_negated_address(struct emitter *emitter, uint8_t reg, uint64_t address)
{
	emit_mov_imm64(emitter, reg);
	emit_fixup(emitter, FIXUP_NEGATED, address - emitter->pc, emit_offset(emitter), 8);
	emit_u64(emitter, 0);
}

void emit_truncate(struct emitter *emitter, uint8_t reg)
{
	if (reg & 8)
		EMIT(emitter, 0x45);
	EMIT(emitter, 0x89, 0xc0 | (reg & 7) << 3 | (reg & 7));
}

void emit_move(struct emitter *emitter, uint8_t to, uint8_t from)
{
	EMIT(emitter, 0x48 | (from & 8) >> 1 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | (to & 7));
}

/* lea reg, [reg+addend], the other way round where needed: rsp is no index; rbp and r13 are no bare base. */
void emit_add(struct emitter *emitter, uint8_t reg, uint8_t addend)
{
	bool swap = addend == RSP || (reg & 7) == RBP;
	uint8_t base = swap ? addend : reg, index = swap ? reg : addend;

	EMIT(emitter, 0x48 | (reg & 8) >> 1 | (index & 8) >> 2 | base >> 3, 0x8d, 0x04 | (reg & 7) << 3,
	        (index & 7) << 3 | (base & 7));
}

/* lea reg, [reg+disp8 or disp32]; with a SIB byte for rsp and r12, which have no other form */
void emit_add_number(struct emitter *emitter, uint8_t reg, int32_t number)
{
	bool is_short = number == (int8_t)number;

	EMIT(emitter, 0x48 | (reg & 8) >> 1 | reg >> 3, 0x8d,
	        (is_short ? 0x40 : 0x80) | (reg & 7) << 3 | (reg & 7));
	if ((reg & 7) == RSP)
		EMIT(emitter, 0x24);
	if (is_short)
		EMIT(emitter, (uint8_t)number);
	else
		emit_u32(emitter, (uint32_t)number);
}

/*
 *     mov  gs:[SLOT_RAX], rax
 *     lahf
 *     seto al
 *     mov  gs:[SLOT_FLAGS], rax
 *     mov  rax, gs:[SLOT_RAX]
 */
void emit_save_flags(struct emitter *emitter)
{
	emit_spill(emitter, RAX, SLOT_RAX);
	EMIT(emitter, 0x9f, 0x0f, 0x90, 0xc0);
	emit_spill(emitter, RAX, SLOT_FLAGS);
	emit_reload(emitter, RAX, SLOT_RAX);
}

/*
 *     mov  gs:[SLOT_RAX], rax
 *     mov  rax, gs:[SLOT_FLAGS]
 *     add  al, 127              ; overflows if there was an overflow
 *     sahf
 *     mov  rax, gs:[SLOT_RAX]
 */
void emit_restore_flags(struct emitter *emitter)
{
	emit_spill(emitter, RAX, SLOT_RAX);
	emit_reload(emitter, RAX, SLOT_FLAGS);
	EMIT(emitter, 0x04, 0x7f, 0x9e);
	emit_reload(emitter, RAX, SLOT_RAX);
}

void emit_literal(struct emitter *emitter, bool is_address, uint64_t value, unsigned end)
{
	struct literal *literal = PUSH(emitter, emitter, literals, literal_count, literal_capacity);

	if (literal)
		*literal = (struct literal){
		        .field = emit_offset(emitter), .end = end, .is_address = is_address, .value = value};
	emit_u32(emitter, 0);
}

/* Bytes to add in front so that a 4-byte field at `offset` stays within one line. */
static unsigned patch_padding(uint32_t offset)
{
	unsigned place = offset % PATCH_LINE;

	return place > PATCH_LINE - 4 ? PATCH_LINE - place : 0;
}

uint32_t emit_patchable(struct emitter *emitter, unsigned condition)
{
	unsigned opcode_size = condition == JMP ? 1 : 2;
	uint32_t field;

	emit_nops(emitter, patch_padding(emit_offset(emitter) + opcode_size));
	if (condition == JMP)
		EMIT(emitter, 0xe9);
	else
		EMIT(emitter, 0x0f, 0x80 | condition);
	field = emit_offset(emitter);
	emit_u32(emitter, 0);
	return field;
}

void emit_site(struct emitter *emitter, unsigned condition, uint64_t target)
{
	uint32_t field = emit_patchable(emitter, condition);
	struct site *site = PUSH(emitter, emitter->out, sites, site_count, site_capacity);

	if (site)
		*site = (struct site){.offset = field, .target = target - emitter->pc};
}

void emit_routine(struct emitter *emitter, unsigned routine)
{
	EMIT(emitter, 0xe9);
	emit_rel32_fixup(emitter, FIXUP_ROUTINE, routine);
}

/*
 *     lea  rcx, [rip+there]
 *     jmp  routine
 */
void emit_leave_to(struct emitter *emitter, unsigned routine, uint32_t there)
{
	EMIT(emitter, 0x48, 0x8d, 0x0d);
	emit_u32(emitter, 0);
	emit_rel32_to(emitter, emit_offset(emitter) - 4, there);
	emit_routine(emitter, routine);
}

/* -- sequences ----------------------------------------------------------- */

/*
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  rcx, pc
 *     jmp  ROUTINE_EXIT
 */
void emit_exit(struct emitter *emitter, uint64_t pc)
{
	emit_record(emitter, pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, pc, RECORD_RCX);
	emit_address(emitter, RCX, pc);
	emit_routine(emitter, ROUTINE_EXIT);
}

/*
 *     mov  r11, [table base]
 *     mov  r11w, cx
 *     jmp  [r11*8]
 * or  jmp  ROUTINE_MISS
 */
void emit_probe(struct emitter *emitter, const struct instruction *branch)
{
	if (emitter->leaves) {
		emit_routine(emitter, ROUTINE_MISS);
		return;
	}
	EMIT(emitter, 0x4c, 0x8b, 0x1d);
	emit_rel32_fixup(emitter, FIXUP_TABLE_BASE, table_of(emitter, branch));
	EMIT(emitter, 0x66, 0x41, 0x89, 0xcb);
	EMIT(emitter, 0x42, 0xff, 0x24, 0xdd, 0, 0, 0, 0);
}

/* jmp to code that expects the program's rcx and r11 in their slots, see emit_failures() */
void emit_jump_failure(struct emitter *emitter, uint64_t pc)
{
	struct failure *failure = PUSH(emitter, emitter, failures, failure_count, failure_capacity);

	EMIT(emitter, 0xe9);
	if (failure)
		*failure = (struct failure){.field = emit_offset(emitter), .pc = pc};
	emit_u32(emitter, 0);
}

/* 65 REX.W 83 or 81 modrm(00 /operation 101) rel32 number */
static void emit_counter_operation(struct emitter *emitter, uint8_t operation, int32_t number)
{
	bool is_short = number == (int8_t)number;

	EMIT(emitter, 0x65, 0x48, is_short ? 0x83 : 0x81, 0x05 | operation << 3);
	emit_fixup(emitter, FIXUP_SLOT, emitter->counter, emit_offset(emitter), is_short ? 5 : 8);
	emit_u32(emitter, 0);
	if (is_short)
		EMIT(emitter, (uint8_t)number);
	else
		emit_u32(emitter, (uint32_t)number);
}

#define SUB 5
#define CMP 7

void emit_count(struct emitter *emitter, int32_t count)
{
	emit_counter_operation(emitter, SUB, -count);
}

void emit_count_by(struct emitter *emitter, uint8_t reg, int32_t count)
{
	emit_reload(emitter, reg, emitter->counter);
	emit_add_number(emitter, reg, count);
	emit_spill(emitter, reg, emitter->counter);
}

void emit_jump_stop(struct emitter *emitter, const struct block *block, bool flags)
{
	emit_counter_operation(emitter, CMP, -(int32_t)block->longest);

	struct stop *stop = PUSH(emitter, emitter, stops, stop_count, stop_capacity);

	EMIT(emitter, 0x0f, 0x8f);
	if (stop)
		*stop = (struct stop){.field = emit_offset(emitter), .block = block, .flags = flags};
	emit_u32(emitter, 0);
}

/*
 *     mov  gs:[SLOT_RAX], rax
 *     lahf
 *     seto al
 */
void emit_flags_to_rax(struct emitter *emitter)
{
	emit_spill(emitter, RAX, SLOT_RAX);
	EMIT(emitter, 0x9f, 0x0f, 0x90, 0xc0);
}

/*
 *     add  al, 127             ; overflows if OF was set
 *     sahf
 *     mov  rax, gs:[SLOT_RAX]
 */
void emit_flags_from_rax(struct emitter *emitter)
{
	EMIT(emitter, 0x04, 0x7f, 0x9e);
	emit_reload(emitter, RAX, SLOT_RAX);
}

struct entry *emit_entry(struct emitter *emitter, uint64_t pc, bool wants_thunk)
{
	struct entry *entry = PUSH(emitter, emitter->out, entries, entry_count, entry_capacity);

	if (entry)
		*entry = (struct entry){.pc = pc - emitter->pc,
		        .offset = emit_offset(emitter),
		        .wants_thunk = wants_thunk,
		        .callee = TABLE_OF_JUMPS};
	return entry;
}

/* jmp to the next thunk of the chain, which is ROUTINE_MISS as long as there is none */
static uint32_t emit_next_thunk(struct emitter *emitter)
{
	uint32_t field = emit_patchable(emitter, JMP);

	emit_fixup(emitter, FIXUP_ROUTINE, ROUTINE_MISS, field, 4);
	return field;
}

/*
 * Compares without touching the flags:
 *
 *     where loop is fast:                  elsewhere:
 *
 * miss:
 *     mov   r11, pc
 *     lea   rcx, [rcx+r11]
 *     jmp   next
 * thunk:                               thunk:
 *     mov   r11, 1-pc                      mov   r11, -pc
 *     lea   rcx, [rcx+r11]                 lea   rcx, [rcx+r11]
 *     loop  miss                           jrcxz hit
 *                                          mov   r11, pc
 *                                          lea   rcx, [rcx+r11]
 *                                          jmp   next
 *                                      hit:
 *     mov   rcx, gs:[SLOT_RCX]             mov   rcx, gs:[SLOT_RCX]
 *     mov   r11, gs:[SLOT_R11]             mov   r11, gs:[SLOT_R11]
 *
 * The first form takes no branch on a hit, which leaves the CPU's branch history
 * to the program. Returns the offset of the rel32 to next.
 */
uint32_t emit_thunk(struct emitter *emitter, uint64_t pc, bool loop_is_fast, uint32_t *thunk)
{
	uint32_t next, branch, miss = emit_offset(emitter);

	emit_record(emitter, pc, RECORD_RCX | RECORD_R11);
	if (loop_is_fast) {
		emit_address(emitter, R11, pc);
		emit_add(emitter, RCX, R11);
		next = emit_next_thunk(emitter);
		*thunk = emit_offset(emitter);
		emit_negated_address(emitter, R11, pc - 1);
		emit_add(emitter, RCX, R11);
		EMIT(emitter, 0xe2, (uint8_t)(miss - (emit_offset(emitter) + 2)));
	} else {
		*thunk = emit_offset(emitter);
		emit_negated_address(emitter, R11, pc);
		emit_add(emitter, RCX, R11);
		EMIT(emitter, 0xe3, 0);
		branch = emit_offset(emitter) - 1;
		emit_address(emitter, R11, pc);
		emit_add(emitter, RCX, R11);
		next = emit_next_thunk(emitter);
		emit_rel8_here(emitter, branch);
	}
	emit_reload(emitter, RCX, SLOT_RCX);
	emit_record(emitter, pc, RECORD_R11);
	emit_reload(emitter, R11, SLOT_R11);
	return next;
}

/* -- tail ---------------------------------------------------------------- */

/* Links a site to the block of the region at its target, or to an exit stub, one for each target. */
static void link_site(struct emitter *emitter, const struct region *region, struct map *exits, uint32_t i)
{
	struct translation *out = emitter->out;
	uint64_t target = emitter->pc + out->sites[i].target;
	const struct block *block = region ? region_block(region, target) : NULL;

	if (block) {
		emit_rel32_to(emitter, out->sites[i].offset, block->offset);
		return;
	}

	uint32_t exit = map_find(exits, target);

	if (exit == MAP_NONE) {
		exit = emit_offset(emitter);
		if (!map_add(exits, target, exit))
			emitter->failed = true;
		emit_exit(emitter, target);
	}
	out->sites[i].exit = exit;
	emit_rel32_to(emitter, out->sites[i].offset, exit);
}

/*
 * A block's code is not what was translated. ROUTINE_EXIT wants rcx in its slot,
 * where it is already:
 *
 *     mov  r11, gs:[SLOT_R11]
 *     mov  rcx, pc
 *     jmp  ROUTINE_EXIT
 */
static void emit_failures(struct emitter *emitter)
{
	uint32_t offset = 0;

	for (uint32_t i = 0; i < emitter->failure_count; i++) {
		uint64_t pc = emitter->failures[i].pc;

		/* The checks of one block follow each other. */
		if (i == 0 || pc != emitter->failures[i - 1].pc) {
			offset = emit_offset(emitter);
			emit_record(emitter, pc, RECORD_RCX | RECORD_R11);
			emit_reload(emitter, R11, SLOT_R11);
			emit_record(emitter, pc, RECORD_RCX);
			emit_address(emitter, RCX, pc);
			emit_routine(emitter, ROUTINE_EXIT);
		}
		emit_rel32_to(emitter, emitter->failures[i].field, offset);
	}
}

/*
 * A block that would go beyond the next stop:
 *
 *    (flags restored)
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  gs:[SLOT_DETAIL], what it needs
 *     mov  rcx, pc
 *     jmp  ROUTINE_STOP
 */
static void emit_stops(struct emitter *emitter)
{
	for (uint32_t i = 0; i < emitter->stop_count; i++) {
		const struct stop *stop = &emitter->stops[i];

		uint64_t pc = stop->block->pc;

		emit_rel32_to(emitter, stop->field, emit_offset(emitter));
		emit_record(emitter, pc, RECORD_TRANSIT);
		if (stop->flags)
			emit_flags_from_rax(emitter);
		emit_spill(emitter, RCX, SLOT_RCX);
		emit_record(emitter, pc, RECORD_TRANSIT | RECORD_RCX);
		emit_slot_number(
		        emitter, SLOT_DETAIL, STOP_DETAIL(stop->block->counter, stop->block->longest));
		emit_address(emitter, RCX, pc);
		emit_routine(emitter, ROUTINE_STOP);
	}
}

static void emit_literals(struct emitter *emitter)
{
	if (emitter->literal_count)
		emit_breaks(emitter, -emit_offset(emitter) & 7);
	for (uint32_t i = 0; i < emitter->literal_count; i++) {
		const struct literal *literal = &emitter->literals[i];
		uint32_t offset = emit_offset(emitter);

		if (literal->is_address)
			emit_fixup(emitter, FIXUP_ABSOLUTE, literal->value - emitter->pc, offset, 8);
		emit_u64(emitter, literal->is_address ? 0 : literal->value);
		/* emit_rel32_to() takes the field to end its instruction. */
		emit_rel32_to(emitter, literal->field, offset - (literal->end - 4));
	}
}

void emit_tail(struct emitter *emitter, const struct region *region)
{
	struct map exits = {0};

	for (uint32_t i = 0; i < emitter->out->site_count && !emitter->failed; i++)
		link_site(emitter, region, &exits, i);
	emit_failures(emitter);
	emit_stops(emitter);
	emit_literals(emitter);
	map_deinit(&exits);
}
