/* What the files that lower instructions share: lower.c, and shadow.c for recording. */
#ifndef BUGNET_TRANSLATE_LOWERING_H
#define BUGNET_TRANSLATE_LOWERING_H

#include "translate/lower.h"

/* A compare with the shadow that may fail, see shadow.c. */
struct miss {
	const struct instruction *instruction;
	const struct instruction *again;  /* what is executed again: this one, or the one right before it */
	uint32_t start;                   /* of that, as in struct lowering */
	int32_t executed;                 /* as in struct record, before that */
	uint32_t state;                   /* RECORD_*: what is borrowed when it fails */
	const struct instruction *repeat; /* what has the flags once more, or NULL */
	uint32_t fields[8];               /* the rel32s that lead to it */
	unsigned field_count;
};

/* A conditional branch on whose way something is counted; the code for that comes behind the last block. */
struct detour {
	const struct block *from;
	uint64_t target;
	uint32_t field; /* the rel32 that leads to it */
};

/* A branch to a block with a lag: it leads to no other place, ever, so it is no site. */
struct inner_branch {
	const struct block *to;
	uint32_t field;
};

struct lowering {
	struct emitter *emitter;
	struct region *region;
	const struct translate_request *request;
	const struct block *following; /* the block that is emitted next, or NULL */
	uint32_t start;                /* where the code of the current instruction begins */
	const struct block *block;     /* the current one */
	uint32_t index;                /* of the current instruction in it */
	unsigned taken;                /* registers that it has from keep_register() */
	uint16_t clean;                /* registers whose slot for that has what the program has in them */
	bool flags_in_slot;            /* the program's status flags are in SLOT_FLAGS, see flags.h */
	/* What has set the flags that are in place, if it can be repeated; and it will be, behind this
	 * compare */
	const struct instruction *setter;
	uint32_t setter_start;
	bool repeating;
	struct detour *detours;
	uint32_t detour_count, detour_capacity;
	struct inner_branch *inner;
	uint32_t inner_count, inner_capacity;
	struct miss *misses;
	uint32_t miss_count, miss_capacity;
	struct miss spare; /* for when there is no memory for more */
};

static inline uint32_t in_a(uint8_t reg)
{
	return RECORD_SCRATCH_A | (uint32_t)reg << 8;
}

static inline uint32_t in_b(uint8_t reg)
{
	return RECORD_SCRATCH_B | (uint32_t)reg << 12;
}

static inline uint32_t biased(uint8_t reg)
{
	return RECORD_BIASED | (uint32_t)reg << 8;
}

static inline uint64_t next_pc(const struct instruction *instruction)
{
	return instruction->pc + instruction->length;
}

/* ---- lower.c ---- */
/*
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  gs:[SLOT_R11], r11
 */
void lower_probe_spills(struct lowering *lowering, const struct instruction *instruction);
/* rcx = the operand's full address, segment base included, with the program's rcx in its slot. */
void lower_address(struct lowering *lowering, const struct instruction *instruction);
/* The current block is left at its end, for good, with a register that is free: the slot is exact afterwards.
 */
void lower_count_by(struct lowering *lowering, uint8_t reg);
/* The same with flags that may be overwritten. */
void lower_count_freely(struct lowering *lowering);
/* May flags be overwritten on the way to pc? */
bool lower_flags_free(const struct lowering *lowering, uint64_t pc);

/* ---- trace.c ---- */
/* In front of an instruction: tells of what it is about to do to memory. */
void trace_instruction(struct lowering *lowering, const struct instruction *instruction);

/* ---- shadow.c: with the shadow kept up to date ---- */
/* An instruction with an access_kind. */
void shadow_access(struct lowering *lowering, const struct instruction *instruction);
void shadow_call(struct lowering *lowering, const struct instruction *instruction);
void shadow_indirect(struct lowering *lowering, const struct instruction *instruction);
void shadow_return(struct lowering *lowering, const struct instruction *instruction);
/* Is the shadow of its operand reached by the operand itself, with a prefix? */
bool shadow_is_direct(const struct lowering *lowering, const struct instruction *instruction);
/* Such an instruction, on the shadow. */
void shadow_execute(struct lowering *lowering, const struct instruction *instruction);
/* Behind the last block: the code for compares that failed. */
void shadow_misses(struct lowering *lowering);

#endif
