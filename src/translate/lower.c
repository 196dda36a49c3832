/*
 * Lowering of instructions, see lower.h.
 *
 * Each function here is one kind of instruction and shows the code it makes.
 * The records say at every place where the program's registers are: the state
 * that holds *before* the instruction emitted next. Once the program's own
 * effect has happened, registers we still have to put back belong to the state
 * at the next pc.
 */
#include <stdlib.h>
#include <string.h>

#include "translate/flags.h"
#include "translate/keep.h"
#include "translate/liveness.h"
#include "translate/lowering.h"
#include "translate/operand.h"
#include "translate/position.h"

/* -- memory operands ----------------------------------------------------- */

/*
 *     mov  gs:[SLOT_SCRATCH_A], reg
 *     mov  reg, address
 *    (mov  reg32, reg32             ; with a 67 prefix)
 *     insn [reg]
 *    (mov  reg, gs:[SLOT_SCRATCH_A] ; unless insn overwrites reg anyway)
 *
 * The spill is needed even when reg is overwritten: the access may fault.
 */
static void lower_far(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t reg = instruction->destination;
	bool reload = !instruction->overwrites || reg >= 8 || reg == RSP || reg == RBP;

	/* d8 00 would look like the opcode that the x87 unit gives when it remembers none. */
	if (reload)
		reg = operand_pick(instruction->used | (instruction->x87 ? 1u << RAX : 0));
	emit_spill(emitter, reg, SLOT_SCRATCH_A);
	emit_record(emitter, instruction->pc, in_a(reg));
	emit_address(emitter, reg, instruction->target);
	if (instruction->address32)
		emit_truncate(emitter, reg);
	operand_replace(emitter, instruction, reg, false);
	if (!reload)
		return;
	emit_record(emitter, next_pc(instruction), in_a(reg));
	emit_reload(emitter, reg, SLOT_SCRATCH_A);
}

/*
 * lea of a far address:
 *
 *     mov  reg, address
 *
 * and where the result is truncated:
 *
 *     mov  gs:[SLOT_SCRATCH_A], reg
 *     mov  reg, address
 *     mov  reg32, reg32
 *
 * and with a 16-bit operand, which leaves the rest of its register alone:
 *
 *     mov  gs:[SLOT_SCRATCH_A], borrowed
 *     mov  borrowed, address
 *     mov  reg16, borrowed16
 *     mov  borrowed, gs:[SLOT_SCRATCH_A]
 */
static void lower_far_lea(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	const struct encoding *encoding = &instruction->encoding;
	uint8_t rex = encoding->has_rex ? instruction->bytes[encoding->rex] : 0;
	uint8_t reg = (instruction->bytes[encoding->modrm] >> 3 & 7) | (rex & 4) << 1;

	if (instruction->width == 2) {
		uint8_t borrowed = operand_pick(1u << reg);

		emit_spill(emitter, borrowed, SLOT_SCRATCH_A);
		emit_record(emitter, instruction->pc, in_a(borrowed));
		emit_address(emitter, borrowed, instruction->target);
		EMIT(emitter, 0x66, 0x40 | reg >> 3, 0x89, 0xc0 | borrowed << 3 | (reg & 7));
		emit_record(emitter, next_pc(instruction), in_a(borrowed));
		emit_reload(emitter, borrowed, SLOT_SCRATCH_A);
		return;
	}
	if (instruction->width == 8 && !instruction->address32) {
		emit_address(emitter, reg, instruction->target);
		return;
	}
	emit_spill(emitter, reg, SLOT_SCRATCH_A);
	emit_record(emitter, instruction->pc, in_a(reg));
	emit_address(emitter, reg, instruction->target);
	emit_truncate(emitter, reg);
}

/*
 *     mov  gs:[SLOT_SCRATCH_A], a
 *     mov  gs:[SLOT_SCRATCH_B], b
 *     lea  a, [operand]
 *     mov  b, gs:[SLOT_PROGRAM_GS]
 *     lea  a, [a+b]
 *     mov  b, gs:[SLOT_SCRATCH_B]
 *     insn [a]
 *     mov  a, gs:[SLOT_SCRATCH_A]
 */
static void lower_gs(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t a = operand_pick(instruction->used);
	uint8_t b = a == RAX ? RDX : RAX;

	emit_spill(emitter, a, SLOT_SCRATCH_A);
	emit_spill(emitter, b, SLOT_SCRATCH_B);
	emit_record(emitter, instruction->pc, in_a(a) | in_b(b));
	operand_offset(emitter, instruction, a);
	emit_reload(emitter, b, SLOT_PROGRAM_GS);
	emit_add(emitter, a, b);
	emit_reload(emitter, b, SLOT_SCRATCH_B);
	emit_record(emitter, instruction->pc, in_a(a));
	operand_replace(emitter, instruction, a, true);
	emit_record(emitter, next_pc(instruction), in_a(a));
	emit_reload(emitter, a, SLOT_SCRATCH_A);
}

/*
 * A gather keeps its vector of indices; only its base moves:
 *
 *     mov  gs:[SLOT_SCRATCH_A], a
 *     mov  a, gs:[SLOT_PROGRAM_GS]
 *    (lea  a, [a+base])
 *     insn [a+vector*scale+disp]
 *     mov  a, gs:[SLOT_SCRATCH_A]
 */
