/*
 * When a thread was at a position: keyframes have the time, and the thread's record that of its end. In
 * between it is as if the thread had run evenly, which it did not: this is about right, and nothing more.
 */
#ifndef BUGNET_DEBUG_CLOCK_H
#define BUGNET_DEBUG_CLOCK_H

#include "debug/chronicle.h"

/* Nanoseconds since the program, or its first thread that is in the recording, began. False: the log does not
 * tell. */
bool clock_at(struct chronicle *chronicle, uint32_t thread, uint64_t position, uint64_t *time);
/* The other way round: the position at that time, or where the thread began or ended if it was not there
 * then. */
bool clock_position(struct chronicle *chronicle, uint32_t thread, uint64_t time, uint64_t *position);

#endif
