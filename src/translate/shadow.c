/*
 * Lowering for recording: every load is compared with the shadow, what the thread
 * last saw there, and every store is made in both. See design of the shadow in
 * docs/architecture.md.
 *
 * The shadow of [operand] is gs:[operand], the same operand with a prefix. That is
 * the direct form. Where the operand has a segment already, a truncated or far
 * address, or may lie in low memory, its address goes into a borrowed register
 * first:
 *
 *     lea  t, [operand]
 *    (add the base of its segment)
 *    (set bit FOLD_BIT of t)
 *
 * and the shadow is gs:[t]. Memory itself is always accessed as the program does.
 *
 * A value is used only after it was found equal to the shadow, and either comes from
 * the register it was compared in or is read from the shadow, which nobody else
 * changes. t, and the register for values, are kept aside for as long as the program does not need them
 * (keep.h). A difference leads out to ROUTINE_ACCESS, with everything as it was before the instruction, which
 * is executed again when the shadow is up to date.
 *
 * The compare needs the status flags. Where the program still reads them they go to
 * SLOT_FLAGS, and stay there until an instruction needs them in place, or has new ones.
 */
#include <stdlib.h>
#include <string.h>

#include "translate/flags.h"
#include "translate/keep.h"
#include "translate/liveness.h"
#include "translate/lowering.h"
#include "translate/operand.h"

#define REX_W 0x08
#define FOLD  ((uint64_t)1 << FOLD_BIT)

/* Where memory is reached, for one instruction. */
struct view {
	const struct instruction *instruction;
	bool direct;       /* the shadow has the program's own operand */
	bool real_pointed; /* memory itself is reached through t, too: a far [rip+x] */
	bool folded_apart; /* that, in low memory: t is not the same for memory and shadow */
	bool constant;     /* an address in low memory that the instruction itself says: direct, both ways */
	uint64_t target;
	uint8_t t;
	int32_t offset; /* of the operand from t */
};

/* -- operands ------------------------------------------------------------ */

static bool is_rip(const struct instruction *instruction)
{
	return instruction->memory == MEMORY_RIP;
}

static bool is_low(uint64_t address)
{
	return address < FOLD;
}

/* fs:[number] */
static bool is_fs_constant(const struct instruction *instruction)
{
	return instruction->fs && !is_rip(instruction) && !instruction->address_registers &&
	       !instruction->encoding.moffs && !instruction->address32 &&
	       instruction->encoding.disp_size == 4;
}

/* May the operand be in memory whose shadow is somewhere else? */
static bool may_be_low(const struct lowering *lowering, const struct instruction *instruction)
{
	if (!lowering->request->low_memory)
		return false;
	if (is_rip(instruction))
		return is_low(instruction->target);
	return lowering->request->low_stack || !(instruction->address_registers & 1u << RSP);
}

/* [number] without any register, or [rip+x]: an address below 2 GB, whose shadow is near the code? */
static bool is_low_constant(
        const struct lowering *lowering, const struct instruction *instruction, uint64_t *target)
{
	const struct encoding *encoding = &instruction->encoding;

	if (!lowering->request->low_memory || instruction->fs || instruction->address32 || encoding->moffs ||
	        instruction->address_registers || !encoding->modrm)
		return false;
	if (is_rip(instruction)) {
		*target = instruction->target;
	} else {
		int32_t number;

		if (!encoding->sib || encoding->disp_size != 4)
			return false;
		memcpy(&number, instruction->bytes + encoding->disp, 4);
		*target = (uint64_t)(int64_t)number;
	}
	return *target < (1u << 31) - 64 && operand_is_near(lowering->request, *target | FOLD);
}

/* Those that can be borrowed for an address of this instruction. */
static uint16_t address_registers(const struct instruction *instruction)
{
	/* d8 00 would look like the opcode that the x87 unit gives when it remembers none. */
	return KEEP_ADDRESSES & ~(instruction->x87 ? 1u << RAX : 0) &
	       ~(instruction->used | instruction->address_registers);
}

/* Without a register for t. */
static struct view plan_view(const struct lowering *lowering, const struct instruction *instruction)
{
	bool far = is_rip(instruction) && !operand_is_near(lowering->request, instruction->target);
	bool low = may_be_low(lowering, instruction);
	struct view view = {.instruction = instruction, .t = NO_REGISTER};

	if (is_low_constant(lowering, instruction, &view.target)) {
		view.direct = view.constant = true;
		return view;
	}
	view.direct =
	        !far && !low && !instruction->fs && !instruction->address32 && !instruction->encoding.moffs;
	view.real_pointed = is_rip(instruction) && (far || instruction->address32);
	view.folded_apart = view.real_pointed && low;
	return view;
}

/* `state`: what records say now. */
static struct view view_of(struct lowering *lowering, const struct instruction *instruction, uint32_t state)
{
	struct view view = plan_view(lowering, instruction);

	if (!view.direct)
		view.t = keep_register(lowering, instruction, address_registers(instruction), state);
	return view;
}

/*
 * t |= FOLD. The second form needs no flags: the eight bits from FOLD_BIT on are
 * those of a user address, so they are 0 or 1.
 *
 *     bts  t, FOLD_BIT
 * or  rorx t, t, FOLD_BIT ; mov t8, 1 ; rorx t, t, 64 - FOLD_BIT
 */
