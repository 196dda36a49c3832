/*
 * Stopping every thread that runs from a code cache at a moment when none of
 * them is in it or will go back to an address it had before: then the cache can
 * be begun anew.
 */
#ifndef BUGNET_RECORD_EVACUATE_H
#define BUGNET_RECORD_EVACUATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/halt.h"
#include "record/memory.h"
#include "record/space.h"

/* A process that uses the space. */
struct evacuee {
	pid_t pid;
	const struct memory *memory;
	struct channel *channel;
};

struct evacuation;

/* NULL when they cannot all be stopped like that: a debugger has one of them, or one is stuck. */
struct evacuation *evacuation_begin(const struct space *space, const struct evacuee *evacuees, unsigned count,
        struct stragglers *stragglers);
/* Lets them go on. */
void evacuation_end(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count);

#endif
