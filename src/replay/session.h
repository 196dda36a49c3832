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

/* Whoever has a copy run on without the log answers for the world: see target/divert.c. */
struct session_diversion {
	void *context;
	/* Does it stop before the instruction at this pc, which is probed? */
	bool (*stops)(void *context, uint64_t pc);
	/* What is known of a line of memory: a bit for each byte. *blank: see feed.h. */
	uint64_t (*read_line)(
	        void *context, uint64_t address, uint8_t bytes[EVENT_LINE_BYTES], uint64_t *blank);
	/* A system call of the process; false: it cannot be made. */
	bool (*call)(void *context, pid_t pid, const struct registers *registers, uint64_t *result);
};

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
	/* for an explorer (explorer.h), which holds threads and parks processes */
	bool explores;
	bool held;
	uint64_t park;                             /* number + 1 of where the process parks when it is held */
	const struct session_diversion *diversion; /* or NULL */
};

void session_init(struct session *session, const struct replay_options *options,
        const struct recorded *recorded, struct schedule *schedule, uint64_t *instructions);
/* Replays until the schedule has no more. */
void session_run(struct session *session);
void session_deinit(struct session *session);

/* The parts of session_run, for an explorer: from the start, or from where it was held, until it is held. */
bool session_open(struct session *session);
void session_serve(struct session *session);
/* The thread, which is held. */
void session_state(const struct session *session, struct state *state);
/* So many pieces of the code history are in force. Nobody may be in the code. */
void session_set_code(struct session *session, uint32_t pieces);

#endif
