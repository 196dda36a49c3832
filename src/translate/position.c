/* The plan of position.h. Edges to a higher pc lead forward; all others, and calls, end at a block without
 * lag. */
#include "translate/position.h"

#define LAG_MAXIMUM 200 /* so that what is not counted yet stays a small number */

struct edges {
	uint64_t pcs[2];
	unsigned count;
};

/* Where control may go from the block without leaving translated code, what follows it first. */
static struct edges edges_of(const struct region *region, const struct block *block)
{
	const struct instruction *last = region_at(region, block, block->count - 1);
	struct edges edges = {0};

	if (instruction_falls_through(last))
		edges.pcs[edges.count++] = block->next;
	if (last->kind == KIND_JUMP || last->kind == KIND_CONDITIONAL || last->kind == KIND_LOOP ||
	        last->kind == KIND_CALL)
		edges.pcs[edges.count++] = last->target;
	return edges;
}

const struct block *position_inner(const struct region *region, uint64_t pc)
{
	return region->exact ? NULL : region_block(region, pc);
}

int32_t position_difference(const struct region *region, const struct block *from, uint64_t pc)
{
	const struct block *to = position_inner(region, pc);

	return (int32_t)(from->lag + from->count) - (to ? to->lag : 0);
}

/* Blocks that may not have a lag: entered from behind or from elsewhere as a rule. */
static void find_heads(struct region *region)
{
	for (uint32_t i = 0; i < region->block_count; i++) {
		struct block *block = &region->blocks[i];
		struct edges edges = edges_of(region, block);

		block->head |=
		        block->pc == region->pc || region_at(region, block, 0)->resumed || region->self_check;
		for (unsigned k = 0; k < edges.count; k++) {
			struct block *to = region_block(region, edges.pcs[k]);

			if (to && (to->pc <= block->pc ||
			                  region_at(region, block, block->count - 1)->kind == KIND_CALL))
				to->head = true;
		}
	}
}

static void begin_plan(struct region *region)
{
	for (uint32_t i = 0; i < region->block_count; i++) {
		region->blocks[i].lag = 0;
		region->blocks[i].origin = i;
	}
}

/* The first edge that reaches a block decides; the one from the block before it comes last and wins. */
static void give_lags(struct region *region)
{
	for (uint32_t i = 0; i < region->block_count; i++) {
		struct block *block = &region->blocks[i];
		struct edges edges = edges_of(region, block);
		uint32_t lag = block->lag + block->count;

		for (unsigned k = 0; k < edges.count; k++) {
			struct block *to = region_block(region, edges.pcs[k]);

			if (!to || to->head || lag > LAG_MAXIMUM)
				continue;
			if (!to->lag || to == block + 1) {
				to->lag = (uint16_t)lag;
				to->origin = i;
			}
		}
	}
}

/* The block without lag that the block has its own from, or one that counts in the same slot. */
static uint32_t origin_of(const struct region *region, uint32_t i)
{
	while (region->blocks[i].origin != i)
		i = region->blocks[i].origin;
	return i;
}

/*
 * Replay looks at a counter where a block without lag is entered, so what is executed from
 * there on must be added to that one. Where control may come from two of them, both have the same.
 */
static void join_ways(struct region *region)
{
	for (uint32_t i = 0; i < region->block_count; i++) {
		struct edges edges = edges_of(region, &region->blocks[i]);

		for (unsigned k = 0; k < edges.count; k++) {
			const struct block *to = region_block(region, edges.pcs[k]);

			if (to && to->lag)
				region->blocks[origin_of(region, (uint32_t)(to - region->blocks))].origin =
				        origin_of(region, i);
		}
	}
}

/* Blocks without lag that come one after the other count in different slots. */
static void choose_counters(struct region *region, unsigned slots)
{
	uint32_t next = (uint32_t)(region->pc * 0x9e3779b97f4a7c15u >> 32);

	for (uint32_t i = 0; i < region->block_count; i++) {
		if (region->blocks[i].origin == i)
			region->blocks[i].counter = (uint8_t)(next++ % slots);
	}
	for (uint32_t i = 0; i < region->block_count; i++)
		region->blocks[i].counter = region->blocks[origin_of(region, i)].counter;
}

/* The most instructions from the start of the block on until control comes to a block without lag or leaves.
 */
static void find_longest(struct region *region)
{
	for (uint32_t i = region->block_count; i-- > 0;) {
		struct block *block = &region->blocks[i];
		struct edges edges = edges_of(region, block);
		uint32_t most = 0;

		for (unsigned k = 0; k < edges.count; k++) {
			const struct block *to = position_inner(region, edges.pcs[k]);

			if (to && to->lag && to->longest > most)
				most = to->longest;
		}
		block->longest = block->count + most;
	}
}

void position_plan(struct region *region, bool replay)
{
	find_heads(region);
	begin_plan(region);
	if (!region->exact)
		give_lags(region);
	if (replay)
		join_ways(region);
	choose_counters(region, replay ? REPLAY_POSITION_SLOTS : POSITION_SLOTS);
	find_longest(region);
}
