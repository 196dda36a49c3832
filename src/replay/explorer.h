/*
 * Brings threads of a recording to any place, and lets one look at them there.
 *
 * Where a thread was brought to, a process stays: parked, with the thread's memory as it is there. To
 * go on, it makes a copy of itself, which the kernel does without copying memory; so every place
 * that was visited, and some on the way to it, can be gone on from. Going back is going forward from
 * the parked process, or the keyframe, that is next before the place.
 *
 * All processes of an explorer share one code cache and one feed, and one of them runs at a time.
 * Registers and flags are the program's own at every place, whichever way it was reached.
 */
#ifndef BUGNET_REPLAY_EXPLORER_H
#define BUGNET_REPLAY_EXPLORER_H

#include "replay/recorded.h"
#include "replay/state.h"

/*
 * A place in the execution of a thread: so many instructions have been executed, and of the signals
 * that come before the next one so many were delivered.
 */
struct place {
	uint64_t position;
	uint32_t signals;
};

static inline int place_compare(struct place a, struct place b)
{
	if (a.position != b.position)
		return a.position < b.position ? -1 : 1;
	return a.signals < b.signals ? -1 : a.signals > b.signals;
}

/* A thread at a place. */
struct standing {
	uint32_t thread; /* id */
	struct place place;
	struct state state;
	size_t stretch;  /* that the place is in, or at the end of: its number in the timeline */
	uint32_t pieces; /* of the code history that are in force */
	bool ended;      /* the log goes no further */
};

struct explorer;

/* NULL: `why` tells. */
struct explorer *explorer_create(const struct recorded *recorded, char *why, size_t why_size);
void explorer_destroy(struct explorer *explorer);

/*
 * Brings the thread there, or, if its log ends before, to its end. The standing is there until it is
 * released. NULL: `why` tells.
 */
const struct standing *explorer_go(
        struct explorer *explorer, uint32_t thread, struct place place, char *why, size_t why_size);
/* The same if it is there already, until somebody goes anywhere; else NULL. */
const struct standing *explorer_parked(const struct explorer *explorer, uint32_t thread, struct place place);
void explorer_release(struct explorer *explorer, const struct standing *standing);

/* The nearest place before from which it can be gone on without replaying anything, or the keyframe. */
struct place explorer_base(const struct explorer *explorer, uint32_t thread, struct place place);

/*
 * What the thread knows of memory where it stands: lines (of 64 bytes) of which it loaded or stored something
 * since the last keyframe. Fills in those bytes that are not known yet, and notes that they are.
 */
void explorer_read(struct explorer *explorer, const struct standing *standing, uint64_t address, uint8_t *to,
        uint8_t *known, size_t size);

/* Was so much of it touched that some may be known, and is not told of? */
bool explorer_is_crowded(const struct explorer *explorer);

/* Memory that the thread has touched since the last keyframe, in ranges of pages, some more than it touched.
 */
void explorer_each_range(struct explorer *explorer, const struct standing *standing,
        void (*see)(void *context, uint64_t start, uint64_t end), void *context);

/* Code as the thread fetches it where it stands. Returns how much there is. */
size_t explorer_read_code(
        struct explorer *explorer, const struct standing *standing, uint64_t address, void *to, size_t size);
/* All that there is, of those bytes that are not known yet; notes which are. */
void explorer_fill_code(struct explorer *explorer, const struct standing *standing, uint64_t address,
        uint8_t *to, uint8_t *known, size_t size);

/* ---- searching ---- */

/* From now on executions of the instruction at pc are told of, or no more. */
void explorer_probe(struct explorer *explorer, uint64_t pc, bool wanted);
/*
 * The same, if one of the conditions is true, or it cannot be told in the replayed process; with none, or if
 * there is no room for them, all are told of. Agent expressions, see target/agent.h.
 */
struct explorer_condition {
	const uint8_t *code;
	uint32_t size;
};
void explorer_condition_none(struct explorer *explorer);
void explorer_condition(
        struct explorer *explorer, uint64_t pc, const struct explorer_condition *conditions, uint32_t count);

/* Accesses to these bytes are, and patches of them. More may be told of. */
void explorer_watch_none(struct explorer *explorer);
void explorer_watch(struct explorer *explorer, uint64_t address, uint64_t size);

/*
 * Has the thread run from one place to another, or to the end of its log, and tells of what it does, in that
 * order; until `see` returns true. *reached is where it ended, if it was not ended. False: `why` tells.
 */
struct trace_record;
typedef bool explorer_visitor(void *context, const struct trace_record *record);
bool explorer_trace(struct explorer *explorer, uint32_t thread, struct place from, struct place to,
        explorer_visitor *see, void *context, struct place *reached, char *why, size_t why_size);

/* ---- copies that run on without the log ---- */

struct session_diversion;

/* A line of memory as it is to be. */
struct explorer_line {
	uint64_t address;
	uint64_t words[EVENT_LINE_WORDS];
};

/*
 * A copy of the process that stands there goes on in this state, with these lines, until it stops, or has
 * executed so many instructions. `empty`: nothing of its memory is there, all is asked for. *why_stopped is
 * an enum feed_diverted, *detail what goes with it. Where it stopped can be looked at and gone on from until
 * it is dropped, by which it is gone. NULL: it could not go on, and `why` tells.
 */
const struct standing *explorer_divert(struct explorer *explorer, const struct standing *from,
        const struct state *state, bool empty, const struct explorer_line *lines, uint32_t count,
        uint64_t instructions, const struct session_diversion *diversion, unsigned *why_stopped,
        uint64_t *detail, char *why, size_t why_size);
void explorer_drop(struct explorer *explorer, const struct standing *standing);

/* Processes that are parked now, and how many were made so far. */
struct explorer_counts {
	unsigned parked;
	uint64_t forks, moves, instructions;
};
struct explorer_counts explorer_counts(const struct explorer *explorer);

#endif
