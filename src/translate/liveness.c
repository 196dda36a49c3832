/*
 * The dataflow of liveness.h: live_in = use | (live_out & ~kill), over whole
 * blocks until nothing changes, then once through the instructions of each.
 * Blocks are visited from the last to the first, so straight code needs one
 * round and a loop nest about one more for each level.
 */
#include "translate/liveness.h"

static live_set live_beyond(const struct region *region, uint64_t pc)
{
	uint32_t live = map_find(&region->beyond, pc);

	return live == MAP_NONE ? LIVE_ALL : live;
}

live_set liveness_at(const struct region *region, uint64_t pc)
{
	const struct block *block = region_block(region, pc);

	return block ? block->live_in : live_beyond(region, pc);
}

static live_set live_at_end(const struct region *region, const struct block *block)
{
	const struct instruction *last = region_at(region, block, block->count - 1);

	switch (last->kind) {
	case KIND_JUMP:
		return liveness_at(region, last->target);
	case KIND_CALL:
		/* Only for flags is it looked at what the callee does. */
		return last->use == LIVE_ALL ? LIVE_ALL
		                             : liveness_at(region, last->target) | LIVE_REGISTERS_ALL;
	case KIND_CONDITIONAL:
	case KIND_LOOP:
		return liveness_at(region, last->target) | liveness_at(region, block->next);
	default:
		return instruction_falls_through(last) ? liveness_at(region, block->next) : LIVE_ALL;
	}
}

static void summarise(const struct region *region, struct block *block)
{
	block->use = 0;
	block->kill = 0;
	for (uint32_t i = block->count; i-- > 0;) {
		const struct instruction *instruction = region_at(region, block, i);

		block->use = instruction->use | (block->use & ~instruction->kill);
		block->kill |= instruction->kill;
	}
	block->live_in = block->use;
}

void liveness_compute(struct region *region)
{
	bool changed = true;

	for (uint32_t i = 0; i < region->block_count; i++)
		summarise(region, &region->blocks[i]);
	while (changed) {
		changed = false;
		for (uint32_t i = region->block_count; i-- > 0;) {
			struct block *block = &region->blocks[i];

			block->live_out = live_at_end(region, block);

			live_set in = block->use | (block->live_out & ~block->kill);

			changed |= in != block->live_in;
			block->live_in = in;
		}
	}
	for (uint32_t i = 0; i < region->block_count; i++) {
		live_set live = region->blocks[i].live_out;

		for (uint32_t k = region->blocks[i].count; k-- > 0;) {
			struct instruction *instruction = region_at(region, &region->blocks[i], k);

			instruction->live_after = live;
			live = liveness_before(instruction);
		}
	}
}
