/*
 * The way out: every thread of a process goes on natively, and then everything of ours is taken out of
 * it: signal handlers, watched pages, memory. What is left is the program as if nothing had been.
 *
 * Threads leave where they can, so it takes several rounds, with their requests served in between.
 */
#ifndef BUGNET_RECORD_DETACH_H
#define BUGNET_RECORD_DETACH_H

#include "record/halt.h"
#include "record/memory.h"
#include "record/space.h"

/*
 * One round. False: another one is needed; some have to come out of the stub first, or could not be stopped
 * now. `orphaned`: there is no supervisor, see orphan.h.
 */
bool detach_round(
        pid_t pid, struct memory *memory, struct space *space, struct stragglers *stragglers, bool orphaned);

#endif
