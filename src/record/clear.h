/*
 * Makes memory of a process zeros from outside, for one that may not make system calls: what
 * it was never given stays that way.
 */
#ifndef BUGNET_RECORD_CLEAR_H
#define BUGNET_RECORD_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "record/memory.h"

/* Private memory without a file behind it. False: some of it may not be zeros now. */
bool clear_memory(const struct memory *memory, uint64_t start, uint64_t end);

#endif
