/* What the program may still read at a place in its code. */
#ifndef BUGNET_REPLAY_LIVE_H
#define BUGNET_REPLAY_LIVE_H

#include "record/memory.h"

/* Sets of general registers, by number, and of bits of eflags. */
struct live {
	uint16_t registers;
	uint64_t dead_flags;
};

struct live live_at(const struct memory_source *code, uint64_t pc);

#endif
