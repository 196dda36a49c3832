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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/memory.h"
#include "record/space.h"
#include "target/layout.h"

#define RECORDER_DEFAULT_DICTIONARY 64
#define RECORDER_DEFAULT_INTERVAL   250000000 /* instructions from one keyframe to the next */
#define RECORDER_MOST_BOUND         1000
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
	uint32_t bound;         /* of stretches that a keyframe may lean on; 0: each stands alone */
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
 * LOG_ENDED also ends the thread.
 */
void recorder_log(struct recorder *recorder, const struct log *log, const uint8_t *bytes, uint64_t used,
        unsigned reason);

/*
 * In how many ns should the thread make a keyframe, as far as size and time go? 0: now, its stretch is
 * large or has lasted for the interval's time; UINT64_MAX: not before something happens.
 */
uint64_t recorder_keyframe_in(struct recorder *recorder, const struct log *log);

/*
 * A thread is about to run code that was translated from these bytes: to be told of every
 * source stretch of a region, every time a region is placed for it. `memory` is the
 * program's; it tells which file is mapped there.
 */
/* Number of pieces of the code history when one last replaced others; 0: none did. */
uint32_t recorder_replaced(const struct recorder *recorder);
void recorder_code(struct recorder *recorder, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size);

/* The process is another program now: what no thread could say of its own end. */
void recorder_note_exec(struct recorder *recorder);

/*
 * Close what is open, write everything, give the file its name, and say in one line on
 * stderr what was saved. What comes later is ignored; a second call does nothing.
 */
void recorder_finish(struct recorder *recorder);

/* Finishes if that was not done. */
void recorder_destroy(struct recorder *recorder);

#endif
