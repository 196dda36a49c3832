/*
 * From a code-cache address back to the program. Translations are placed one
 * after the other and never move, so the directory is sorted by address and a
 * reader needs no lock: the supervisor publishes the count last.
 */
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
	uint64_t low = 0, high = __atomic_load_n(&segment_info->directory_count, __ATOMIC_ACQUIRE);

	while (low < high) { /* the last range that starts at or before code */
		uint64_t middle = (low + high) / 2;
		if (ranges[middle].code <= code)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	const struct code_range *range = &ranges[low - 1];
	if (code - range->code >= range->size)
		return false;

	const struct placed_record *records =
	        (const struct placed_record *)(segment->base + segment->records) + range->record;
	uint64_t offset = code - range->code;
	low = 0;
	high = range->record_count;
	while (low < high) {
		uint64_t middle = (low + high) / 2;
		if (records[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	const struct placed_record *record = &records[low - 1];
	place->pc = range->pc + record->pc;
	place->state = record->state;
	place->boundary = (record->state & RECORD_BOUNDARY) && record->offset == offset;
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
