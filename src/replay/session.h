/*
 * One process in which stretches of a recording are replayed, one after the other, and what
 * serves it: code and the feed. Everything that recording left to compare with is compared.
 *
 * A session belongs to the thread that runs it: the process has that thread as its parent.
 * Several sessions share a recording and a schedule.
 */
#ifndef BUGNET_REPLAY_SESSION_H
#define BUGNET_REPLAY_SESSION_H

#include <stdio.h>

#include "replay/feeder.h"
#include "replay/recorded.h"
#include "replay/replayer.h"
#include "replay/schedule.h"
#include "replay/target.h"

struct session {
	const struct replay_options *options;
	const struct recorded *recorded;
	struct schedule *schedule;
	uint64_t *instructions; /* for each stretch, those that were replayed */
	/* what it came to */
	bool started; /* else it could do nothing, and has taken nothing from the schedule */
	enum replay_outcome outcome;
	size_t stretch; /* the one in which it ended, or SIZE_MAX: all is as recorded */
	uint64_t keyframes, skipped, cut, loads;
	bool approximates; /* see struct replay_result */
	struct feed_counts counts;
	char message[sizeof((struct replay_result *)0)->message];
	char *states; /* text: both states where they differ, or NULL */
	size_t states_size;
	/* its own */
	struct reader reader; /* the recording's, with errors of its own */
	struct code_source *source;
	struct memory_source code;
	struct target target;
	struct feeder feeder;
	unsigned buffer; /* the one that the stub gets next */
	bool filled;     /* it is ready */
	bool done;
	uint32_t thread; /* the one that is being replayed */
	size_t current;  /* its stretch, as far as known */
};

void session_init(struct session *session, const struct replay_options *options,
        const struct recorded *recorded, struct schedule *schedule, uint64_t *instructions);
/* Replays until the schedule has no more. */
void session_run(struct session *session);
void session_deinit(struct session *session);

#endif
