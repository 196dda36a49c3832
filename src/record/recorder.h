/*
 * The recorder: turns what the threads log, and the code they run, into a recording.
 *
 * The supervisor calls it, from one thread. The work that takes time (checking the
 * events, compression, writing, checksums) is done by a thread of its own; a call waits
 * for it only when much more was logged than could be written.
 *
 * Nothing that happens to the file harms the program: after an error the recorder says
 * so on stderr, keeps what is whole, and ignores what comes.
 */
#ifndef BUGNET_RECORD_RECORDER_H
#define BUGNET_RECORD_RECORDER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/memory.h"
#include "record/save.h"
#include "record/save_policy.h"
#include "record/scribe.h"
#include "record/space.h"
#include "target/layout.h"

#define RECORDER_DEFAULT_DICTIONARY 64
#define RECORDER_DEFAULT_INTERVAL   250000000 /* instructions from one keyframe to the next */
#define RECORDER_MOST_BOUND         1000
#define RECORDER_DEFAULT_RING       (UINT64_C(64) << 20)
#define RECORDER_LEAST_RING         (UINT64_C(1) << 20)
#define RECORDER_DEFAULT_CPU        "x86-64-v3"

/* What the user asked for. Everything must live as long as the recorder. */
struct recorder_options {
	const char *version;    /* of bugnet */
	const char *path;       /* of the recording, absolute */
	const char *directory;  /* where the user is, absolute: names in messages are relative to it */
	const char *program;    /* path of the executable, absolute */
	char *const *argv;      /* ended by NULL */
	const char *cpu;        /* what the program is offered: "x86-64-v2", "x86-64-v3" or "native" */
	unsigned dictionary;    /* places of the dictionary: 0, or a power of two up to 1024 */
	uint64_t interval;      /* instructions from one keyframe to the next; 0: they do not count */
	uint64_t interval_time; /* the same in ns; 0: time does not count */
	bool pages;             /* whole pages are logged as long as that will do, see target/pages.c */
	bool puts_off;          /* more instructions, up to three times, where a keyframe is costly */
	uint32_t bound;         /* of stretches that a keyframe may lean on; 0: each stands alone */
	const char *started_in; /* directory of a process that the program made; NULL: the user's */
	pid_t forked;           /* the process that it is a copy of, by the supervisor's count; 0: of none */
	uint64_t ring;          /* bytes of memory for what was last; 0: all goes to the file as it comes */
	uint64_t memory;        /* bytes that recording may take as a whole; 0: no limit */
	double slowdown;        /* times that the program may become slower; 0: no limit */
	bool progress;          /* tell on the terminal how it goes */
	struct save_policy save_on;         /* with a ring: ends that are worth a file, */
	const struct save_call *save_calls; /* and system calls; */
	uint32_t save_call_count;
	const regex_t
	        *output; /* or NULL: of those of them that write, only the ones that write such a line */
	bool silent;     /* who asked for it is told in another way what was saved */
};

/* Why a file is made of a ring while the program goes on. */
struct save_reason {
	const char *kind; /* META_SAVE_KIND */
	const char *text;
	const char *path;  /* of the file, absolute; NULL: as the user said when recording began */
	uint32_t thread;   /* that asked for it, or THREAD_NO_PARENT */
	uint64_t position; /* of that thread */
};

struct recorder;

/*
 * Begins the file, under a temporary name. Returns NULL, with the reason in `why`, where
 * that is not possible.
 */
struct recorder *recorder_create(const struct recorder_options *options, char *why, size_t why_size);

/* The program is in place: it has this pid, by the supervisor's count, and this code cache. */
void recorder_begin(struct recorder *recorder, pid_t pid, const struct space *space);

/*
 * A thread logged these events (whole ones), which continue its stretch. LOG_KEYFRAME and
 * LOG_ENDED close the stretch: the next bytes, if there are any, begin with a keyframe.
 * LOG_ENDED also ends the thread. `position`: how far it has come, with all events up to there among these.
 */
void recorder_log(struct recorder *recorder, const struct log *log, const uint8_t *bytes, uint64_t used,
        uint64_t position, unsigned reason);

/*
 * In how many ns should the thread make a keyframe, as far as size and time go? 0: now, its stretch is
 * large or has lasted for the interval's time; UINT64_MAX: not before something happens.
 */
uint64_t recorder_keyframe_in(struct recorder *recorder, const struct log *log);

/* Ask the thread for one: to be called where recorder_keyframe_in says that it is time. */
void recorder_ask_keyframe(struct recorder *recorder, struct log *log);

/*
 * A look at a thread: how far it is, and whether it waits, in a system call or for us. To be told of all
 * threads there are between recorder_look_begins and recorder_look_ends.
 */
void recorder_look_begins(struct recorder *recorder);
void recorder_look_at(struct recorder *recorder, const struct log *log, uint64_t position, bool waits);
void recorder_look_ends(struct recorder *recorder);

/* Intervals that are times are 2 to the power of `doublings` as long as they were to be. */
void recorder_lengthen(struct recorder *recorder, unsigned doublings);

/* From now on every thread is due for a keyframe; recorder_is_fresh: it has made one since. */
void recorder_want_keyframes(struct recorder *recorder);
bool recorder_is_fresh(struct recorder *recorder, const struct log *log);

/*
 * Making a file while the program goes on, of a ring, after recorder_want_keyframes, so that it has what the
 * threads did up to then. recorder_save takes what the threads have logged (`threads` is taken over), and
 * tells `done` when the file is there, from another thread. False if there is no ring.
 */
void recorder_facts(struct recorder *recorder, const struct log *log, struct thread_facts *facts);
bool recorder_save(struct recorder *recorder, const struct save_reason *reason, struct save_request *request);

/* Since when it records, in ns. */
uint64_t recorder_age(const struct recorder *recorder);

/* Bytes of the file so far, without a ring. */
uint64_t recorder_written(const struct recorder *recorder);

/* What the ring holds; false without one. */
bool recorder_ring_state(struct recorder *recorder, struct ring_state *state);

/*
 * A thread is about to run code that was translated from these bytes: to be told of every
 * source stretch of a region, every time a region is placed for it. `memory` is the
 * program's; it tells which file is mapped there.
 */
/* Number of pieces of the code history when one last replaced others; 0: none did. */
uint32_t recorder_replaced(const struct recorder *recorder);
void recorder_code(struct recorder *recorder, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size);

/* Nothing is mapped there any more. */
void recorder_unmapped(struct recorder *recorder, uint64_t start, uint64_t end);

/* So many threads were not recorded, or not to their ends. */
void recorder_note_unrecorded(struct recorder *recorder, uint32_t threads);

/* The process is another program now: what no thread could say of its own end. */
void recorder_note_exec(struct recorder *recorder);

/*
 * Close what is open, write everything, give the file its name, and say in one line on
 * stderr what was saved. What comes later is ignored; a second call does nothing.
 */
void recorder_finish(struct recorder *recorder);

/* Finishes if that was not done. */
void recorder_destroy(struct recorder *recorder);

/* Could a file not be written, or not all of it, by any recorder of this process? */
bool recorder_any_failed(void);

#endif
