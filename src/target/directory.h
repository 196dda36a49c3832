/* Looking up where a code-cache address came from: the stub does, and the supervisor. */
#ifndef BUGNET_TARGET_DIRECTORY_H
#define BUGNET_TARGET_DIRECTORY_H

#include "target/layout.h"

/*
 * The record that covers an offset into a segment's code, or NULL. Translations
 * are placed one after the other and never move, so the directory is sorted by
 * offset, and so are the records of each translation.
 */
static inline const struct placed_record *directory_find(const struct code_range *ranges, uint64_t count,
        const struct placed_record *records, uint64_t code, const struct code_range **found)
{
	uint64_t low = 0, high = count;

	while (low < high) { /* the last range that starts at or before code */
		uint64_t middle = (low + high) / 2;
		if (ranges[middle].code <= code)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	const struct code_range *range = &ranges[low - 1];
	if (code - range->code >= range->size)
		return 0;
	records += range->record;
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
	*found = range;
	return low == 0 ? 0 : &records[low - 1];
}

/* Is exactly this offset a place where the whole program state is in its registers? */
static inline bool directory_boundary(
        const struct code_range *range, const struct placed_record *record, uint64_t code)
{
	return (record->state & RECORD_BOUNDARY) && range->code + record->offset == code;
}

#endif
