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

/*
 * HALT_SAFE, with an evacuation. HALT_UNSAFE: not now, as one does not come to a place like that, or does not
 * stop in time: there may be no processor for it. HALT_REFUSED: never, a debugger has one of them.
 */
enum halt_outcome evacuation_begin(struct evacuation **begun, const struct space *space,
        const struct evacuee *evacuees, unsigned count, struct stragglers *stragglers);
/* Lets them go on. */
void evacuation_end(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count);

#endif
