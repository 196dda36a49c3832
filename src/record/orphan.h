/*
 * What a recorder that was killed has left in a process: its threads go on natively as they come to the stub,
 * but memory stays in it, and signal handlers that pass signals on. This takes that out, as letting go does.
 *
 * Nobody translates any more, so that what the process has mapped is all there is to know, and does not
 * change.
 */
#ifndef BUGNET_RECORD_ORPHAN_H
#define BUGNET_RECORD_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "record/memory.h"

enum orphan_state {
	ORPHAN_NOTHING, /* of ours is in it */
	ORPHAN_SERVED,  /* its recorder lives */
	ORPHAN_LEFT,    /* its recorder was killed */
	ORPHAN_BUGNET,  /* it is a recorder, or replays, and has its program's code cache mapped */
	ORPHAN_STRANGE, /* it is from another build of bugnet, whose layout is not known */
};

enum orphan_state orphan_look(const struct memory *memory);

/* For ORPHAN_SERVED: who records it, if it is recorded and not only run; else 0. */
pid_t orphan_recorder(const struct memory *memory);

/* For ORPHAN_LEFT. False, with the reason in `why`: it stays as it was. */
bool orphan_take_out(pid_t pid, struct memory *memory, char *why, size_t why_size);

#endif
