/*
 * Stopping every thread that runs from a code cache at a moment when none of
 * them is in it or will go back to an address it had before: then the cache can
 * be begun anew.
 */
#ifndef BUGNET_RECORD_EVACUATE_H
#define BUGNET_RECORD_EVACUATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/memory.h"
#include "record/space.h"

/* A process that uses the space. */
struct evacuee {
	pid_t pid;
	const struct memory *memory;
	struct channel *channel;
};

struct evacuation;

/* Threads that are still traced although they should not be: to be let go once they stop, or reaped. */
struct stragglers {
	pid_t *items;
	uint32_t count, capacity;
};

/* NULL when they cannot all be stopped like that: a debugger has one of them, or one is stuck. */
struct evacuation *evacuation_begin(const struct space *space, const struct evacuee *evacuees, unsigned count,
        struct stragglers *stragglers);
/* Lets them go on. */
void evacuation_end(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count);

#endif