static void lower_gs_vector(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	bool has_base = instruction->base != NO_REGISTER;
	uint8_t a = operand_pick(instruction->used | (has_base ? 1u << instruction->base : 0));

	emit_spill(emitter, a, SLOT_SCRATCH_A);
	emit_record(emitter, instruction->pc, in_a(a));
	emit_reload(emitter, a, SLOT_PROGRAM_GS);
	if (has_base)
		emit_add(emitter, a, instruction->base);
	operand_replace_base(emitter, instruction, a);
	emit_record(emitter, next_pc(instruction), in_a(a));
	emit_reload(emitter, a, SLOT_SCRATCH_A);
}

/*
 * String instructions, xlat, maskmov and a few others have their address in one
 * register and nothing else, and string instructions change it: it has the GS
 * base added meanwhile.
 *
 *     mov  gs:[SLOT_SCRATCH_B], b
 *     mov  b, gs:[SLOT_PROGRAM_GS]
 *     lea  base, [base+b]
 *     mov  b, gs:[SLOT_SCRATCH_B]
 *     insn                            ; without its gs prefix
 *     mov  gs:[SLOT_SCRATCH_B], b
 *     mov  b, gs:[SLOT_PROGRAM_GS]
 *     not  b
 *     lea  base, [base+b+1]
 *     mov  b, gs:[SLOT_SCRATCH_B]
 */
static void lower_gs_implicit(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t base = instruction->base, b = operand_pick(instruction->used | 1u << base);
	uint64_t pc = instruction->pc, next = next_pc(instruction);

	emit_spill(emitter, b, SLOT_SCRATCH_B);
	emit_record(emitter, pc, in_b(b));
	emit_reload(emitter, b, SLOT_PROGRAM_GS);
	emit_add(emitter, base, b);
	emit_record(emitter, pc, in_b(b) | biased(base));
	emit_reload(emitter, b, SLOT_SCRATCH_B);
	emit_record(emitter, pc, biased(base));
	operand_copy_flat(emitter, instruction);
	emit_record(emitter, next, biased(base));
	emit_spill(emitter, b, SLOT_SCRATCH_B);
	emit_record(emitter, next, in_b(b) | biased(base));
	emit_reload(emitter, b, SLOT_PROGRAM_GS);
	EMIT(emitter, 0x48, 0xf7, 0xd0 | b);
	EMIT(emitter, 0x48 | (base & 8) >> 1 | base >> 3, 0x8d, 0x44 | (base & 7) << 3, b << 3 | (base & 7),
	        1);
	emit_record(emitter, next, in_b(b));
	emit_reload(emitter, b, SLOT_SCRATCH_B);
}

/*
 * rcx = the operand's full address, segment base included, with the program's rcx in its slot:
 *
 *     mov  gs:[SLOT_RCX], rcx
 *     lea  rcx, [operand]
 *    (mov  gs:[SLOT_SCRATCH_B], rax   ; with fs: or gs:
 *     rdfsbase rax                    ; or mov rax, gs:[SLOT_PROGRAM_GS]
 *     lea  rcx, [rcx+rax]
 *     mov  rax, gs:[SLOT_SCRATCH_B])
 */
void lower_address(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
	operand_offset(emitter, instruction, RCX);
	if (!operand_has_segment(instruction))
		return;
	emit_spill(emitter, RAX, SLOT_SCRATCH_B);
	emit_record(emitter, instruction->pc, RECORD_RCX | in_b(RAX));
	operand_segment_base(emitter, instruction, RAX);
	emit_add(emitter, RCX, RAX);
	emit_reload(emitter, RAX, SLOT_SCRATCH_B);
	emit_record(emitter, instruction->pc, RECORD_RCX);
}

/*
 * edx:eax &= mask without touching flags; x & m is pdep(pext(x, m), m):
 *
 *     mov  gs:[SLOT_SCRATCH_A], rax
 *     mov  gs:[SLOT_SCRATCH_B], rdx
 *     pext eax, eax, [low half]
 *     pdep eax, eax, [low half]
 *     pext edx, edx, [high half]
 *     pdep edx, edx, [high half]
 */
static void lower_mask(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint64_t mask = lowering->request->xstate_mask;

	emit_spill(emitter, RAX, SLOT_SCRATCH_A);
	emit_spill(emitter, RDX, SLOT_SCRATCH_B);
	emit_record(emitter, instruction->pc, RECORD_RCX | in_a(RAX) | in_b(RDX));
	EMIT(emitter, 0xc4, 0xe2, 0x7a, 0xf5, 0x05);
	emit_literal(emitter, false, mask & UINT32_MAX, 4);
	EMIT(emitter, 0xc4, 0xe2, 0x7b, 0xf5, 0x05);
	emit_literal(emitter, false, mask & UINT32_MAX, 4);
	EMIT(emitter, 0xc4, 0xe2, 0x6a, 0xf5, 0x15);
	emit_literal(emitter, false, mask >> 32, 4);
	EMIT(emitter, 0xc4, 0xe2, 0x6b, 0xf5, 0x15);
	emit_literal(emitter, false, mask >> 32, 4);
}

/* Behind the instruction; `pc` is the one whose state is now in place otherwise. */
static void lower_unmask(struct lowering *lowering, uint64_t pc)
{
	struct emitter *emitter = lowering->emitter;

	emit_record(emitter, pc, RECORD_RCX | in_a(RAX) | in_b(RDX));
	emit_reload(emitter, RDX, SLOT_SCRATCH_B);
	emit_record(emitter, pc, RECORD_RCX | in_a(RAX));
	emit_reload(emitter, RAX, SLOT_SCRATCH_A);
	emit_record(emitter, pc, RECORD_RCX);
}

