/*
 * The scribe: does for the recorder what takes time, in a thread of its own, in the order
 * in which it was told. Where no thread can be had it is done at once.
 */
#ifndef BUGNET_RECORD_SCRIBE_H
#define BUGNET_RECORD_SCRIBE_H

#include "record/save.h"
#include "record/thread_log.h"
#include "recording/writer.h"

struct scribe;

/* What the threads' logs came to. */
struct scribe_result {
	uint32_t threads;
	uint32_t closed; /* of these, how many will not go on */
	uint64_t instructions;
	uint32_t damaged; /* threads whose log made no sense at some point */
	/* How the process ended: enum event_end_kind and status; END_UNKNOWN: no thread said so. */
	uint32_t end_kind;
	int32_t end_status;
};

#define END_UNKNOWN UINT32_MAX

/*
 * Writes with this writer, which is the scribe's alone until scribe_stop. `failed` is
 * called once, from the scribe's thread, when the writer fails; nothing is written then.
 */
struct scribe *scribe_create(struct writer *writer, void (*failed)(void *argument), void *argument);
/* Writes nothing, but keeps what there was last, in so many bytes of memory. */
struct scribe *scribe_create_ring(uint64_t size);
void scribe_destroy(struct scribe *scribe);

/* To a file: a section; the content is taken over. */
void scribe_section(struct scribe *scribe, const struct section *what, struct buffer *content);

/*
 * To a ring: what has become of the code, whose pieces are taken over. `needs`: what the stretches need that
 * are not closed, as far as this side knows.
 */
void scribe_code(
        struct scribe *scribe, const struct code_news *news, const struct code_need *needs, uint32_t count);

/* Of a ring: make a file of it. The request is taken over. */
void scribe_save(struct scribe *scribe, struct save_request *request);

/* What a ring holds, as of a moment ago; from any thread. */
struct ring_state {
	uint64_t used;      /* bytes, of stretches, events and code */
	uint64_t stretches; /* that are closed */
	uint64_t began;     /* the oldest; CLOCK_MONOTONIC, ns; 0: there is none */
	uint64_t dropped, dropped_executed;
	uint64_t pieces; /* of the code history */
};
void scribe_ring_state(struct scribe *scribe, struct ring_state *state);

/* Events of a thread, copied. ended: the last ones; `position`: how far it has come at least. */
void scribe_events(struct scribe *scribe, const struct thread_facts *facts, const uint8_t *bytes, size_t size,
        uint64_t position, bool ended);

/* The checksum of file `number`, if the file is still of this size and age. The fd stays the caller's. */
void scribe_checksum(struct scribe *scribe, uint32_t number, int fd, uint64_t size, int64_t modified);

/* Waits until all is done, closes the stretches of threads that still run, and ends the thread. */
void scribe_stop(struct scribe *scribe, struct scribe_result *result);

bool scribe_has_failed(struct scribe *scribe);

/* After scribe_stop. */
bool scribe_checksum_of(const struct scribe *scribe, uint32_t number, uint64_t *checksum);

#endif