static void emit_fold(struct emitter *emitter, uint8_t t, bool flags_free)
{
	if (flags_free) {
		EMIT(emitter, 0x48 | t >> 3, 0x0f, 0xba, 0xe8 | (t & 7), FOLD_BIT);
		return;
	}
	EMIT(emitter, 0xc4, 0xe3, 0xfb, 0xf0, 0xc0 | t << 3 | t, FOLD_BIT);
	EMIT(emitter, 0x40, 0xb0 | t, 1);
	EMIT(emitter, 0xc4, 0xe3, 0xfb, 0xf0, 0xc0 | t << 3 | t, 64 - FOLD_BIT);
}

/* Makes t ready. */
static void point(struct lowering *lowering, struct view *view, bool flags_free)
{
	struct emitter *emitter = lowering->emitter;
	const struct instruction *instruction = view->instruction;

	if (view->direct)
		return;
	if (is_fs_constant(instruction)) {
		emit_reload(emitter, view->t, SLOT_FS_BASE);
		memcpy(&view->offset, instruction->bytes + instruction->encoding.disp, 4);
	} else {
		operand_offset(emitter, instruction, view->t);
		if (instruction->fs) {
			uint8_t base = view->t == RAX ? RDX : RAX;

			emit_spill(emitter, base, SLOT_SCRATCH_B);
			emit_reload(emitter, base, SLOT_FS_BASE);
			emit_add(emitter, view->t, base);
			emit_reload(emitter, base, SLOT_SCRATCH_B);
		}
	}
	if (!view->folded_apart && may_be_low(lowering, instruction))
		emit_fold(emitter, view->t, flags_free);
}

static void aim(struct lowering *lowering, const struct view *view, bool shadow)
{
	const struct instruction *instruction = view->instruction;

	if (view->folded_apart)
		emit_address(lowering->emitter, view->t,
		        shadow ? instruction->target | FOLD : instruction->target);
}

/* modrm, sib and displacement for [t+offset] */
static void emit_pointed(struct emitter *emitter, uint8_t reg, uint8_t t, int32_t offset)
{
	if (offset == (int8_t)offset) {
		EMIT(emitter, 0x40 | (reg & 7) << 3 | t, (uint8_t)offset);
	} else {
		EMIT(emitter, 0x80 | (reg & 7) << 3 | t);
		emit_u32(emitter, (uint32_t)offset);
	}
}

/* modrm, sib and displacement of the program's operand, `offset` bytes further on; nothing follows them */
static void emit_own_operand(
        struct emitter *emitter, const struct instruction *instruction, uint8_t reg, int32_t offset)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t modrm = instruction->bytes[encoding->modrm];
	uint8_t sib = encoding->sib ? instruction->bytes[encoding->sib] : 0;
	int32_t displacement = operand_displacement(instruction);
	bool anew = offset || operand_counts_units(instruction); /* in four bytes */

	modrm = (modrm & 0xc7) | (reg & 7) << 3;
	if (is_rip(instruction)) {
		EMIT(emitter, modrm);
		emit_fixup(emitter, FIXUP_NEAR,
		        (int64_t)(instruction->target + (uint64_t)(int64_t)offset - emitter->pc),
		        emit_offset(emitter), 4);
		emit_u32(emitter, 0);
		return;
	}
	if (anew) {
		bool no_base = modrm >> 6 == 0 && encoding->sib && (sib & 7) == 5;

		if (!no_base)
			modrm = (modrm & 0x3f) | 0x80;
	}
	EMIT(emitter, modrm);
	if (encoding->sib)
		EMIT(emitter, sib);
	if (anew)
		emit_u32(emitter, (uint32_t)(displacement + offset));
	else
		emit_bytes(emitter, instruction->bytes + encoding->disp, encoding->disp_size);
}

static uint8_t own_rex(const struct instruction *instruction)
{
	const struct encoding *encoding = &instruction->encoding;
	uint8_t rex = 0;

	if (encoding->has_rex)
		rex = instruction->bytes[encoding->rex] & 3;
	if (encoding->vex_size >= 3)
		rex = (~instruction->bytes[encoding->vex + 1] >> 5) & 3;
	return rex;
}

/* An opcode of one byte, or two with a leading 0f. */
struct operation {
	uint8_t opcode;
	bool escaped;
	bool word;      /* 66 prefix */
	bool wide;      /* REX.W */
	bool needs_rex; /* a byte register that is named so only with a REX prefix */
};

static struct operation mov_from(unsigned size)
{
	switch (size) {
	case 1:
		return (struct operation){.opcode = 0xb6, .escaped = true}; /* movzx */
	case 2:
		return (struct operation){.opcode = 0xb7, .escaped = true};
	default:
		return (struct operation){.opcode = 0x8b, .wide = size == 8};
	}
}

static struct operation sized(uint8_t byte_opcode, unsigned size, uint8_t reg)
{
	return (struct operation){.opcode = byte_opcode | (size > 1),
	        .word = size == 2,
	        .wide = size == 8,
	        .needs_rex = size == 1 && reg >= RSP};
}