/*
 *     rcx = address, edx:eax masked
 *     xrstor [rcx]
 *     edx:eax and rcx restored
 */
static void lower_masked(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	lower_address(lowering, instruction);
	lower_mask(lowering, instruction);
	operand_replace(emitter, instruction, RCX, true);
	lower_unmask(lowering, next_pc(instruction));
	emit_reload(emitter, RCX, SLOT_RCX);
}

static void lower_plain(struct lowering *lowering, const struct instruction *instruction)
{
	bool near = !instruction->address32 && operand_is_near(lowering->request, instruction->target);

	if (instruction->xstate && lowering->request->xstate_mask) {
		lower_masked(lowering, instruction);
		return;
	}
	switch (instruction->memory) {
	case MEMORY_RIP:
		if (near)
			operand_copy(lowering->emitter, instruction);
		else if (instruction->kind == KIND_LEA)
			lower_far_lea(lowering, instruction);
		else
			lower_far(lowering, instruction);
		break;
	case MEMORY_GS:
		lower_gs(lowering, instruction);
		break;
	case MEMORY_GS_VECTOR:
		lower_gs_vector(lowering, instruction);
		break;
	case MEMORY_GS_IMPLICIT:
		lower_gs_implicit(lowering, instruction);
		break;
	default:
		operand_copy(lowering->emitter, instruction);
	}
}

/* -- direct branches ----------------------------------------------------- */

/* Room for one more at the end of an array of the lowering's; NULL: out of memory. */
static void *grow_list(
        struct lowering *lowering, void **list, uint32_t *count, uint32_t *capacity, size_t size)
{
	if (*count == *capacity) {
		uint32_t wanted = *capacity ? *capacity * 2 : 32;
		void *grown = realloc(*list, wanted * size);

		if (!grown) {
			lowering->emitter->failed = true;
			return NULL;
		}
		*list = grown;
		*capacity = wanted;
	}
	return (char *)*list + (*count)++ * size;
}

static void add_detour(struct lowering *lowering, uint64_t target)
{
	struct detour *detour = grow_list(lowering, (void **)&lowering->detours, &lowering->detour_count,
	        &lowering->detour_capacity, sizeof(*detour));

	if (detour)
		*detour = (struct detour){lowering->block, target, emit_offset(lowering->emitter)};
}

/* jmp or jcc to pc: a site, unless it is to a block with a lag. */
static void lower_branch(struct lowering *lowering, unsigned condition, uint64_t pc)
{
	struct emitter *emitter = lowering->emitter;
	const struct block *to = position_inner(lowering->region, pc);

	if (!to || !to->lag) {
		emit_site(emitter, condition, pc);
		return;
	}
	if (condition == JMP)
		EMIT(emitter, 0xe9);
	else
		EMIT(emitter, 0x0f, 0x80 | condition);

	struct inner_branch *branch = grow_list(lowering, (void **)&lowering->inner, &lowering->inner_count,
	        &lowering->inner_capacity, sizeof(*branch));

	if (branch)
		*branch = (struct inner_branch){to, emit_offset(emitter)};
	emit_u32(emitter, 0);
}

static void link_inner(struct lowering *lowering)
{
	for (uint32_t i = 0; i < lowering->inner_count; i++)
		emit_rel32_to(lowering->emitter, lowering->inner[i].field, lowering->inner[i].to->offset);
	free(lowering->inner);
}

/* Behind the last instruction of the block, on the way to pc: what records say from here on. */
static void be_counted(struct lowering *lowering, uint64_t pc)
{
	const struct block *to = position_inner(lowering->region, pc);

	lowering->emitter->in_instruction = false;
	lowering->emitter->executed = to ? to->lag : 0;
}

static void choose_counter(struct lowering *lowering, const struct block *block)
{
	const struct translate_request *request = lowering->request;

	if (request->counter)
		lowering->emitter->counter = request->counter + block->counter;
}

/* May our code overwrite the flags where these are live? */
static bool flags_free(const struct lowering *lowering, live_set live)
{
	if (lowering->request->keep_flags && *lowering->request->keep_flags)
		return false;
	return !(live &
	         (lowering->request->mode == TRANSLATE_RUN ? LIVE_SHOWN(FLAGS_ALL) : LIVE_FLAGS(FLAGS_ALL)));
}

/* Where the block is entered? */
static bool flags_free_at(const struct lowering *lowering, const struct block *block)
{
	return flags_free(lowering, block->live_in);
}

/*
 * Where flags are free:
 *
 *     sub  qword gs:[counter], -count
 *
 * and elsewhere:
 *
 *     mov  gs:[SLOT_SCRATCH_A], rcx
 *     mov  rcx, gs:[counter]
 *     lea  rcx, [rcx+count]
 *     mov  gs:[counter], rcx
 *     mov  rcx, gs:[SLOT_SCRATCH_A]
 */
static void lower_count(struct lowering *lowering, int32_t count, bool flags_free, uint64_t pc)
{
	struct emitter *emitter = lowering->emitter;

	if (!count)
		return;
	if (flags_free) {
		emit_count(emitter, count);
		return;
	}
	emit_spill(emitter, RCX, SLOT_SCRATCH_A);
	emit_record(emitter, pc, RECORD_TRANSIT | in_a(RCX));
	emit_count_by(emitter, RCX, count);
	emit_reload(emitter, RCX, SLOT_SCRATCH_A);
}

