/*
 * The process in which a recording is replayed: a new one with nothing in it but our
 * segments, where they were in the recorded program, so that they are out of the way of
 * everything that the program had.
 */
#ifndef BUGNET_REPLAY_TARGET_H
#define BUGNET_REPLAY_TARGET_H

#include <sys/types.h>

#include "record/memory.h"
#include "record/space.h"
#include "recording/meta.h"
#include "target/feed.h"

struct target {
	pid_t pid;
	struct memory memory;
	struct space *space;
	struct mailbox *mailbox;
	struct channel *channel;
	struct feed *feed;
	const uint64_t *slots;             /* of the thread */
	const struct registers *registers; /* its registers, while it waits for an answer */
};

/* The recorded segments of META, laid out for replay; returns how many, or 0 after saying why. */
unsigned target_segments(
        const struct meta *meta, struct segment_layout layouts[MAX_SEGMENTS], char *why, size_t why_size);

/* Makes the process. It starts by reading the feed's first buffer, once target_run lets it go. */
bool target_create(struct target *target, const struct memory_source *source,
        const struct segment_layout *layouts, unsigned count, char *why, size_t why_size);
bool target_run(struct target *target, char *why, size_t why_size);
void target_destroy(struct target *target);

/* Has it ended? *status is as waitpid gives it. */
bool target_has_ended(struct target *target, int *status);

#endif