static struct operation compare(unsigned size, uint8_t reg)
{
	return sized(0x3a, size, reg);
}

static struct operation mov_to(unsigned size, uint8_t reg)
{
	return sized(0x88, size, reg);
}

/* modrm, sib and displacement for an address that is constant; nothing follows them */
static void emit_constant(
        struct emitter *emitter, const struct view *view, uint8_t reg, bool shadow, int32_t offset)
{
	uint64_t address = view->target + (uint64_t)(int64_t)offset;

	if (shadow) {
		EMIT(emitter, 0x05 | (reg & 7) << 3);
		emit_fixup(emitter, FIXUP_NEAR, (int64_t)((address | FOLD) - emitter->pc),
		        emit_offset(emitter), 4);
		emit_u32(emitter, 0);
	} else {
		EMIT(emitter, 0x04 | (reg & 7) << 3, 0x25);
		emit_u32(emitter, (uint32_t)address);
	}
}

/* operation reg, [memory or shadow + offset] */
static void emit_operation(struct lowering *lowering, const struct view *view, struct operation operation,
        uint8_t reg, bool shadow, int32_t offset)
{
	struct emitter *emitter = lowering->emitter;
	const struct instruction *instruction = view->instruction;
	bool pointed = shadow ? !view->direct : view->real_pointed;
	uint8_t rex = (operation.wide ? REX_W : 0) | (reg & 8) >> 1;

	aim(lowering, view, shadow);
	if (shadow)
		EMIT(emitter, 0x65);
	else if (instruction->fs)
		EMIT(emitter, 0x64);
	if (operation.word)
		EMIT(emitter, 0x66);
	if (!pointed && instruction->address32)
		EMIT(emitter, 0x67);
	if (!pointed && !view->constant)
		rex |= own_rex(instruction);
	if (rex || operation.needs_rex)
		EMIT(emitter, 0x40 | rex);
	if (operation.escaped)
		EMIT(emitter, 0x0f);
	EMIT(emitter, operation.opcode);
	if (pointed)
		emit_pointed(emitter, reg, view->t, (shadow ? view->offset : 0) + offset);
	else if (view->constant)
		emit_constant(emitter, view, reg, shadow, offset);
	else
		emit_own_operand(emitter, instruction, reg, offset);
}

/* The program's instruction on memory, or on the shadow. */
static void emit_own(struct lowering *lowering, const struct view *view, bool shadow)
{
	struct emitter *emitter = lowering->emitter;
	const struct instruction *instruction = view->instruction;

	aim(lowering, view, shadow);
	if (view->constant && shadow) {
		operand_replace_shadow(emitter, instruction, view->target | FOLD);
	} else if (view->constant) {
		operand_replace_absolute(emitter, instruction, (uint32_t)view->target);
	} else if (!shadow && !view->real_pointed) {
		operand_copy(emitter, instruction);
	} else if (!shadow) {
		operand_replace(emitter, instruction, view->t, false);
	} else if (view->direct) {
		operand_copy_shadow(emitter, instruction);
	} else {
		EMIT(emitter, 0x65);
		operand_replace_offset(emitter, instruction, view->t, view->offset);
	}
}

bool shadow_is_direct(const struct lowering *lowering, const struct instruction *instruction)
{
	return plan_view(lowering, instruction).direct;
}

void shadow_execute(struct lowering *lowering, const struct instruction *instruction)
{
	struct view view = plan_view(lowering, instruction);

	emit_own(lowering, &view, true);
}

/* -- misses -------------------------------------------------------------- */

/* A compare that may fail; the code for that comes behind the last block. */
static struct miss *add_miss(struct lowering *lowering, const struct instruction *instruction, uint32_t state)
{
	if (lowering->miss_count == lowering->miss_capacity) {
		uint32_t capacity = lowering->miss_capacity ? lowering->miss_capacity * 2 : 64;
		struct miss *misses = realloc(lowering->misses, capacity * sizeof(*misses));

		if (!misses) {
			lowering->emitter->failed = true;
			return &lowering->spare;
		}
		lowering->misses = misses;
		lowering->miss_capacity = capacity;
	}
	struct miss *miss = &lowering->misses[lowering->miss_count++];
	bool before = flags_are_repeated(lowering) && lowering->setter->repeat == REPEAT_SHADOW;

	*miss = (struct miss){.instruction = instruction,
	        .again = before ? lowering->setter : instruction,
	        .start = before ? lowering->setter_start : lowering->start,
	        .executed = lowering->emitter->executed - before,
	        .state = state | lowering->emitter->kept | flags_state(lowering),
	        .repeat = flags_are_repeated(lowering) ? lowering->setter : NULL};
	return miss;
}

/* jne miss */
static void emit_jump_miss(struct lowering *lowering, struct miss *miss)
{
	EMIT(lowering->emitter, 0x0f, 0x85);
	if (miss->field_count < sizeof(miss->fields) / sizeof(*miss->fields))
		miss->fields[miss->field_count++] = emit_offset(lowering->emitter);
	emit_u32(lowering->emitter, 0);
}