/* On the way to pc; where a jump is nothing else yet, it is the jump's own boundary. */
static void emit_way(struct lowering *lowering, uint64_t pc)
{
	if (emit_offset(lowering->emitter) != lowering->start)
		emit_record(lowering->emitter, pc, RECORD_BOUNDARY | RECORD_TRANSIT);
}

/* Counts on the edge from the end of `from` to pc; afterwards the whole state is in place for pc. */
static void lower_edge(struct lowering *lowering, const struct block *from, uint64_t pc)
{
	emit_way(lowering, pc);
	if (!request_counts(lowering->request))
		return;
	choose_counter(lowering, from);
	lower_count(lowering, position_difference(lowering->region, from, pc),
	        flags_free(lowering, liveness_at(lowering->region, pc)), pc);
	be_counted(lowering, pc);
	emit_way(lowering, pc);
}

/*
 * Is the thread to come out on the edge when its counter is used up? Whatever a thread does for long, it goes
 * back or calls something; but for indirect branches, which count without flags.
 */
static bool comes_out(const struct lowering *lowering, const struct block *from, uint64_t pc)
{
	const struct instruction *last = region_at(lowering->region, from, from->count - 1);

	return lowering->request->mode == TRANSLATE_RECORD && !lowering->request->exact &&
	       (pc <= from->pc || last->kind == KIND_CALL) &&
	       position_difference(lowering->region, from, pc) > 0 &&
	       flags_free(lowering, liveness_at(lowering->region, pc));
}

/*
 * From the end of `from` to pc:
 *
 *     count
 *     jmp  pc
 *
 * While recording, a counter counts up to 0 and the thread comes out then (runtime.h), which costs nothing:
 *
 *     count
 * there:
 *     js   pc
 *     mov  gs:[SLOT_RCX], rcx
 *     lea  rcx, [rip+there]
 *     jmp  ROUTINE_STOP
 */
static void lower_way(struct lowering *lowering, const struct block *from, uint64_t pc)
{
	struct emitter *emitter = lowering->emitter;

	lower_edge(lowering, from, pc);
	if (!comes_out(lowering, from, pc)) {
		lower_branch(lowering, JMP, pc);
		return;
	}
	uint32_t there = emit_offset(emitter);
	lower_branch(lowering, SIGN, pc);
	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, pc, RECORD_TRANSIT | RECORD_RCX);
	emit_leave_to(emitter, ROUTINE_STOP, there);
}

void lower_count_by(struct lowering *lowering, uint8_t reg)
{
	if (request_counts(lowering->request))
		emit_count_by(
		        lowering->emitter, reg, (int32_t)(lowering->block->lag + lowering->block->count));
}

void lower_count_freely(struct lowering *lowering)
{
	if (request_counts(lowering->request))
		emit_count(lowering->emitter, (int32_t)(lowering->block->lag + lowering->block->count));
}

bool lower_flags_free(const struct lowering *lowering, uint64_t pc)
{
	return flags_free(lowering, liveness_at(lowering->region, pc));
}

/* jmp pc, for control that goes on there with the whole state in place; nothing if that comes next anyway. */
static void lower_continue(struct lowering *lowering, uint64_t pc)
{
	if (lowering->following && lowering->following->pc == pc && position_inner(lowering->region, pc))
		lower_edge(lowering, lowering->block, pc);
	else
		lower_way(lowering, lowering->block, pc);
}

/* The block's last instruction was lowered, and control may still be behind it. */
static void back_to_instruction(struct lowering *lowering, int32_t executed)
{
	lowering->emitter->in_instruction = true;
	lowering->emitter->executed = executed;
}

/*
 *     jcc  target       ; or to a detour, where something is counted on the way
 *    (jmp  next)
 */
static void lower_conditional(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t condition = instruction->opcode & 15;

	if (!request_counts(lowering->request) ||
	        position_difference(lowering->region, lowering->block, instruction->target) == 0) {
		lower_branch(lowering, condition, instruction->target);
	} else {
		EMIT(emitter, 0x0f, 0x80 | condition);
		add_detour(lowering, instruction->target);
		emit_u32(emitter, 0);
	}
	lower_continue(lowering, next_pc(instruction));
}

/*
 *     count
 *     jmp  target
 */
static void lower_detours(struct lowering *lowering)
{
	for (uint32_t i = 0; i < lowering->detour_count && !lowering->emitter->failed; i++) {
		const struct detour *detour = &lowering->detours[i];

		emit_rel32_to(lowering->emitter, detour->field, emit_offset(lowering->emitter));
		lowering->emitter->in_instruction = false;
		lowering->emitter->executed = (int32_t)(detour->from->lag + detour->from->count);
		lower_way(lowering, detour->from, detour->target);
	}
	free(lowering->detours);
}

/*
 * These only have a short form:
 *
 *     loop taken
 *     jmp  next        ; a jump over the other one where next follows anyway
 * taken:
 *     jmp  target
 */
static void lower_loop(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint64_t next = next_pc(instruction);
	bool follows = lowering->following && lowering->following->pc == next &&
	               position_inner(lowering->region, next);
	int32_t executed = emitter->executed;
	uint32_t taken, over = 0;

	if (instruction->address32)
		EMIT(emitter, 0x67);
	EMIT(emitter, instruction->opcode, 0);
	taken = emit_offset(emitter) - 1;
	if (follows) {
		lower_edge(lowering, lowering->block, next);
		EMIT(emitter, 0xe9);
		over = emit_offset(emitter);
		emit_u32(emitter, 0);
	} else {
		lower_way(lowering, lowering->block, next);
	}
	emit_rel8_here(emitter, taken);
	back_to_instruction(lowering, executed);
	lower_way(lowering, lowering->block, instruction->target);
	if (follows)
		emit_rel32_to(emitter, over, emit_offset(emitter));
}

