/*
 * The memory that a system call may have written: what its arguments lead to, as far as they are known.
 */
#ifndef BUGNET_DEBUG_CALL_WRITES_H
#define BUGNET_DEBUG_CALL_WRITES_H

#include <stdbool.h>
#include <stdint.h>

struct happening;

struct call_range {
	uint64_t address, size;
};
#define CALL_RANGES 6

/* Returns how many there are. `elsewhere`: it may have written to what its arguments lead on to, or nobody
 * knows what they are. */
unsigned call_ranges(const struct happening *call, struct call_range ranges[CALL_RANGES], bool *elsewhere);

bool call_range_overlaps(const struct call_range *range, uint64_t address, uint64_t size);

/* Is it likely to have written any of the bytes? */
bool call_may_write(const struct happening *call, uint64_t address, uint64_t size);

#endif