/* rcx = address of what is accessed, the program's rcx in its slot */
static void emit_accessed(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	bool stack = instruction->access == ACCESS_POP || instruction->kind == KIND_RETURN;

	if (!stack && instruction->access != ACCESS_LEAVE) {
		lower_address(lowering, instruction);
		return;
	}
	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
	emit_move(emitter, RCX, stack ? RSP : RBP);
}

/*
 *     rsp, flags, B, A, rcx, r11 as they were, where they were borrowed
 *     rcx = address
 *     mov  gs:[SLOT_ADDRESS], rcx
 *     mov  gs:[SLOT_DETAIL], ...
 *     leave, to come back to the start of the instruction
 */
static void emit_miss(struct lowering *lowering, const struct miss *miss)
{
	struct emitter *emitter = lowering->emitter;
	const struct instruction *instruction = miss->instruction;
	unsigned size = instruction->access_size ? instruction->access_size : 8;
	uint64_t pc = miss->again->pc;

	emitter->in_instruction = true;
	emitter->instruction_pc = pc;
	emitter->executed = miss->executed;
	for (unsigned i = 0; i < miss->field_count; i++)
		emit_rel32_to(emitter, miss->fields[i], emit_offset(emitter));
	emit_record(emitter, pc, miss->state);
	if (miss->state & RECORD_POPPED)
		emit_add_number(emitter, RSP, -8);
	if (miss->state & RECORD_FLAGS)
		emit_restore_flags(emitter);
	if (miss->state & RECORD_SCRATCH_B)
		emit_reload(emitter, RECORD_B_REGISTER(miss->state), SLOT_SCRATCH_B);
	if (miss->state & RECORD_SCRATCH_A)
		emit_reload(emitter, RECORD_A_REGISTER(miss->state), SLOT_SCRATCH_A);
	if (miss->state & RECORD_R11)
		emit_reload(emitter, R11, SLOT_R11);
	if (miss->state & RECORD_RCX)
		emit_reload(emitter, RCX, SLOT_RCX);
	keep_restore(emitter, miss->state);
	flags_restore_missed(lowering, miss);
	emit_record(emitter, pc, 0);
	emit_accessed(lowering, instruction);
	emit_spill(emitter, RCX, SLOT_ADDRESS);
	emit_slot_number(emitter, SLOT_DETAIL, ACCESS_DETAIL(ACCESS_READ, size, (uint32_t)miss->executed));
	emit_leave_to(lowering->emitter, ROUTINE_ACCESS, miss->start);
}

void shadow_misses(struct lowering *lowering)
{
	for (uint32_t i = 0; i < lowering->miss_count && !lowering->emitter->failed; i++)
		emit_miss(lowering, &lowering->misses[i]);
	free(lowering->misses);
}

/* -- the forms ----------------------------------------------------------- */

/* Is the operand's register its destination too, or are the two not to be told apart? */
static bool loads_over_address(const struct instruction *instruction)
{
	uint8_t reg = operand_loaded(instruction);

	/* ah is register 4 of its kind */
	if (instruction->access_size == 1 && instruction->width == 1 && !instruction->encoding.has_rex)
		reg &= 3;
	return instruction->address_registers & 1u << reg;
}

/*
 *     mov  r, [operand]
 *     cmp  r, gs:[operand]
 *     jne  miss
 */
static void shadow_load_plain(struct lowering *lowering, const struct instruction *instruction)
{
	unsigned size = instruction->access_size;
	uint8_t reg = operand_loaded(instruction);
	bool own_byte = size == 1 && instruction->width == 1; /* mov r8, not movzx */
	struct operation cmp = compare(size, reg);

	flags_begin(lowering, instruction, instruction->written);

	uint32_t flags = flags_state(lowering);
	struct view view = view_of(lowering, instruction, flags);

	if (own_byte)
		cmp.needs_rex = instruction->encoding.has_rex;
	point(lowering, &view, !flags_are_repeated(lowering));
	emit_own(lowering, &view, false);
	emit_record(lowering->emitter, instruction->pc, flags);
	emit_operation(lowering, &view, cmp, reg, true, 0);
	emit_jump_miss(lowering, add_miss(lowering, instruction, 0));
	emit_record(lowering->emitter, next_pc(instruction), flags);
	flags_end(lowering);
}

/* Where a register may be wanted for addresses soon, one that is good for that as well. */
static uint16_t value_registers(const struct lowering *lowering, const struct instruction *instruction)
{
	return operand_registers(instruction) & (lowering->request->low_memory ? KEEP_ADDRESSES : 0xffff);
}

/* The same where the instruction may need another one for its address: the last of those is left. */
static uint16_t value_registers_beside_address(
        const struct lowering *lowering, const struct instruction *instruction)
{
	uint16_t left = address_registers(instruction);

	if (left & (left - 1))
		return value_registers(lowering, instruction);
	return operand_registers(instruction) & ~left;
}

/*
 * v = what the operand has, when that is what the shadow has. The flags are in their slot afterwards if they
 * are live; returns what records say then.
 */
static uint32_t load_value(
        struct lowering *lowering, const struct instruction *instruction, struct view *view, uint8_t *v)
{
	unsigned size = instruction->access_size;

	flags_begin(lowering, instruction, 0);

