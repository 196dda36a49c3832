/*
 * Memory that is still what it was at first: data of files, and zeros of mappings without one. No thread has
 * touched it, and no system call that was made can have.
 */
#ifndef BUGNET_DEBUG_UNTOUCHED_H
#define BUGNET_DEBUG_UNTOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/vector.h"

struct debugger;

enum kernel_deed {
	KERNEL_MAPPED_ZEROS,
	KERNEL_MAPPED,       /* something else, or nothing */
	KERNEL_WROTE,        /* or may have */
	KERNEL_WROTE_STACKS, /* or may have, wherever they are in mappings of zeros */
};

/* Of a range, which may be everything. */
struct kernel_did {
	enum kernel_deed what;
	uint32_t thread; /* index */
	uint64_t position, time;
	uint64_t start, end;
};

struct untouched {
	bool prepared, usable;
	VECTOR(struct kernel_did) deeds; /* in the order of time */
};

/* Completes what is known: provided that of what is not known no thread has touched anything. */
void untouched_read(struct debugger *debugger, uint64_t address, uint8_t *to, uint8_t *known, size_t size);
void untouched_deinit(struct untouched *untouched);

#endif
