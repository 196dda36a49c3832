/*
 * System calls by which one thread hands something over to another: futexes, queues of messages, semaphores
 * and locks of files. What is written to descriptors is in descriptors.h.
 */
#ifndef BUGNET_DEBUG_HANDOVERS_H
#define BUGNET_DEBUG_HANDOVERS_H

#include "debug/accesses.h"

/* Does the call, when it is made, give to others what the thread has done? *key: to whom. */
bool handover_gives(const struct step *call, uint64_t *key);
/* And does it, when it returns, take? */
bool handover_takes(const struct step *returned, uint64_t *key);

/* Does the kernel take or give the lock itself, which is the word of the futex? */
bool handover_is_of_lock(const struct step *step);

#endif
