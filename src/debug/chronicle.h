/*
 * What the logs say of system calls, signals and ends, without replaying anything: where they
 * are, and how the system calls of all threads were ordered. A stretch is read when it is asked for.
 */
#ifndef BUGNET_DEBUG_CHRONICLE_H
#define BUGNET_DEBUG_CHRONICLE_H

#include "record/vector.h"
#include "recording/thread.h"
#include "replay/explorer.h"
#include "replay/recorded.h"

enum happening_kind {
	HAPPENED_CALL,
	HAPPENED_SIGNAL,
	HAPPENED_END,
	HAPPENED_CUT,   /* the log just stops */
	HAPPENED_ORDER, /* an operation whose stamp the log tells: a locked instruction, or what comes next at
	                   this position */
};

struct happening {
	enum happening_kind kind;
	uint64_t position;
	uint64_t time;       /* before it, and */
	uint64_t time_after; /* behind it: see chronicle_time */
	int64_t number;      /* of the call, of the signal, status of the end */
	int64_t result;      /* of the call */
	int32_t code;        /* of the signal, as in siginfo */
	uint64_t details[EVENT_SIGNAL_DETAILS];
	enum event_end_kind end;
	uint64_t pc; /* call: behind it */
	uint64_t arguments[6];
	uint64_t stack; /* signal: of the handler, where the frame is */
};

struct chronicle_thread {
	uint32_t id;
	bool has_record;
	struct thread_record record;
	size_t first, end; /* stretches in the timeline */
};

struct chronicle {
	const struct recorded *recorded;
	struct reader reader;
	struct chronicle_thread *threads;
	uint32_t thread_count;
	struct chronicle_stretch *stretches; /* as in the timeline */
};

void chronicle_open(struct chronicle *chronicle, const struct recorded *recorded);
void chronicle_close(struct chronicle *chronicle);

/* Of several threads with the same id there is one. NULL: there is none. */
const struct chronicle_thread *chronicle_thread(const struct chronicle *chronicle, uint32_t id);

/* The first that comes at or behind the position, and the last one before it; NULL: none. */
const struct happening *chronicle_next(struct chronicle *chronicle, uint32_t thread, uint64_t position);
const struct happening *chronicle_previous(struct chronicle *chronicle, uint32_t thread, uint64_t position);
/* Behind that one. */
const struct happening *chronicle_following(
        struct chronicle *chronicle, uint32_t thread, const struct happening *happening);

/* Signals that are delivered before the instruction at the position; the first of them, or NULL. */
uint32_t chronicle_signals(
        struct chronicle *chronicle, uint32_t thread, uint64_t position, const struct happening **first);

/* When the stretch, by its number in the timeline, began: monotonic, ns; 0: its log does not tell. */
uint64_t chronicle_keyframe_time(struct chronicle *chronicle, size_t stretch);

/* Where the thread begins and ends. */
uint64_t chronicle_first(const struct chronicle *chronicle, uint32_t thread);
const struct happening *chronicle_end(struct chronicle *chronicle, uint32_t thread);

/*
 * Locked instructions are in the log only where their stamps are not the next numbers. Whoever counts the
 * others notes them here, all of a thread's in their order, and then has them stamped; without that, time
 * stands still between what the log tells.
 */
void chronicle_note_operation(struct chronicle *chronicle, uint32_t thread, uint64_t position);
void chronicle_stamp_operations(struct chronicle *chronicle, bool all_noted); /* else they are forgotten */

/*
 * The time at a place: what its last system call, signal or locked instruction was stamped with. Time is the
 * same for all threads, but only what was stamped is ordered by it.
 */
uint64_t chronicle_time(struct chronicle *chronicle, uint32_t thread, struct place place);
/* Where another thread is then: before the first thing that is stamped with a later time. */
struct place chronicle_at(struct chronicle *chronicle, uint32_t thread, uint64_t time);
#define CHRONICLE_ALWAYS UINT64_MAX

#endif
