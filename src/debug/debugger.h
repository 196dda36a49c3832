/*
 * A recording under a debugger: threads stand somewhere, can be looked at, and are moved forwards and
 * backwards. Every move is a search, if need be, for the place to stop at, and then going there
 * (replay/explorer.h); nothing is ever undone.
 *
 * One thread was moved last. The others stand where they were at that time, as far as stamps tell
 * (chronicle.h): before the first system call or signal that came later.
 */
#ifndef BUGNET_DEBUG_DEBUGGER_H
#define BUGNET_DEBUG_DEBUGGER_H

#include "debug/breakpoints.h"
#include "debug/catches.h"
#include "debug/chronicle.h"
#include "debug/images.h"
#include "debug/loads.h"
#include "debug/untouched.h"
#include "replay/explorer.h"

enum direction { FORWARDS, BACKWARDS };

enum watch_kind { WATCH_WRITE, WATCH_READ, WATCH_ACCESS };

struct watch {
	enum watch_kind kind;
	uint64_t address, size;
	/* Of who wrote it: bits of the first byte, and of the last one, that are none of a bit-field's. */
	uint8_t spared_low, spared_high;
};

enum stop_kind {
	STOP_STEP,        /* as far as it was to go */
	STOP_BREAK,       /* at a breakpoint */
	STOP_WATCH,       /* memory that is watched was accessed */
	STOP_SIGNAL,      /* a signal comes, or has ended the process */
	STOP_CALL,        /* about to make a system call that is caught */
	STOP_RETURN,      /* behind it */
	STOP_FORK,        /* behind one that has made a process */
	STOP_LIBRARY,     /* another library is there, or one less: nothing that a user has asked for */
	STOP_START,       /* there is nothing before */
	STOP_END,         /* there is nothing behind */
	STOP_EXITED,      /* the program has ended, for good: see `status` */
	STOP_INTERRUPTED, /* by the user */
	STOP_FAILED,      /* `why` tells */
};

struct stop {
	enum stop_kind kind;
	uint32_t thread;
	int signal;
	int status; /* as of wait() */
	struct watch watch;
	const struct happening *happening; /* signal, call: what the log says of it */
	char why[512];
};

struct debugged_thread {
	struct chronicle_thread *recorded; /* what is known of it, last */
	bool absent;              /* it is not in this recording; or, in the present, not there any more */
	struct place first, last; /* where it can be */
	struct place place;
	uint64_t moment;                 /* for which `place` is true */
	const struct standing *standing; /* or NULL */
	struct place standing_place;
};

/* Going back, a store by which the way went over to another thread, although it is later by stamps. */
struct crossing {
	uint32_t thread;
	uint64_t position;
};

#define KNOWN_WORDS 64
struct known_word;

struct live;
struct present;

struct debugger {
	const struct recorded *recorded; /* that is open; NULL: none, see present.h */
	struct live *live;               /* the program, which runs while it is debugged; or NULL */
	struct present *present;
	bool now;         /* what is looked at is the program, as it is, */
	bool just_before; /* or as it was right before what happened last, a signal or its end: memory is the
	                     same, but for what lay below the stack */
	const char *path; /* of the recording, for those who keep something next to it; may be NULL */
	struct chronicle chronicle;
	struct images images; /* as they were last marked: see debugger_images */
	struct loads loads;
	struct explorer *explorer;
	struct debugged_thread *threads;
	uint32_t thread_count;
	struct untouched untouched;
	struct known_word *words;          /* KNOWN_WORDS of them, see memory.c; or NULL */
	VECTOR(struct crossing) crossings; /* since it last moved in another way: at `crossed` it had not */
	uint64_t crossed;                  /* a moment */
	uint32_t current;                  /* index of the one that was moved last */
	uint64_t moment, time;
	struct breakpoints breakpoints;
	VECTOR(struct watch) watches;
	VECTOR(uint64_t) probed; /* pcs of breakpoints that the explorer tells of, or some that are gone */
	struct catches catches;
	int told; /* enum caught_kind: up to this was told of where the current thread stands, or
	             CAUGHT_NOTHING */
	/* Does the user want it to stop? Or NULL. */
	bool (*interrupted)(void *context);
	void *context;
};

/* It stands at the end of the recording. False: `why` tells. Either way debugger_close is called in the end.
 */
bool debugger_open(struct debugger *debugger, const struct recorded *recorded, char *why, size_t why_size);
void debugger_close(struct debugger *debugger);

