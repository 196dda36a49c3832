/* Which pages of a process are there, in memory or swapped out. */
#ifndef BUGNET_RECORD_PAGES_H
#define BUGNET_RECORD_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/memory.h"

/*
 * Tells of all ranges of such pages between two addresses at pages' starts, with those that were only read,
 * the system's page of zeros, or without, as the kernel can. False: it could not be told, or `found` was
 * false.
 */
bool pages_each(const struct memory *memory, uint64_t start, uint64_t end,
        bool (*found)(void *context, uint64_t start, uint64_t end), void *context);

/* Bytes in pages of the process's own. False: the kernel does not tell quickly, which it does from Linux 6.7
 * on. */
bool pages_bytes(const struct memory *memory, uint64_t start, uint64_t end, uint64_t *bytes);

#endif
