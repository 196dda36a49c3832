/* What the stub counts while it replays; `bugnet replay --stats` prints it. */
#ifndef BUGNET_TARGET_FEED_COUNTS_H
#define BUGNET_TARGET_FEED_COUNTS_H

#include <stdint.h>

/* How often the thread came to the stub, and what for. */
struct feed_counts {
	uint64_t records;       /* that were applied */
	uint64_t shares;        /* a counter had used up its share, see feed.h */
	uint64_t steps;         /* blocks, and parts of them, that were executed by themselves */
	uint64_t requests;      /* for code */
	uint64_t step_requests; /* for the code of a step */
	uint64_t faults;        /* memory that was touched for the first time */
};

#endif