	uint32_t state = flags_state(lowering);

	*v = keep_register(
	        lowering, instruction, value_registers_beside_address(lowering, instruction), state);
	*view = view_of(lowering, instruction, state);
	point(lowering, view, !flags_are_repeated(lowering));

	struct miss *miss = add_miss(lowering, instruction, 0);

	for (unsigned done = 0; done < size;) {
		unsigned part = 8;

		while (part > size - done)
			part /= 2;
		emit_operation(lowering, view, mov_from(part), *v, false, (int32_t)done);
		emit_operation(lowering, view, compare(part, *v), *v, true, (int32_t)done);
		emit_jump_miss(lowering, miss);
		done += part;
	}
	flags_end(lowering);
	return state;
}

/*
 *     mov  v, [operand]
 *     cmp  v, gs:[operand]
 *     jne  miss
 *     insn v               ; in place of its operand
 */
static void shadow_load_apart(struct lowering *lowering, const struct instruction *instruction)
{
	struct view view;
	uint8_t v;
	uint32_t state = load_value(lowering, instruction, &view, &v);

	operand_to_register(lowering->emitter, instruction, v);
	emit_record(lowering->emitter, next_pc(instruction), state);
}

/* mov v, gs:[v], extended with zeros */
static void emit_shadow_load(struct emitter *emitter, uint8_t v, unsigned size)
{
	struct operation mov = mov_from(size);

	EMIT(emitter, 0x65);
	if (mov.wide)
		EMIT(emitter, 0x48);
	if (mov.escaped)
		EMIT(emitter, 0x0f);
	EMIT(emitter, mov.opcode, v << 3 | v);
}

/*
 * Where the operand may be in low memory, the register for the value is good for the address before:
 *
 *     lea  v, [operand]
 *     fold v
 *     mov  v, gs:[v]
 *     cmp  v, [operand]
 *     jne  miss
 */
static void load_folded(struct lowering *lowering, const struct instruction *instruction, uint8_t *v)
{
	struct emitter *emitter = lowering->emitter;
	struct view own = {.instruction = instruction};

	flags_begin(lowering, instruction, 0);
	*v = keep_register(
	        lowering, instruction, value_registers(lowering, instruction), flags_state(lowering));
	operand_offset(emitter, instruction, *v);
	emit_fold(emitter, *v, !flags_are_repeated(lowering));
	emit_shadow_load(emitter, *v, instruction->access_size);
	emit_operation(lowering, &own, compare(instruction->access_size, *v), *v, false, 0);
	emit_jump_miss(lowering, add_miss(lowering, instruction, 0));
	flags_end(lowering);
}

/* Is the fold all that stands between the operand and its shadow? */
static bool only_folds(const struct lowering *lowering, const struct instruction *instruction)
{
	uint64_t target;

	return may_be_low(lowering, instruction) && !is_rip(instruction) && !instruction->fs &&
	       !instruction->address32 && !instruction->encoding.moffs &&
	       !is_low_constant(lowering, instruction, &target);
}

/*
 *     compare all of [operand] with gs:[operand]
 *     insn v               ; in place of its operand: instructions on general registers
 * or  insn gs:[operand]
 */
static void shadow_use(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	struct view view;
	uint8_t v;

	if (instruction->has_register_form && only_folds(lowering, instruction))
		load_folded(lowering, instruction, &v);
	else
		load_value(lowering, instruction, &view, &v);
	flags_place(lowering, instruction, 0);
	emit_record(emitter, instruction->pc, flags_state(lowering));
	if (instruction->has_register_form)
		operand_to_register(emitter, instruction, v);
	else
		emit_own(lowering, &view, true);
	flags_renewed(lowering, instruction);
	emit_record(emitter, next_pc(instruction), flags_state(lowering));
}

/*
 *     insn [operand]
 *     insn gs:[operand]
 */
static void shadow_store(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint32_t flags = flags_state(lowering);
	struct view view = view_of(lowering, instruction, flags);

	point(lowering, &view, flags || !flags_live(instruction));
	emit_record(emitter, instruction->pc, flags);
	emit_own(lowering, &view, false);
	emit_record(emitter, next_pc(instruction), flags);
	emit_own(lowering, &view, true);
}

/*
 *     mov  v, [operand]
 *     cmp  v, gs:[operand]
 *     jne  miss
 *     insn v               ; in place of its operand
 *     mov  [operand], v
 *     mov  gs:[operand], v
 *
 * A fault of the store shows the flags from before where the program would read them.
 */
static void shadow_modify(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	unsigned size = instruction->access_size;
	struct view view;
	uint8_t v;
	uint32_t state = load_value(lowering, instruction, &view, &v);

	flags_place(lowering, instruction, 0);
	operand_to_register(emitter, instruction, v);
	emit_record(emitter, instruction->pc, state);
	emit_operation(lowering, &view, mov_to(size, v), v, false, 0);
	flags_renewed(lowering, instruction);
	emit_record(emitter, next_pc(instruction), flags_state(lowering));
	emit_operation(lowering, &view, mov_to(size, v), v, true, 0);
}

/*
 * The stub looks whether memory can be written, the shadow gets the value, and the
 * stub copies it to memory: what was popped could not be pushed back after a fault.
 */
