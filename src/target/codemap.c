/*
 * From a code-cache address back to the program. A reader needs no lock: the
 * supervisor publishes the directory's count last.
 */
#include "target/directory.h"
#include "target/stub.h"

static const struct segment_layout *segment_of(uint64_t address)
{
	struct process *p = process();

	for (uint32_t i = 0; i < p->segment_count; i++) {
		const struct segment_layout *segment = &p->segments[i];
		if (address - (segment->base + segment->code) < segment->code_size)
			return segment;
	}
	return NULL;
}

bool in_code(uint64_t address)
{
	return segment_of(address) != NULL;
}

bool code_lookup(uint64_t address, struct code_place *place)
{
	const struct segment_layout *segment = segment_of(address);
	if (!segment)
		return false;

	const struct info *segment_info = (const struct info *)(segment->base + LAYOUT_INFO);
	const struct code_range *ranges = (const struct code_range *)(segment->base + segment->directory);
	uint64_t code = address - segment->base - segment->code;
	const struct placed_record *records =
	        (const struct placed_record *)(segment->base + segment->records);
	const struct code_range *range;
	const struct placed_record *record = directory_find(ranges,
	        __atomic_load_n(&segment_info->directory_count, __ATOMIC_ACQUIRE), records, code, &range);

	if (!record)
		return false;
	place->pc = range->pc + record->pc;
	place->state = record->state;
	place->executed = record->executed;
	place->boundary = directory_boundary(range, record, code);
	place->slots = segment->base + LAYOUT_THREADS;
	return true;
}

bool program_pc_of(uint64_t address, uint64_t *pc)
{
	struct code_place place;

	if (!code_lookup(address, &place))
		return false;
	*pc = place.pc;
	return true;
}
