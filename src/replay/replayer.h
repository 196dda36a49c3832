/*
 * Replays a recording: every thread from every keyframe, with all that recording left to
 * compare with compared.
 */
#ifndef BUGNET_REPLAY_REPLAYER_H
#define BUGNET_REPLAY_REPLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/event.h"
#include "target/feed_counts.h"

#define REPLAY_SESSIONS_MAXIMUM 64

/*
 * Who wants to see system calls, signals and ends while they are replayed. A system call is seen
 * twice: before it has its effect, and behind it, with what it wrote. Memory is what the thread
 * stored and loaded: what it never touched is zero, and not there.
 */
struct replay_view;
struct replay_observer {
	void *context;
	void (*see)(void *context, const struct replay_view *view, uint32_t thread, const struct event *event,
	        bool behind);
};

/* Of the thread that is seen. Returns how much of it was there; the rest is zero. */
size_t replay_read(const struct replay_view *view, uint64_t address, void *to, size_t size);

struct progress;
struct recorded;
struct trace_record;

/*
 * Somebody who wants to know what threads do to memory; each function may be NULL. They are called for
 * stretches by their number in the timeline: for the same one by one thread after the other,
 * for different ones by several threads at once.
 */
struct replay_tracer {
	void *context;
	/* The stretch has touched these pages, by their addresses; some may come more than once. With
	 * UINT64_MAX among them there were more. */
	void (*touched)(void *context, size_t stretch, const uint64_t *pages, uint32_t count);
	/* Accesses that the filter (TRACE_FILTER_BYTES, see translate/runtime.h) lets through, in their
	 * order, see target/feed.h. */
	void (*trace)(void *context, size_t stretch, const struct trace_record *records, uint32_t count);
	const uint8_t *filter;
};

struct replay_options {
	const char *path;
	const char *sysroot, *binary; /* see code_files.h; may be NULL */
	uint64_t from, to;            /* positions; 0 and UINT64_MAX: all of it */
	uint32_t thread;              /* id, or UINT32_MAX: all */
	unsigned sessions;            /* processes to replay in at once; 0: as many as there are processors */
	bool output;                  /* write what the program wrote to descriptors 1 and 2 */
	bool loads;                   /* count them, see struct replay_result */
	const struct replay_observer *observer; /* or NULL; no output then */
	const struct replay_tracer *tracer;     /* or NULL */
	struct progress *progress;              /* of instructions, to be told how far it is; or NULL */
	bool show; /* print the state of each thread where it stops because of `to` */
};

enum replay_outcome {
	REPLAY_EXACT,
	REPLAY_DIVERGED, /* `message` tells how; both states have been printed to stderr. Of several
	                    differences, the one of the first thread at its first position */
	REPLAY_FAILED,   /* it could not be replayed; `message` tells why */
};

struct replay_result {
	enum replay_outcome outcome;
	uint64_t instructions;
	uint64_t loads; /* instructions that read memory; 0 unless they were to be counted */
	double seconds;
	uint32_t threads;
	uint64_t keyframes; /* that replay began at */
	uint64_t skipped;   /* stretches that lean on others which are lost */
	uint64_t cut;       /* threads whose log just stops */
	struct feed_counts counts;
	char message[1024];
	bool approximates; /* on another processor, code was replayed that may give other results there */
	char warning[256]; /* why there is no more of the recording than was replayed, or "" */
};

void replay(const struct replay_options *options, struct replay_result *result);
/* The same of a recording that is open: path, sysroot and binary do not matter. */
void replay_opened(
        const struct replay_options *options, const struct recorded *recorded, struct replay_result *result);

#endif
