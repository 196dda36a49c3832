/*
 * What recording may cost: memory, and times that the program becomes slower. From the first follow the sizes
 * of ring and code cache, and keyframes when the shadow has become too large; from the second how far
 * keyframes are apart, and, where that does not help, that the program is let go.
 */
#ifndef BUGNET_RECORD_BUDGET_H
#define BUGNET_RECORD_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "record/slowdown.h"

#define BUDGET_LEAST_MEMORY (UINT64_C(32) << 20)

/* What a budget of memory is for. The rest is for shadows, what waits for the ring, and the supervisor
 * itself. */
struct budget_shares {
	uint64_t ring, cache;
};
struct budget_shares budget_share(uint64_t memory);

/* Of one process. All zero but for `most_slowdown` and `most_memory` to begin with; 0: no limit. */
struct budget {
	double most_slowdown;
	uint64_t most_memory;

	double cycle;
	bool begun;
	struct usage since;
	double slowdown;     /* as last estimated; 0: not yet */
	unsigned lengthened; /* intervals are 2 to this times as long as they were */
	uint64_t over_since; /* intervals cannot be longer, and it is too slow since then; 0: it is not */

	uint64_t memory;   /* as last measured; 0: not yet */
	uint64_t asked_at; /* when keyframes were last asked for because of it */
	bool told;         /* that it cannot be kept */
};

enum budget_advice {
	BUDGET_FINE,
	BUDGET_INTERVAL, /* `lengthened` has changed */
	BUDGET_LEAVE,    /* let the program go */
};

/* Is it time for budget_pace? */
bool budget_due(const struct budget *budget, uint64_t now);
enum budget_advice budget_pace(struct budget *budget, const struct usage *usage);

enum budget_memory_advice {
	BUDGET_KEPT,
	BUDGET_KEYFRAMES, /* ask for keyframes: they empty the shadows */
	BUDGET_EXCEEDED,  /* the same, but that alone does not help: say so, once */
};

/* Bytes that are in use, for everything and for shadows alone. */
enum budget_memory_advice budget_hold(struct budget *budget, uint64_t now, uint64_t all, uint64_t shadows);

#endif