static void shadow_pop_store(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	unsigned size = instruction->access_size;
	uint32_t field;

	keep_end(lowering, instruction->pc);
	flags_in_place(lowering, instruction->pc);
	lower_address(lowering, instruction);
	emit_spill(emitter, RCX, SLOT_ADDRESS);
	emit_slot_number(
	        emitter, SLOT_DETAIL, ACCESS_DETAIL(ACCESS_WRITE, size, (uint32_t)emitter->executed));
	emit_leave_to(lowering->emitter, ROUTINE_ACCESS, 0);
	field = emit_offset(emitter) - 5 - 4;
	emit_rel32_to(emitter, field, emit_offset(emitter));
	emit_record(emitter, instruction->pc, 0);
	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
	emit_reload(emitter, RCX, SLOT_ADDRESS);
	if (lowering->request->low_memory)
		emit_fold(emitter, RCX, false);
	EMIT(emitter, 0x65);
	operand_replace_offset(emitter, instruction, RCX, 0);
	emit_record(emitter, next_pc(instruction), RECORD_RCX);
	emit_slot_number(
	        emitter, SLOT_DETAIL, ACCESS_DETAIL(ACCESS_COPY, size, (uint32_t)emitter->executed + 1));
	emit_leave_to(lowering->emitter, ROUTINE_ACCESS, 0);
	field = emit_offset(emitter) - 5 - 4;
	emit_rel32_to(emitter, field, emit_offset(emitter));
	emit_record(emitter, next_pc(instruction), 0);
}

/* -- the stack ----------------------------------------------------------- */

/*
 * opcode reg, gs:[rsp], or through t where the stack may be low:
 *
 *     mov  gs:[SLOT_SCRATCH_A], t ; mov t, rsp ; fold ; opcode reg, gs:[t] ; mov t, gs:[SLOT_SCRATCH_A]
 *
 * With cmp, that last mov leaves the flags for the jump behind it.
 */
static void emit_stack_operation(
        struct lowering *lowering, uint8_t opcode, uint8_t reg, uint8_t base, bool flags_free)
{
	struct emitter *emitter = lowering->emitter;

	if (!lowering->request->low_stack && base == RSP) {
		EMIT(emitter, 0x65, 0x48 | (reg & 8) >> 1, opcode, 0x04 | (reg & 7) << 3, 0x24);
		return;
	}
	if (!lowering->request->low_memory) {
		EMIT(emitter, 0x65, 0x48 | (reg & 8) >> 1, opcode, 0x45 | (reg & 7) << 3, 0); /* [rbp+0] */
		return;
	}
	uint8_t t = reg == RDI ? RSI : RDI;

	emit_spill(emitter, t, SLOT_SCRATCH_A);
	emit_move(emitter, t, base);
	emit_fold(emitter, t, flags_free);
	EMIT(emitter, 0x65, 0x48 | (reg & 8) >> 1, opcode, (reg & 7) << 3 | t);
	emit_reload(emitter, t, SLOT_SCRATCH_A);
}

/*
 *     push r               or  push number
 *     mov  gs:[rsp], r         mov  qword gs:[rsp], number
 */
static void shadow_push(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t opcode = instruction->opcode;
	int32_t number = 0;

	operand_copy(emitter, instruction);
	emit_record(emitter, next_pc(instruction), flags_state(lowering));
	if (opcode != 0x68 && opcode != 0x6a) {
		uint8_t reg = opcode == 0xff ? operand_register(instruction)
		                             : (opcode & 7) | own_rex(instruction) << 3;

		emit_stack_operation(lowering, 0x89, reg & 15, RSP, lowering->flags_in_slot);
		return;
	}
	if (opcode == 0x6a)
		number = (int8_t)instruction->bytes[instruction->length - 1];
	else
		memcpy(&number, instruction->bytes + instruction->length - 4, 4);
	if (lowering->request->low_stack) {
		emit_spill(emitter, RAX, SLOT_SCRATCH_B);
		emit_number(emitter, RAX, (uint64_t)(int64_t)number);
		emit_stack_operation(lowering, 0x89, RAX, RSP, false);
		emit_reload(emitter, RAX, SLOT_SCRATCH_B);
		return;
	}
	EMIT(emitter, 0x65, 0x48, 0xc7, 0x04, 0x24);
	emit_u32(emitter, (uint32_t)number);
}

/* v is the operand, as in shadow_load_apart; then as in shadow_push */
static void shadow_push_memory(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	struct view view;
	uint8_t v;
	uint32_t state = load_value(lowering, instruction, &view, &v);

	emit_record(emitter, instruction->pc, state);
	if (v & 8)
		EMIT(emitter, 0x41);
	EMIT(emitter, 0x50 | (v & 7));
	emit_record(emitter, next_pc(instruction), state);
	emit_stack_operation(lowering, 0x89, v, RSP, lowering->flags_in_slot);
}

/* pop reg ; cmp reg, gs:[rsp-8] ; jne miss, for a stack that is not low; `state` without the flags */
static void pop_compared(
        struct lowering *lowering, const struct instruction *instruction, uint8_t reg, uint32_t state)
{
	struct emitter *emitter = lowering->emitter;

