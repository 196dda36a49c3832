/* What the program may still read at a place in its code. */
#ifndef BUGNET_REPLAY_LIVE_H
#define BUGNET_REPLAY_LIVE_H

#include "record/memory.h"

struct live {
	uint64_t registers[16]; /* for each general register, the bits that may be read */
	uint64_t dead_flags;    /* bits of eflags that may not */
};

struct live live_at(const struct memory_source *code, uint64_t pc);

#endif
