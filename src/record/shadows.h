/*
 * Where the shadows of a process that is recorded are, as its stub has noted it: the windows of threads that
 * have them, and the pieces of those whose shadow is sparse.
 */
#ifndef BUGNET_RECORD_SHADOWS_H
#define BUGNET_RECORD_SHADOWS_H

#include "record/memory.h"
#include "record/space.h"
#include "target/layout.h"

/* The process's own record. False: it cannot be read, or cannot be true. */
bool shadows_read(const struct memory *memory, const struct space *space, struct process_memory *ours);

/* Tells of all of them, in whole pages; some may touch. False: one could not be read, or `found` was false.
 */
bool shadows_each(const struct memory *memory, const struct space *space, const struct process_memory *ours,
        bool (*found)(void *context, struct range range), void *context);

#endif
