/*
 * Code that was translated has its own use for flags and registers that the program does
 * not read any more before it writes them, and recording and replay use others. So where
 * a state is compared, that much of it means nothing.
 *
 * The region looked at here is larger than any that is translated: what is known to be
 * dead there is known here.
 */
#include "replay/live.h"

#include "translate/liveness.h"

#define LOOK_AHEAD 4096

static uint64_t dead_flags(live_set live)
{
	static const struct {
		unsigned flag;
		uint64_t bit;
	} flags[] = {
	        {FLAG_CF, 0x1}, {FLAG_PF, 0x4}, {FLAG_AF, 0x10}, {FLAG_ZF, 0x40}, {FLAG_SF, 0x80}, {FLAG_OF, 0x800}};
	uint64_t dead = 0;

	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (!(live & LIVE_FLAGS(flags[i].flag)))
			dead |= flags[i].bit;
	}
	return dead;
}

struct live live_at(const struct memory_source *code, uint64_t pc)
{
	struct translate_request request = {.pc = pc,
	        .read = code->read,
	        .context = code->context,
	        .max_instructions = LOOK_AHEAD,
	        .mode = TRANSLATE_REPLAY};
	struct live live = {LIVE_REGISTERS_ALL, 0};
	struct region region;

	if (region_discover(&region, &request))
		return live;
	liveness_compute(&region);
	const struct block *block = region_block(&region, pc);
	if (block)
		live = (struct live){
		        .registers = (uint16_t)(block->live_in & LIVE_REGISTERS_ALL),
		        .dead_flags = dead_flags(block->live_in),
		};
	region_deinit(&region);
	return live;
}