/* Has what only a recording knows at hand, also where the program runs. False: `why` tells. */
bool debugger_recall(struct debugger *debugger, char *why, size_t why_size);

/* The index of a thread, by its id; UINT32_MAX: there is none. */
uint32_t debugger_find_thread(const struct debugger *debugger, uint32_t id);

/* Where a thread stands. */
struct place debugger_place(struct debugger *debugger, uint32_t thread);
/* Where it stood at another time. */
struct place debugger_place_at(struct debugger *debugger, uint32_t thread, uint64_t time);
/* Of all threads. */
uint64_t debugger_instructions(const struct debugger *debugger);
/* Had it begun? */
bool debugger_has_begun(struct debugger *debugger, uint32_t thread);
/* Was the thread there at all then? */
bool debugger_is_alive(struct debugger *debugger, uint32_t thread);
/* Its state. NULL: `why` tells. */
const struct standing *debugger_look(struct debugger *debugger, uint32_t thread, char *why, size_t why_size);
/* The program and its libraries, of which those are marked that are loaded there. */
const struct images *debugger_images(struct debugger *debugger);
/* Memory as it is for the thread. Returns how much is known from `address` on. */
size_t debugger_read(struct debugger *debugger, uint32_t thread, uint64_t address, void *to, size_t size);
/* All that is known of it; notes which bytes are. */
void debugger_read_known(struct debugger *debugger, uint32_t thread, uint64_t address, uint8_t *to,
        uint8_t *known, size_t size);

/* A line of it without replaying anything: what the files have, and what all agree about who were looked at
 * where they stand. Returns which bytes are known. */
uint64_t debugger_read_here(
        struct debugger *debugger, uint32_t thread, uint64_t line, uint8_t to[EVENT_LINE_BYTES]);
/* Looks at those other threads that may know memory. */
void debugger_look_around(struct debugger *debugger, uint32_t thread);
/* Is memory the program's own, which runs, as it is? */
bool debugger_shows_program(const struct debugger *debugger);
/* Has no file anything but zero there, at first? */
bool debugger_is_blank(struct debugger *debugger, uint64_t address);

/* Where all threads stand, and when; and all but one of them are put there again: for a debugger that moves
 * that one alone. The caller frees the items. */
struct places {
	struct place *items;
	uint64_t time;
};
struct places debugger_places(struct debugger *debugger);
void debugger_put_others(struct debugger *debugger, uint32_t thread, const struct places *places);

/* Moves. The thread becomes the current one, unless another one has what it stops for. `alone`: the others
 * stand still meanwhile, where that makes a difference: where the program runs. */
void debugger_step(
        struct debugger *debugger, uint32_t thread, bool alone, enum direction direction, struct stop *stop);
void debugger_continue(
        struct debugger *debugger, uint32_t thread, bool alone, enum direction direction, struct stop *stop);
/* As near to the position as there is something. */
void debugger_seek(struct debugger *debugger, uint32_t thread, uint64_t position, struct stop *stop);

/* A breakpoint, with conditions as in gdb's packet; false: there can be none, `why` tells. */
bool debugger_break(
        struct debugger *debugger, uint64_t pc, const char *conditions, char *why, size_t why_size);

/* Has the explorer tell of the breakpoints. */
void debugger_set_probes(struct debugger *debugger);
/* Has it tell of these pcs, in the next trace, and of no accesses. */
void debugger_probe(struct debugger *debugger, const uint64_t *pcs, uint32_t count);

/* Why the current thread stands where it does, as far as that can be told from there. */
struct stop debugger_last_stop(struct debugger *debugger);

/* The place at which the thread is about to execute the instruction at the position. */
/* Where the next system call, signal or end is: up to there the thread does nothing but execute. */
uint64_t debugger_next_event(struct debugger *debugger, uint32_t thread, uint64_t position);
struct place debugger_about(struct debugger *debugger, uint32_t thread, uint64_t position);

/*
 * What the thread does to the bytes, between two places, in its order, until `see` returns true: accesses
 * and patches (target/feed.h). False: `why` tells.
 */
bool debugger_trace(struct debugger *debugger, uint32_t thread, uint64_t address, uint64_t size,
        struct place from, struct place to, explorer_visitor *see, void *context, char *why, size_t why_size);

/* Where to begin with the last part before `to` of what is to be traced. */
struct place debugger_trace_base(struct debugger *debugger, uint32_t thread, struct place to);

#endif
