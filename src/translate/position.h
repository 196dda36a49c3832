/*
 * Where instructions are counted. The region's counter is brought up to date only where it
 * must be: on the edges between blocks along which a static number does not do.
 *
 * Every block has a lag: so many instructions were executed when control enters it
 * from another block of the region, and are not in the counter yet. On an edge from
 * one block to the next nothing is added as long as the lag of the next one is the
 * lag and the length of the first. Where control leaves the region, the slot is exact;
 * where it enters, at a block with a lag, the lag is taken off first.
 *
 * A block without lag counts in a slot of its own choice, and those with a lag go on with the slot
 * of the block that they have it from. The sum of all slots is what counts. In replay blocks without lag
 * whose ways meet have the same one.
 *
 * Along straight code, and along the branches of a loop's body that fall through, that
 * is no work at all; around a loop it is one addition. (An addition for each block was
 * a chain of loads and stores through one word of memory, for which interpreters wait.)
 */
#ifndef BUGNET_TRANSLATE_POSITION_H
#define BUGNET_TRANSLATE_POSITION_H

#include "translate/decode.h"

/* Fills in lag, longest and counter of every block. With `exact` no edge leads to another block. */
void position_plan(struct region *region, bool replay);

/* The block that an edge to pc leads to without leaving the region, or NULL. */
const struct block *position_inner(const struct region *region, uint64_t pc);

/* What is to be added on the edge from the end of the block to pc, inner or not. */
int32_t position_difference(const struct region *region, const struct block *from, uint64_t pc);

#endif
