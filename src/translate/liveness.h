/*
 * Liveness: what the program may still read, so that our own code may overwrite
 * the rest. Backward dataflow over the blocks of one region; everything is live
 * where control leaves it, except for flags that are known not to be (region.beyond).
 *
 * Three groups of bits in one live_set:
 *
 *   registers   all 64 bits of each general register
 *   flags       CF PF AF ZF SF OF
 *   shown flags the same six, where besides reads also anything that may fault
 *               counts as a use: a signal handler sees the flags at a fault.
 *               Code of ours that leaves flags wrong at a place where the
 *               program can be stopped by its own doing asks for these.
 */
#ifndef BUGNET_TRANSLATE_LIVENESS_H
#define BUGNET_TRANSLATE_LIVENESS_H

#include "translate/decode.h"

enum {
	FLAG_CF = 1 << 0,
	FLAG_PF = 1 << 1,
	FLAG_AF = 1 << 2,
	FLAG_ZF = 1 << 3,
	FLAG_SF = 1 << 4,
	FLAG_OF = 1 << 5,
	FLAGS_ALL = 0x3f,
};

#define LIVE_REGISTER(number) ((live_set)1 << (number))
#define LIVE_REGISTERS_ALL    ((live_set)0xffff)
#define LIVE_FLAGS(flags)     ((live_set)(flags) << 16)
#define LIVE_SHOWN(flags)     ((live_set)(flags) << 24)
#define LIVE_ALL              (LIVE_REGISTERS_ALL | LIVE_FLAGS(FLAGS_ALL) | LIVE_SHOWN(FLAGS_ALL))

/* Fills in live_in and live_out of every block and live_after of every instruction. */
void liveness_compute(struct region *region);

/* What is live where control comes to pc. */
live_set liveness_at(const struct region *region, uint64_t pc);

/* May our code overwrite the status flags at the start of the block, unnoticed even by a handler of a fault?
 */
static inline bool liveness_flags_dead_at_entry(const struct block *block)
{
	return !(block->live_in & LIVE_SHOWN(FLAGS_ALL));
}

/* The same where only the program's own instructions count. */
static inline bool liveness_flags_unread_at_entry(const struct block *block)
{
	return !(block->live_in & LIVE_FLAGS(FLAGS_ALL));
}

/* Will the program read no status flag as it is right after this instruction? */
static inline bool liveness_flags_dead_after(const struct instruction *instruction)
{
	return !(instruction->live_after & LIVE_FLAGS(FLAGS_ALL));
}

/* The same, and no instruction that may fault comes before they are all overwritten. */
static inline bool liveness_flags_unseen_after(const struct instruction *instruction)
{
	return !(instruction->live_after & LIVE_SHOWN(FLAGS_ALL));
}

/* Before the instruction: for code of ours that is placed in front of it. */
static inline live_set liveness_before(const struct instruction *instruction)
{
	return instruction->use | (instruction->live_after & ~instruction->kill);
}

static inline bool liveness_flags_dead_before(const struct instruction *instruction)
{
	return !(liveness_before(instruction) & LIVE_FLAGS(FLAGS_ALL));
}

/* General registers, as a set of bits, whose value the program does not read any more. */
static inline uint16_t liveness_registers_dead_after(const struct instruction *instruction)
{
	return ~instruction->live_after & LIVE_REGISTERS_ALL;
}

static inline uint16_t liveness_registers_dead_before(const struct instruction *instruction)
{
	return ~liveness_before(instruction) & LIVE_REGISTERS_ALL;
}

#endif