	if (reg & 8)
		EMIT(emitter, 0x41);
	EMIT(emitter, 0x58 | (reg & 7));
	emit_record(emitter, instruction->pc, state | RECORD_POPPED | flags_state(lowering));
	EMIT(emitter, 0x65, 0x48 | (reg & 8) >> 1, 0x3b, 0x44 | (reg & 7) << 3, 0x24, 0xf8);
	emit_jump_miss(lowering, add_miss(lowering, instruction, state | RECORD_POPPED));
}

/*
 *     pop  r
 *     cmp  r, gs:[rsp-8]
 *     jne  miss
 * or, for a stack that may be low,
 *     mov  r, [rsp]
 *     cmp  r, gs:[rsp]
 *     jne  miss
 *     lea  rsp, [rsp+8]
 */
static void shadow_pop(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t reg = instruction->opcode == 0x8f
	                      ? operand_register(instruction)
	                      : ((instruction->opcode & 7) | own_rex(instruction) << 3) & 15;

	flags_begin(lowering, instruction, instruction->written);
	if (lowering->request->low_stack) {
		EMIT(emitter, 0x48 | (reg & 8) >> 1, 0x8b, 0x04 | (reg & 7) << 3, 0x24);
		emit_stack_operation(lowering, 0x3b, reg, RSP, !flags_are_repeated(lowering));
		emit_jump_miss(lowering, add_miss(lowering, instruction, 0));
		emit_add_number(emitter, RSP, 8);
	} else {
		pop_compared(lowering, instruction, reg, 0);
	}
	flags_popped(lowering);
	emit_record(emitter, next_pc(instruction), flags_state(lowering));
	flags_end(lowering);
}

/*
 *     mov  v, [rbp]
 *     cmp  v, gs:[rbp]
 *     jne  miss
 *     lea  rsp, [rbp+8]
 *     mov  rbp, v
 */
static void shadow_leave(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	flags_begin(lowering, instruction, 0);

	uint32_t flags = flags_state(lowering);
	uint8_t v = keep_register(lowering, instruction, KEEP_ADDRESSES, flags);

	EMIT(emitter, 0x48, 0x8b, 0x45 | v << 3, 0x00);
	emit_stack_operation(lowering, 0x3b, v, RBP, !flags_are_repeated(lowering));
	emit_jump_miss(lowering, add_miss(lowering, instruction, 0));
	flags_end(lowering);
	EMIT(emitter, 0x48, 0x8d, 0x65, 0x08);
	emit_move(emitter, RBP, v);
	emit_record(emitter, next_pc(instruction), flags);
}

void shadow_access(struct lowering *lowering, const struct instruction *instruction)
{
	switch ((enum access_kind)instruction->access) {
	case ACCESS_LOAD:
		if (loads_over_address(instruction) || flags_need_registers(lowering, instruction))
			shadow_load_apart(lowering, instruction);
		else
			shadow_load_plain(lowering, instruction);
		break;
	case ACCESS_USE:
		shadow_use(lowering, instruction);
		break;
	case ACCESS_STORE:
		shadow_store(lowering, instruction);
		break;
	case ACCESS_MODIFY:
		shadow_modify(lowering, instruction);
		break;
	case ACCESS_POP_STORE:
		shadow_pop_store(lowering, instruction);
		break;
	case ACCESS_PUSH:
		shadow_push(lowering, instruction);
		break;
	case ACCESS_PUSH_MEMORY:
		shadow_push_memory(lowering, instruction);
		break;
	case ACCESS_POP:
		shadow_pop(lowering, instruction);
		break;
	case ACCESS_LEAVE:
		shadow_leave(lowering, instruction);
		break;
	default:
		abort();
	}
}

/* -- calls and returns --------------------------------------------------- */

/*
 *     lea  r, [rip+x]          or  mov  r, return address
 *     push r
 *     mov  gs:[rsp], r
 */
static void push_return(struct lowering *lowering, const struct instruction *instruction, uint8_t r)
{
	struct emitter *emitter = lowering->emitter;
	uint64_t pc = next_pc(instruction);

	if (operand_is_near(lowering->request, pc)) {
		EMIT(emitter, 0x48 | (r & 8) >> 1, 0x8d, 0x05 | (r & 7) << 3);
		emit_fixup(emitter, FIXUP_NEAR, (int64_t)(pc - emitter->pc), emit_offset(emitter), 4);
		emit_u32(emitter, 0);
	} else {
		emit_address(emitter, r, pc);
	}
	if (r & 8)
		EMIT(emitter, 0x41);
	EMIT(emitter, 0x50 | (r & 7));
	emit_stack_operation(lowering, 0x89, r, RSP, false);
}

/*
 *     push number
 *     mov  qword gs:[rsp], number
 */
static void push_low_return(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint32_t pc = (uint32_t)next_pc(instruction);

	EMIT(emitter, 0x68);
	emit_u32(emitter, pc);
	emit_record(emitter, instruction->target, RECORD_TRANSIT);
	EMIT(emitter, 0x65, 0x48, 0xc7, 0x04, 0x24);
	emit_u32(emitter, pc);
}

