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
};

/* False: `why` tells. Either way recorded_close is called in the end. */
bool recorded_open(struct recorded *recorded, const char *path, const char *sysroot, const char *binary,
        char *why, size_t why_size);
void recorded_close(struct recorded *recorded);

bool recorded_has_thread(const struct recorded *recorded, uint32_t id);

#endif
