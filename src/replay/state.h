/*
 * A thread's state at one position: what a recording says of it, what replay came to, and
 * whether they are the same.
 */
#ifndef BUGNET_REPLAY_STATE_H
#define BUGNET_REPLAY_STATE_H

#include <stdio.h>

#include "recording/event.h"
#include "target/feed.h"

struct state {
	uint64_t position;
	struct event_registers registers;
	bool has_bases;
	uint64_t fs_base, gs_base;
	bool has_vectors;
	uint8_t vectors[FEED_XSAVE_BYTES]; /* see state_vectors */
};

/*
 * The contents of an XSAVE image in one form: standard layout, initial values where a
 * component is in its initial state, without what differs from run to run (the x87 unit's
 * instruction and operand pointers). False: this is no such image.
 */
bool state_vectors(uint8_t to[FEED_XSAVE_BYTES], const uint8_t *image, uint32_t size);
/* What a signal handler starts with. */
void state_initial_vectors(uint8_t to[FEED_XSAVE_BYTES]);

/* The bits of general registers and flags that must be equal: those that the program may still read. */
struct state_live {
	uint64_t registers[16];
	uint64_t flags;
};
#define STATE_FLAGS 0x240dd5ul /* those that a program can set */

/* Equal as far as both sides know? Else `what` tells the first difference. */
bool state_equal(const struct state *recorded, const struct state *replayed, const struct state_live *live,
        char *what, size_t size);

void state_print(FILE *stream, const char *title, const struct state *state);

#endif