/* push qword [rip+literal]: the program's return address */
static void emit_push_return(struct emitter *emitter, const struct instruction *instruction)
{
	EMIT(emitter, 0xff, 0x35);
	emit_literal(emitter, true, next_pc(instruction), 4);
}

/*
 *     push return address
 *     jmp  target
 */
static void lower_call(struct lowering *lowering, const struct instruction *instruction)
{
	emit_push_return(lowering->emitter, instruction);
	lower_way(lowering, lowering->block, instruction->target);
}

/* -- indirect branches --------------------------------------------------- */

/*
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  gs:[SLOT_R11], r11
 */
void lower_probe_spills(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX | flags_state(lowering));
	emit_spill(emitter, R11, SLOT_R11);
	emit_record(emitter, instruction->pc, RECORD_RCX | RECORD_R11 | flags_state(lowering));
}

/*
 * rcx = the branch's operand, with rcx and rax in their slots but still in place:
 *
 *     mov  rcx, reg
 * or  mov  rcx, [operand]
 * or  mov  rcx, address ; mov rcx, [rcx]                            ; far
 * or  lea  rcx, [operand] ; mov r11, gs:[SLOT_PROGRAM_GS] ; mov rcx, [rcx+r11]
 */
static void lower_branch_operand(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	if (!instruction->is_memory) {
		if (operand_register(instruction) != RCX)
			emit_move(emitter, RCX, operand_register(instruction));
	} else if (instruction->memory == MEMORY_GS) {
		operand_offset(emitter, instruction, RCX);
		emit_reload(emitter, R11, SLOT_PROGRAM_GS);
		EMIT(emitter, 0x4a, 0x8b, 0x0c, 0x19);
	} else if (instruction->memory == MEMORY_RIP &&
	           (instruction->address32 || !operand_is_near(lowering->request, instruction->target))) {
		operand_offset(emitter, instruction, RCX);
		if (instruction->fs)
			EMIT(emitter, 0x64);
		EMIT(emitter, 0x48, 0x8b, 0x09);
	} else {
		operand_load(emitter, instruction, RCX);
	}
}

/*
 * For a target that is no address at all: where the branch is. In replay such a fault is in the
 * log, and comes in place of the branch.
 */
static void lower_branch_place(struct lowering *lowering, const struct instruction *instruction)
{
	if (lowering->request->mode != TRANSLATE_REPLAY)
		emit_branch_place(lowering->emitter, instruction);
}

/*
 *     spills ; rcx = operand
 *    (mov  r11, [rsp-8] ; mov gs:[SLOT_UNDER_STACK], r11)
 *    (push return address)
 *     probe
 *
 * The push may fault, and then shows the state before the call. What it
 * overwrites is kept, because a call to no address at all pushes nothing; replay has no such calls.
 */
static const uint8_t call_peek[] = {CALL_PEEK_BYTES};

static void lower_indirect(struct lowering *lowering, const struct instruction *instruction)
{
	lower_probe_spills(lowering, instruction);
	lower_branch_place(lowering, instruction);
	lower_branch_operand(lowering, instruction);
	if (instruction->kind == KIND_CALL_INDIRECT) {
		if (lowering->request->mode != TRANSLATE_REPLAY) {
			emit_bytes(lowering->emitter, call_peek, sizeof(call_peek));
			emit_spill(lowering->emitter, R11, SLOT_UNDER_STACK);
		}
		emit_push_return(lowering->emitter, instruction);
	}
	lower_count_by(lowering, R11);
	emit_probe(lowering->emitter, instruction);
}

/*
 *     spills
 *     pop  rcx
 *    (lea  rsp, [rsp+n])
 *     probe
 */
static void lower_return(struct lowering *lowering, const struct instruction *instruction)
{
	lower_probe_spills(lowering, instruction);
	lower_branch_place(lowering, instruction);
	EMIT(lowering->emitter, 0x59);
	if (instruction->pop)
		emit_add_number(lowering->emitter, RSP, instruction->pop);
	lower_count_by(lowering, R11);
	emit_probe(lowering->emitter, instruction);
}

/* -- what the stub does -------------------------------------------------- */

/*
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  rcx, next pc
 *     jmp  ROUTINE_SYSCALL
 */
static void lower_syscall(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
	lower_count_by(lowering, RCX);
	emit_address(emitter, RCX, next_pc(instruction));
	emit_routine(emitter, ROUTINE_SYSCALL);
}

/*
 *     mov  gs:[SLOT_DETAIL], detail
 *     mov  rcx, pc
 *     jmp  ROUTINE_EMULATE
 */
static void lower_emulate_end(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_slot_number(emitter, SLOT_DETAIL, instruction->detail);
	lower_count_by(lowering, RCX);
	emit_address(emitter, RCX, instruction->pc);
	emit_routine(emitter, ROUTINE_EMULATE);
}

/*
 *     mov  gs:[SLOT_RCX], rcx
 *    (rcx = operand's address)
 *    (mov  gs:[SLOT_ADDRESS], rcx)
 *    (mov  gs:[SLOT_SCRATCH_B], number)
 *     ...
 */
