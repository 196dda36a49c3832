/*
 * A recording, opened to be replayed: what is in the file and the files that its code
 * came from. Nothing in here changes once it is open, so that several sessions can share it.
 */
#ifndef BUGNET_REPLAY_RECORDED_H
#define BUGNET_REPLAY_RECORDED_H

#include "recording/meta.h"
#include "replay/code_files.h"
#include "replay/timeline.h"
#include "target/layout.h"

/* The end of a thread that is in the file and cannot be read. */
struct lost_end {
	uint32_t thread;
	uint64_t first, last; /* positions */
	char why[128];
};

struct recorded {
	struct reader reader;
	struct meta meta;
	struct codelog codelog;
	struct code_history history;
	struct code_files files;
	struct timeline timeline;
	struct segment_layout segments[MAX_SEGMENTS];
	unsigned segment_count;
	char warning[256]; /* why there is no more of it than there is, or "" */
	struct lost_end *lost;
	size_t lost_count;
};

/* False: `why` tells. Either way recorded_close is called in the end. */
bool recorded_open(struct recorded *recorded, const char *path, const char *sysroot, const char *binary,
        char *why, size_t why_size);
void recorded_close(struct recorded *recorded);

bool recorded_has_thread(const struct recorded *recorded, uint32_t id);

/* For who can do with less: each thread ends where what can be read of it ends, as in a file that was cut off
 * there, and `lost` has the rest. A thread of which nothing can be read stays as it is. To be called before
 * anybody else uses it. False: out of memory. */
bool recorded_leave_lost_ends(struct recorded *recorded);
/* NULL: its end is not lost. */
const struct lost_end *recorded_lost_end(const struct recorded *recorded, uint32_t thread);

#endif
