/*
 * A thread's log on its way into the file: events are collected until their stretch is
 * over, and looked at as they come. The log was in the program's memory until now, so it
 * is believed only as far as it can be decoded.
 */
#ifndef BUGNET_RECORD_THREAD_LOG_H
#define BUGNET_RECORD_THREAD_LOG_H

#include "record/kept_code.h"
#include "recording/decode.h"
#include "recording/stretch.h"
#include "recording/thread.h"

/* A stretch that is over. */
struct finished_stretch {
	struct section what; /* type, codec, id, first, last */
	const struct buffer *events;
	uint32_t leans_on;
	uint64_t began; /* CLOCK_MONOTONIC, ns */
	struct stretch_code code;
};

/* Where stretches go, and behind each what is known of the thread: a file, or the ring. */
struct log_sink {
	enum recording_status (*stretch)(void *context, const struct finished_stretch *stretch);
	enum recording_status (*thread)(void *context, const struct thread_record *record);
	void *context;
};

struct thread_log {
	struct thread_record record;
	uint32_t stretches;    /* written so far */
	struct buffer stretch; /* events since the last keyframe */
	uint64_t first, last;  /* positions of that keyframe and of what came last */
	uint32_t leans_on;     /* as the keyframe says, */
	uint64_t began;        /* which was then: CLOCK_MONOTONIC, ns */
	struct stretch_code code;
	bool has_stretch;
	bool damaged;     /* the events made no sense; the next keyframe is waited for */
	bool was_damaged; /* at some time */
	struct decoder decoder;
};

/* What is known about a log beyond its events. */
struct thread_facts {
	uint32_t id, parent;
	int32_t tid;
	char name[THREAD_NAME_SIZE]; /* "": not known, keep what was */
	struct stretch_code code;    /* what the stretch that the events belong to needs, so far */
};

struct thread_log *thread_log_create(uint32_t id); /* NULL: out of memory */
void thread_log_destroy(struct thread_log *log);

/* Take events over; a keyframe among them ends the stretch before it, which goes to the sink. */
enum recording_status thread_log_take(struct thread_log *log, const struct log_sink *sink,
        const struct thread_facts *facts, const uint8_t *bytes, size_t size);

/*
 * Nothing more comes for this stretch: give it away, if there is one, and what is known of
 * the thread. `position` and `now`: how far the thread has come at least, and when.
 */
enum recording_status thread_log_close(
        struct thread_log *log, const struct log_sink *sink, uint64_t position, uint64_t now);

/* The same as if the log had these events too and were closed, but it goes on as before. */
enum recording_status thread_log_snapshot(const struct thread_log *log, const struct log_sink *sink,
        const struct thread_facts *facts, const uint8_t *bytes, size_t size, uint64_t position, uint64_t now);

#endif
