/*
 * Who wrote this memory: the stores of all threads that changed it, and where a thread found it
 * changed by somebody who is not in the recording as a store: the kernel, for the most part.
 */
#ifndef BUGNET_DEBUG_WRITES_H
#define BUGNET_DEBUG_WRITES_H

#include "debug/debugger.h"

#define WRITE_BYTES 8 /* of a value that are kept */

struct write {
	uint32_t thread;        /* index */
	uint64_t position;      /* of the instruction; found: of the one that loads it */
	uint64_t pc;            /* 0: found */
	bool found;             /* it was another one, when the thread came to load it */
	uint64_t address;       /* of a word of it */
	uint64_t before, after; /* that word */
	uint8_t bytes;          /* of it that were written */
	uint8_t known;          /* of `before` that are known */
	uint64_t time;
};

/* The bytes of the word, one bit each, that are asked for. */
uint8_t writes_within(const struct watch *what, uint64_t word);

struct trace_record;
/* What a record of an access or a patch tells. */
struct write write_of_record(uint32_t thread, const struct trace_record *record);

struct writes {
	VECTOR(struct write) items; /* in the order of time, as far as stamps tell */
	VECTOR(struct write)
	seen; /* what threads found that is the store of another one, which is there too */
	/* There were more. What is there is the beginning of the whole list, with nothing left out before its
	 * end. */
	bool cut;
};

/*
 * The last one before the place where the thread stands, or the first one behind it; of all threads, in the
 * order of time. False: there is none, or `why` tells.
 */
bool writes_find(struct debugger *debugger, uint32_t thread, struct watch what, enum direction direction,
        struct write *write, char *why, size_t why_size);

/* The store of another thread that may be what a thread found, if there is any. False: `why` tells. */
bool writes_store(struct debugger *debugger, struct watch what, const struct write *found,
        struct write *stored, bool *any, char *why, size_t why_size);

/* Was it something else there before, for the thread that wrote it? */
bool writes_changes(const struct write *write, struct watch what);

/* The last one of a list that was made of these bytes of a word before here, where the thread stands, or
 * NULL. */
const struct write *writes_last(
        struct debugger *debugger, const struct writes *writes, uint32_t thread, uint8_t bytes);
/* Are all of the bytes that it changes known as they were before? */
bool writes_knows_before(const struct write *write, struct watch what);

/* All of them, at most so many. The caller frees. */
bool writes_list(struct debugger *debugger, struct watch what, uint32_t most, struct writes *writes,
        char *why, size_t why_size);
void writes_deinit(struct writes *writes);

/* The system call of the thread that may have written what was found: the last one before with an argument
 * that leads there, or NULL. */
const struct happening *writes_call(struct debugger *debugger, const struct write *write);

#endif
