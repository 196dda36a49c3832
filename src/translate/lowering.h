/* What the files that lower instructions share: lower.c, and shadow.c for recording. */
#ifndef BUGNET_TRANSLATE_LOWERING_H
#define BUGNET_TRANSLATE_LOWERING_H

#include "translate/lower.h"

/* A compare with the shadow that may fail, see shadow.c. */
struct miss {
	const struct instruction *instruction;
	uint32_t start, left; /* as in struct lowering */
	uint32_t state;       /* RECORD_*: what is borrowed when it fails */
	uint32_t fields[4];   /* the rel32s that lead to it */
	unsigned field_count;
};

struct lowering {
	struct emitter *emitter;
	struct region *region;
	const struct translate_request *request;
	const struct block *following; /* the block that is emitted next, or NULL */
	uint32_t start;                /* where the code of the current instruction begins */
	uint32_t left;                 /* instructions of the block from the current one on */
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

/* ---- shadow.c: with the shadow kept up to date ---- */
/* An instruction with an access_kind. */
void shadow_access(struct lowering *lowering, const struct instruction *instruction);
void shadow_call(struct lowering *lowering, const struct instruction *instruction);
void shadow_indirect(struct lowering *lowering, const struct instruction *instruction);
void shadow_return(struct lowering *lowering, const struct instruction *instruction);
/* Behind the last block: the code for compares that failed. */
void shadow_misses(struct lowering *lowering);

#endif
