/*
 * The ring: the last stretches of every thread, in memory, as they will be in a file.
 *
 * When it is full the oldest goes, with what leans on it. What a living thread did last is
 * dropped last of all: one that sleeps for hours does not lose it to a busy one.
 */
#ifndef BUGNET_RECORD_RING_H
#define BUGNET_RECORD_RING_H

#include "record/kept_code.h"
#include "record/vector.h"
#include "recording/buffer.h"
#include "recording/thread.h"

struct ring_stretch {
	struct section section; /* its header in a file */
	uint8_t *stored;        /* and the bytes behind it; NULL: it is gone */
	uint32_t leans_on;
	uint64_t began; /* CLOCK_MONOTONIC, ns */
	struct stretch_code code;
};

struct ring_thread {
	struct thread_record record;
	bool living;
	bool leans;       /* its stretch that is not yet here leans on those that are */
	uint32_t anchors; /* stretches in the ring that lean on nothing */
	uint32_t kept;    /* all of its stretches in the ring */
};

struct ring {
	VECTOR(struct ring_stretch) stretches; /* the oldest first */
	VECTOR(struct ring_thread) threads;
	uint32_t gone;             /* of the stretches */
	uint32_t first;            /* all before this one are */
	uint64_t used;             /* bytes */
	uint64_t dropped;          /* stretches that are gone, */
	uint64_t dropped_executed; /* with so many instructions */
	uint32_t threads_forgotten;
};

void ring_deinit(struct ring *ring);

/* A stretch; the bytes are copied. */
void ring_add(struct ring *ring, const struct ring_stretch *stretch);

/* What is known of a thread; `living`: more may come of it. `leans`: what is coming leans on what is here. */
void ring_note_thread(struct ring *ring, const struct thread_record *record, bool living, bool leans);

/* When the oldest of what is there began, CLOCK_MONOTONIC, ns; 0: there is nothing. Looks at all of it. */
uint64_t ring_began(const struct ring *ring);

/* Drop until no more than so many bytes are used, or nothing may go. */
void ring_shrink(struct ring *ring, uint64_t limit);

#endif
