/*
 * Code that was translated has its own use for flags that the program does not read any more
 * before it writes them, and recording and replay use others. So where a state is compared,
 * that much of it means nothing.
 *
 * The region looked at here is larger than any that is translated: what is known to be
 * dead there is known here.
 */
#include "replay/live.h"

#include "translate/liveness.h"
#include "translate/operand.h"

#define LOOK_AHEAD 4096

static uint64_t dead_flags(live_set live)
{
	static const struct {
		unsigned flag;
		uint64_t bit;
	} flags[] = {{FLAG_CF, 0x1}, {FLAG_PF, 0x4}, {FLAG_AF, 0x10}, {FLAG_ZF, 0x40}, {FLAG_SF, 0x80},
	        {FLAG_OF, 0x800}};
	uint64_t dead = 0;

	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (!(live & LIVE_FLAGS(flags[i].flag)))
			dead |= flags[i].bit;
	}
	return dead;
}

/*
 * A load is checked when it is done, and done again when the check fails: what it
 * overwrites may be in place before it is executed.
 */
static void forgive_load(struct live *live, const struct instruction *instruction)
{
	bool rex = instruction->encoding.has_rex;
	unsigned reg = operand_loaded(instruction);

	if (instruction->access == ACCESS_POP) {
		for (unsigned i = 0; i < REGISTER_COUNT; i++) {
			if (instruction->kill & LIVE_REGISTER(i))
				live->registers[i] = 0;
		}
		return;
	}
	if (instruction->access != ACCESS_LOAD)
		return;
	if (instruction->width > 2)
		live->registers[reg] = 0;
	else if (instruction->width == 2)
		live->registers[reg] &= ~0xfffful;
	else if (rex || reg < 4)
		live->registers[reg] &= ~0xfful;
	else
		live->registers[reg & 3] &= ~0xff00ul;
}

static void forgive_first(struct live *live, const struct memory_source *code, uint64_t pc)
{
	uint8_t bytes[INSTRUCTION_BYTES_MAX];
	struct instruction instruction;
	size_t size = code->read(code->context, pc, bytes, sizeof bytes);

	decode_instruction(&instruction, pc, bytes, (unsigned)size, TRANSLATE_RECORD);
	forgive_load(live, &instruction);
}

struct live live_at(const struct memory_source *code, uint64_t pc)
{
	struct translate_request request = {.pc = pc,
	        .read = code->read,
	        .context = code->context,
	        .max_instructions = LOOK_AHEAD,
	        .mode = TRANSLATE_REPLAY,
	        .wide_vectors = true};
	live_set in = LIVE_ALL;
	struct live live;
	struct region region;

	if (region_discover(&region, &request) == 0) {
		liveness_compute(&region);
		const struct block *block = region_block(&region, pc);
		if (block)
			in = block->live_in;
		region_deinit(&region);
	}
	for (unsigned i = 0; i < REGISTER_COUNT; i++)
		live.registers[i] = UINT64_MAX;
	live.dead_flags = dead_flags(in);
	forgive_first(&live, code, pc);
	return live;
}
