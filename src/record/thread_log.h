/*
 * A thread's log on its way into the file: events are collected until their stretch is
 * over, and looked at as they come. The log was in the program's memory until now, so it
 * is believed only as far as it can be decoded.
 */
#ifndef BUGNET_RECORD_THREAD_LOG_H
#define BUGNET_RECORD_THREAD_LOG_H

#include "recording/decode.h"
#include "recording/stretch.h"
#include "recording/thread.h"
#include "recording/writer.h"

struct thread_log {
	struct thread_record record;
	uint32_t stretches;    /* written so far */
	struct buffer stretch; /* events since the last keyframe */
	uint64_t first, last;  /* positions of that keyframe and of what came last */
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
};

struct thread_log *thread_log_create(uint32_t id); /* NULL: out of memory */
void thread_log_destroy(struct thread_log *log);

void thread_log_facts(struct thread_log *log, const struct thread_facts *facts);

/* Take events over; a keyframe among them ends the stretch before it, which is written. */
enum recording_status thread_log_take(
        struct thread_log *log, struct writer *writer, const uint8_t *bytes, size_t size);

/*
 * Nothing more comes for this stretch: write it, if there is one, and what is known of
 * the thread. `position` and `now`: how far the thread has come at least, and when.
 */
enum recording_status thread_log_close(
        struct thread_log *log, struct writer *writer, uint64_t position, uint64_t now);

#endif
