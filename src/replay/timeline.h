/* The stretches of a recording, thread by thread, in the order of their numbers. */
#ifndef BUGNET_REPLAY_TIMELINE_H
#define BUGNET_REPLAY_TIMELINE_H

#include "recording/reader.h"
#include "recording/stretch.h"

struct timeline {
	const struct section **stretches;
	size_t count;
	uint32_t threads;
};

/* False: out of memory. The reader must live as long as the timeline. */
bool timeline_read(struct timeline *timeline, const struct reader *reader);
void timeline_deinit(struct timeline *timeline);

/* Does the stretch follow the one before it in the list without a gap? */
static inline bool timeline_continues(const struct timeline *timeline, size_t i)
{
	return i > 0 && i < timeline->count &&
	       timeline->stretches[i]->id == timeline->stretches[i - 1]->id + 1 &&
	       stretch_thread(timeline->stretches[i]) == stretch_thread(timeline->stretches[i - 1]);
}

/* The first stretch of the next thread. */
size_t timeline_next_thread(const struct timeline *timeline, size_t i);

#endif