static void lower_emulate(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	if (instruction->is_memory && EMULATE_KIND(instruction->detail) != EMULATE_NATIVE) {
		lower_address(lowering, instruction);
		emit_spill(emitter, RCX, SLOT_ADDRESS);
		if (EMULATE_KIND(instruction->detail) == EMULATE_ATOMIC ||
		        EMULATE_KIND(instruction->detail) == EMULATE_GATHER)
			emit_slot_number(emitter, SLOT_SCRATCH_B, instruction->number);
	} else {
		emit_spill(emitter, RCX, SLOT_RCX);
		emit_record(emitter, instruction->pc, RECORD_RCX);
		if (EMULATE_KIND(instruction->detail) == EMULATE_FAR)
			emit_slot_number(emitter, SLOT_ADDRESS, instruction->pop);
	}
	lower_emulate_end(lowering, instruction);
}

/*
 * Replay: what these instructions store is not the same twice, and the program sees what
 * was recorded. They are executed for what they do to the x87 unit, on memory of ours:
 *
 *     mov  gs:[SLOT_RCX], rcx
 *     lea  rcx, [scratch]         ; for gs:[rcx]
 */
static void lower_scratch(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;

	emit_spill(emitter, RCX, SLOT_RCX);
	emit_record(emitter, instruction->pc, RECORD_RCX);
	EMIT(emitter, 0x48, 0x8d, 0x0d);
	emit_fixup(emitter, FIXUP_SLOT, SLOT_SCRATCH_AREA, emit_offset(emitter), 4);
	emit_u32(emitter, 0);
}

/*
 *     rcx = address
 *    (edx:eax masked)
 *     insn [rcx]
 *    (edx:eax restored)
 *     mov  gs:[SLOT_ADDRESS], rcx ; the operand's address, also in replay
 *     ...
 */
static void lower_image(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	bool mask = instruction->xstate && lowering->request->xstate_mask;

	if (lowering->request->mode == TRANSLATE_REPLAY)
		lower_scratch(lowering, instruction);
	else
		lower_address(lowering, instruction);
	if (mask)
		lower_mask(lowering, instruction);
	if (lowering->request->mode == TRANSLATE_REPLAY)
		EMIT(emitter, 0x65);
	operand_replace(emitter, instruction, RCX, true);
	if (mask)
		lower_unmask(lowering, instruction->pc);
	if (lowering->request->mode == TRANSLATE_REPLAY) {
		emit_reload(emitter, RCX, SLOT_RCX);
		lower_address(lowering, instruction);
	}
	emit_spill(emitter, RCX, SLOT_ADDRESS);
	lower_emulate_end(lowering, instruction);
}

/* -- blocks -------------------------------------------------------------- */

/* What is done differently while recording; false: nothing is. */
static bool lower_recorded(struct lowering *lowering, const struct instruction *instruction)
{
	switch (instruction->kind) {
	case KIND_PLAIN:
		if (!instruction->access)
			return flags_defer(lowering, instruction);
		shadow_access(lowering, instruction);
		return true;
	case KIND_CALL:
		shadow_call(lowering, instruction);
		return true;
	case KIND_CALL_INDIRECT:
	case KIND_JUMP_INDIRECT:
		shadow_indirect(lowering, instruction);
		return true;
	case KIND_RETURN:
		shadow_return(lowering, instruction);
		return true;
	default:
		return false;
	}
}

static void lower_instruction(struct lowering *lowering, const struct instruction *instruction)
{
	struct emitter *emitter = lowering->emitter;
	uint32_t refused = instruction->kind == KIND_REFUSED ? RECORD_REFUSED : 0;

	keep_settle(lowering, instruction);
	flags_settle(lowering, instruction, instruction->pc);
	lowering->start = emit_offset(emitter);
	emit_record(emitter, instruction->pc,
	        RECORD_BOUNDARY | refused | (lowering->flags_in_slot ? RECORD_FLAGS : 0));
	if (lowering->request->mode == TRANSLATE_RECORD && !lowering->request->pages &&
	        lower_recorded(lowering, instruction))
		return;
	trace_instruction(lowering, instruction);
	switch (instruction->kind) {
	case KIND_PLAIN:
	case KIND_LEA:
		lower_plain(lowering, instruction);
		break;
	case KIND_JUMP:
		lower_way(lowering, lowering->block, instruction->target);
		break;
	case KIND_CONDITIONAL:
		lower_conditional(lowering, instruction);
		break;
	case KIND_LOOP:
		lower_loop(lowering, instruction);
		break;
	case KIND_CALL:
		lower_call(lowering, instruction);
		break;
	case KIND_CALL_INDIRECT:
	case KIND_JUMP_INDIRECT:
		lower_indirect(lowering, instruction);
		break;
	case KIND_RETURN:
		lower_return(lowering, instruction);
		break;
	case KIND_SYSCALL:
		lower_syscall(lowering, instruction);
		break;
	case KIND_EMULATE:
		lower_emulate(lowering, instruction);
		break;
	case KIND_IMAGE:
		lower_image(lowering, instruction);
		break;
	case KIND_STOP:
		/* Without a fixup: what ud0 and ud1 have for an operand is no address. */
		emit_bytes(emitter, instruction->bytes, instruction->length);
		break;
	case KIND_TOO_LONG:
		EMIT(emitter, 0xf4); /* hlt: #GP, as the CPU gives for it */
		break;
	default:
		EMIT(emitter, 0x0f, 0x0b); /* ud2 */
	}
}

