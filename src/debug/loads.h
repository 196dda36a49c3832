/*
 * When the libraries of a recording were loaded and unloaded: by the calls of its threads that mapped and
 * unmapped the place where each has its beginning, and by which file's code was run there in between. What no
 * call mapped was there from the beginning.
 */
#ifndef BUGNET_DEBUG_LOADS_H
#define BUGNET_DEBUG_LOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/vector.h"

struct debugger;

/* Behind the call. */
struct load {
	uint32_t thread; /* its id */
	uint64_t position, time;
	uint32_t image; /* its index */
	bool loaded;    /* else it is gone */
};

/* A place to stop at, so that a debugger hears of it in time: of several libraries that come one after the
 * other, before code of any is run, behind the last one; going back, before the first one. */
struct load_stop {
	uint32_t thread;
	uint64_t position; /* of the call */
	bool forwards, backwards;
};

struct loads {
	bool prepared;
	VECTOR(struct load) items;      /* in the order of time */
	VECTOR(struct load_stop) stops; /* by thread and position */
	uint64_t opened;                /* the moment at which it was first asked for */
};

/* Marks the images of the debugger that are there where it stands. Where the log is long they all are, before
 * the first move. */
void loads_mark(struct debugger *debugger);

bool loads_stop_at(const struct loads *loads, uint32_t thread, uint64_t position, bool backwards);
void loads_deinit(struct loads *loads);

#endif
