/*
 * Making a file of what the ring holds: of a program that has ended, or of one that goes on.
 * In the second case the events that its threads have logged since are given with the request.
 */
#ifndef BUGNET_RECORD_SAVE_H
#define BUGNET_RECORD_SAVE_H

#include <limits.h>

#include "record/ring.h"
#include "record/thread_log.h"
#include "recording/codelog.h"
#include "recording/meta.h"

/* What a thread logged that the ring has not been given, and how far it has come. */
struct save_thread {
	struct thread_facts facts;
	struct buffer events;
	uint64_t position;
};

/* What became of a request. */
struct save_outcome {
	struct recording_error error; /* RECORDING_OK: it is there */
	bool partial;                 /* in spite of the error a part of it is there */
	char path[PATH_MAX];
	uint64_t instructions, size;
	uint32_t threads;
};

struct save_request {
	char path[PATH_MAX]; /* of the file; there is a number in it if there is such a file already */
	struct meta meta;
	struct codelog files;
	VECTOR(struct save_thread) threads;
	/* Called by whoever does the work, once. */
	void (*done)(void *argument, const struct save_outcome *outcome);
	/* Called now and then before that with how many bytes have been written, about; or NULL. */
	void (*progress)(void *argument, uint64_t written, uint64_t total);
	void *argument;
};

void save_request_deinit(struct save_request *request);

struct file_sum {
	uint32_t number;
	uint64_t checksum;
};

/* What there is to save. */
struct save_source {
	const struct ring *ring;
	struct code_history *code;      /* as it was when this returns */
	struct thread_log *const *logs; /* of threads that live */
	uint32_t log_count;
	const struct file_sum *sums;
	uint32_t sum_count;
	int level; /* of zstd, for what is not compressed yet */
};

/* Sets the outcome; does not call `done`. */
void save_write(const struct save_source *source, struct save_request *request, struct save_outcome *outcome);

/* PATH, or PATH with "-NUMBER" before its ending: what the file with this number is called. */
void save_numbered(const char *path, unsigned number, char numbered[PATH_MAX]);

#endif