/*
 *     mov  gs:[SLOT_SCRATCH_B], r11
 *     push return address, by r11
 *     mov  r11, gs:[SLOT_SCRATCH_B]
 *     jmp  target
 *
 * or, in low memory, where flags are free: push the number ; jmp target
 */
void shadow_call(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	bool free = lower_flags_free(lowering, instruction->target);

	/* A block that is called has no lag. */
	if (free && next_pc(instruction) < 1u << 31 && !lowering->request->low_stack) {
		push_low_return(lowering, instruction);
		lower_count_freely(lowering);
	} else {
		emit_spill(emitter, R11, SLOT_SCRATCH_B);
		emit_record(emitter, instruction->pc, in_b(R11));
		push_return(lowering, instruction, R11);
		emit_record(emitter, instruction->target, RECORD_TRANSIT | in_b(R11));
		if (free)
			lower_count_freely(lowering);
		else
			lower_count_by(lowering, R11);
		emit_reload(emitter, R11, SLOT_SCRATCH_B);
	}
	emitter->in_instruction = false;
	emitter->executed = 0;
	emit_record(emitter, instruction->target, RECORD_BOUNDARY | RECORD_TRANSIT);
	emit_site(emitter, JMP, instruction->target);
}

/*
 * rcx = what was loaded from [address], when that is what the shadow has; the address is
 * in rcx, and rcx and r11 are in their slots. Needs no flags, which are live here.
 *
 *     mov   r11, [rcx]
 *    (fold  rcx)
 *     mov   rcx, gs:[rcx]
 *     not   rcx
 *     lea   rcx, [rcx+r11+1]
 *     jrcxz same
 *     jmp   miss
 * same:
 *     mov   rcx, r11
 */
static void load_target(struct lowering *lowering, const struct instruction *instruction, bool fold)
{
	struct emitter *emitter = lowering->emitter;
	struct miss *miss = add_miss(lowering, instruction, RECORD_RCX | RECORD_R11);
	uint32_t same;

	EMIT(emitter, 0x4c, 0x8b, 0x19);
	if (fold)
		emit_fold(emitter, RCX, false);
	EMIT(emitter, 0x65, 0x48, 0x8b, 0x09);
	EMIT(emitter, 0x48, 0xf7, 0xd1);
	EMIT(emitter, 0x4a, 0x8d, 0x4c, 0x19, 0x01);
	EMIT(emitter, 0xe3, 0);
	same = emit_offset(emitter) - 1;
	EMIT(emitter, 0xe9);
	miss->fields[miss->field_count++] = emit_offset(emitter);
	emit_u32(emitter, 0);
	emit_rel8_here(emitter, same);
	emit_move(emitter, RCX, R11);
}

/* rcx = address of the branch's operand, segment base included */
static void point_target(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	operand_offset(emitter, instruction, RCX);
	if (!operand_has_segment(instruction))
		return;
	operand_segment_base(emitter, instruction, R11);
	emit_add(emitter, RCX, R11);
}

/*
 *     spills ; rcx = operand, checked
 *    (mov r11, [rsp-8] ; mov gs:[SLOT_UNDER_STACK], r11 ; push return address)
 *     probe
 */
void shadow_indirect(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	static const uint8_t call_peek[] = {CALL_PEEK_BYTES};

	lower_probe_spills(lowering, instruction);
	emit_branch_place(emitter, instruction);
	if (instruction->is_memory) {
		point_target(lowering, instruction);
		load_target(lowering, instruction, lowering->request->low_memory);
	} else if (operand_register(instruction) != RCX) {
		emit_move(emitter, RCX, operand_register(instruction));
	}
	if (instruction->kind == KIND_CALL_INDIRECT) {
		emit_bytes(emitter, call_peek, sizeof(call_peek));
		emit_spill(emitter, R11, SLOT_UNDER_STACK);
		push_return(lowering, instruction, R11);
	}
	lower_count_by(lowering, R11);
	emit_probe(emitter, instruction);
}

/*
 *     spills
 *     pop  rcx ; cmp rcx, gs:[rsp-8] ; jne miss
 *    (lea  rsp, [rsp+n])
 *     flags
 *     probe
 */
static void return_by_compare(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	pop_compared(lowering, instruction, RCX, RECORD_RCX | RECORD_R11);
	lower_count_freely(lowering);
	flags_restore(lowering, 8);
	if (instruction->pop)
		emit_add_number(emitter, RSP, instruction->pop);
	emit_probe(emitter, instruction);
}

/*
 * Where the flags cannot be had back:
 *
 *     spills ; rcx = [rsp], checked
 *     lea  rsp, [rsp+8+n]
 *     probe
 */
void shadow_return(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	lower_probe_spills(lowering, instruction);
	emit_branch_place(emitter, instruction);
	if (!lowering->request->low_stack && flags_can_restore(lowering, instruction)) {
		return_by_compare(lowering, instruction);
		return;
	}
	flags_restore(lowering, 0);
	emit_move(emitter, RCX, RSP);
	load_target(lowering, instruction, lowering->request->low_stack);
	emit_add_number(emitter, RSP, 8 + instruction->pop);
	lower_count_by(lowering, R11);
	emit_probe(emitter, instruction);
}