/* rcx = `size` (8, 4, 2 or 1) bytes of program code at pc */
static void emit_code_load(struct lowering *lowering, uint64_t pc, unsigned size)
{
	static const struct {
		uint8_t bytes[3], count;
	} opcodes[9] = {
	        [1] = {{0x0f, 0xb6}, 2},
	        [2] = {{0x0f, 0xb7}, 2},
	        [4] = {{0x8b}, 1},
	        [8] = {{0x48, 0x8b}, 2},
	};
	struct emitter *emitter = lowering->emitter;
	bool near = operand_is_near(lowering->request, pc);

	if (!near)
		emit_address(emitter, RCX, pc);
	emit_bytes(emitter, opcodes[size].bytes, opcodes[size].count);
	EMIT(emitter, near ? 0x0d : 0x09);
	if (near) {
		emit_fixup(emitter, FIXUP_NEAR, pc - emitter->pc, emit_offset(emitter), 4);
		emit_u32(emitter, 0);
	}
}

/*
 * Is this stretch of code still as it was?
 *
 *     mov   r11, -bytes
 *     mov   rcx, [pc]
 *     lea   rcx, [rcx+r11]
 *     jrcxz same
 *     jmp   failure
 * same:
 */
static void lower_check_stretch(
        struct lowering *lowering, const struct block *block, uint64_t pc, uint64_t bytes, unsigned size)
{
	struct emitter *emitter = lowering->emitter;
	uint32_t same;

	emit_number(emitter, R11, -bytes);
	emit_code_load(lowering, pc, size);
	emit_add(emitter, RCX, R11);
	EMIT(emitter, 0xe3, 0);
	same = emit_offset(emitter) - 1;
	emit_jump_failure(emitter, block->pc);
	emit_rel8_here(emitter, same);
}

/*
 * Checks `count` gathered bytes that start at pc in pieces of 8, 4, 2 and 1, each
 * aligned: the program may have alignment checks switched on.
 */
static void lower_check_bytes(struct lowering *lowering, const struct block *block, uint64_t pc,
        const uint8_t *bytes, unsigned count)
{
	while (count) {
		unsigned size = 8;
		uint64_t value = 0;

		while (size > count || pc % size)
			size /= 2;
		memcpy(&value, bytes, size);
		lower_check_stretch(lowering, block, pc, value, size);
		pc += size;
		bytes += size;
		count -= size;
	}
}

/*
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  gs:[SLOT_R11], r11
 *     checks
 *     mov  rcx, gs:[SLOT_RCX]
 *     mov  r11, gs:[SLOT_R11]
 */
static void lower_check(struct lowering *lowering, const struct block *block)
{
	struct emitter *emitter = lowering->emitter;
	uint8_t bytes[64 + INSTRUCTION_BYTES_MAX];
	unsigned gathered = 0;
	uint64_t pc = block->pc;

	/* Nobody can read that page, or change it. */
	if (fetch_in_vsyscall_page(pc))
		return;
	emit_record(emitter, block->pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	lower_probe_spills(lowering, region_at(lowering->region, block, 0));
	for (uint32_t i = 0; i < block->count; i++) {
		const struct instruction *instruction = region_at(lowering->region, block, i);

		memcpy(bytes + gathered, instruction->bytes, instruction->length);
		gathered += instruction->length;
		if (gathered >= 64 || i + 1 == block->count) {
			/* Whole words first; what is left waits for more, except at the end. */
			unsigned now = i + 1 == block->count ? gathered : gathered & ~7u;

			lower_check_bytes(lowering, block, pc, bytes, now);
			memmove(bytes, bytes + now, gathered - now);
			gathered -= now;
			pc += now;
		}
	}
	emit_reload(emitter, RCX, SLOT_RCX);
	emit_record(emitter, block->pc, RECORD_R11);
	emit_reload(emitter, R11, SLOT_R11);
}

/*
 * Replay stops before the block where control might get beyond the next event before it
 * comes to another such place. The counter says how many instructions are left until then, as a
 * negative number:
 *
 *    (mov  gs:[SLOT_RAX], rax ; lahf ; seto al      ; where flags are read later
 *     cmp  qword gs:[counter], -longest
 *     jg   stop
 *    (add  al, 127 ; sahf ; mov rax, gs:[SLOT_RAX])
 *
 * What a handler would see of flags does not matter here: nothing faults in replay
 * that is not in the log, with its registers.
 */
static void lower_stop(struct lowering *lowering, const struct block *block)
{
	struct emitter *emitter = lowering->emitter;
	bool keep = !flags_free_at(lowering, block);

	if (lowering->request->mode != TRANSLATE_REPLAY || lowering->request->exact)
		return;
	emit_record(emitter, block->pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	if (keep)
		emit_flags_to_rax(emitter);
	emit_jump_stop(emitter, block, keep);
	if (keep)
		emit_flags_from_rax(emitter);
}

/*
 * The way into a block with a lag for those who come from elsewhere:
 *
 *     take the lag off
 *     jmp  block
 */
static void lower_outer_entry(struct lowering *lowering, const struct block *block)
{
	struct emitter *emitter = lowering->emitter;

	emitter->in_instruction = false;
	emitter->executed = 0;
	if (!emit_entry(emitter, block->pc, false))
		return;
	emit_record(emitter, block->pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	choose_counter(lowering, block);
	lower_stop(lowering, block);
	lower_count(lowering, -(int32_t)block->lag, flags_free_at(lowering, block), block->pc);
	emitter->executed = block->lag;
	emit_record(emitter, block->pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	EMIT(emitter, 0xe9);
	emit_u32(emitter, 0);
	emit_rel32_to(emitter, emit_offset(emitter) - 4, block->offset);
}

/*
 * A block of replay is executed to its end: it stops before it, or an exact one is made. So its loads are
 * counted at its start.
 */
static void lower_loads(struct lowering *lowering, const struct block *block)
{
	struct emitter *emitter = lowering->emitter;
	int32_t counter = emitter->counter, loads = 0;

	if (!lowering->request->count_loads)
		return;
	for (uint32_t i = 0; i < block->count; i++)
		loads += region_at(lowering->region, block, i)->reads_memory;
	emit_record(emitter, block->pc, RECORD_BOUNDARY | RECORD_TRANSIT);
	emitter->counter = SLOT_LOADS;
	lower_count(lowering, loads, flags_free_at(lowering, block), block->pc);
	emitter->counter = counter;
}

/*
 * Does another block of the region than the one before lead here, or that one by a branch? Not only branches
 * do: where instructions overlap, two blocks go on with the same one behind them.
 */
static bool is_joined(const struct region *region, const struct block *block)
{
	for (uint32_t i = 0; i < region->block_count; i++) {
		const struct block *from = &region->blocks[i];
		const struct instruction *last = region_at(region, from, from->count - 1);

		if (last->kind >= KIND_JUMP && last->kind <= KIND_CALL && last->target == block->pc)
			return true;
		if (from + 1 != block && from->next == block->pc && instruction_falls_through(last))
			return true;
	}
	return false;
}

/*
 * Does control come here from the block before only, but for those who come from elsewhere? Then what is
 * known of flags and slots at its end still holds. Who comes from elsewhere does not know, and finds no
 * entry: the block is translated once more for him, with what comes behind it. There are few of them.
 */
static bool inherits(const struct lowering *lowering, const struct block *block, bool fallen_into)
{
	return lowering->request->mode == TRANSLATE_RECORD && fallen_into && block->lag &&
	       !lowering->request->self_check && !lowering->request->exact &&
	       !region_at(lowering->region, block, 0)->resumed && !is_joined(lowering->region, block);
}

static void lower_block(struct lowering *lowering, struct block *block, bool fallen_into)
{
	struct emitter *emitter = lowering->emitter;
	const struct instruction *first = region_at(lowering->region, block, 0);
	const struct instruction *last = region_at(lowering->region, block, block->count - 1);
	uint32_t thunk = 0, thunk_next = 0;

	if (first->resumed && !fallen_into) {
		/* Offset 0 would mean that there is no thunk. */
		if (!emit_offset(emitter))
			emit_breaks(emitter, 16);
		thunk_next = emit_thunk(emitter, block->pc, lowering->request->loop_is_fast, &thunk);
	}

	emitter->executed = block->lag;
	if (!block->lag) {
		struct entry *entry = emit_entry(emitter, block->pc, first->resumed);

		if (!entry)
			return;
		entry->thunk = thunk;
		entry->thunk_next = thunk_next;
		if (first->callee)
			entry->callee = (int64_t)(first->callee - emitter->pc);
	}
	block->offset = emit_offset(emitter);
	lowering->block = block;
	choose_counter(lowering, block);
	block->inherits = inherits(lowering, block, fallen_into);
	if (!block->inherits) {
		keep_enter(lowering);
		flags_enter(lowering);
	}
	if (lowering->request->self_check)
		lower_check(lowering, block);
	if (!block->lag)
		lower_stop(lowering, block);
	lower_loads(lowering, block);
	for (uint32_t i = 0; i < block->count; i++) {
		emitter->in_instruction = true;
		emitter->executed = (int32_t)(block->lag + i);
		emitter->instruction_pc = region_at(lowering->region, block, i)->pc;
		lowering->index = i;
		lower_instruction(lowering, region_at(lowering->region, block, i));
		keep_note(lowering, region_at(lowering->region, block, i));
		flags_note(lowering, region_at(lowering->region, block, i));
	}
	if (last->kind < KIND_JUMP) {
		keep_end(lowering, block->next);
		flags_settle(lowering, NULL, block->next);
		lower_continue(lowering, block->next);
	}
	emitter->in_instruction = false;
	emitter->executed = 0;
}

void lower_region(struct emitter *emitter, struct region *region, const struct translate_request *request)
{
	struct lowering lowering = {.emitter = emitter, .region = region, .request = request};
	uint64_t reached = 0; /* where control goes on from the block before */
	bool falls = false;

	for (uint32_t i = 0; i < region->block_count && !emitter->failed; i++) {
		struct block *block = &region->blocks[i];

		lowering.following = i + 1 < region->block_count ? block + 1 : NULL;
		lower_block(&lowering, block, falls && reached == block->pc);
		falls = instruction_falls_through(region_at(region, block, block->count - 1));
		reached = block->next;
	}
	for (uint32_t i = 0; i < region->block_count && !emitter->failed; i++) {
		if (region->blocks[i].lag && !region->blocks[i].inherits)
			lower_outer_entry(&lowering, &region->blocks[i]);
	}
	lower_detours(&lowering);
	link_inner(&lowering);
	shadow_misses(&lowering);
	emitter->in_instruction = false;
	emitter->executed = 0;
}
