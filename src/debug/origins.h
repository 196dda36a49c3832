/* Where memory of a recorded program came from: which system call gave it. */
#ifndef BUGNET_DEBUG_ORIGINS_H
#define BUGNET_DEBUG_ORIGINS_H

#include "debug/accesses.h"

enum origin_kind {
	ORIGIN_UNKNOWN, /* the program began with it, or what gave it was not kept */
	ORIGIN_HEAP,    /* brk */
	ORIGIN_MAPPED,  /* mmap */
	ORIGIN_STACK,   /* mmap, and a thread has its end there */
};

struct origin {
	enum origin_kind kind;
	uint64_t start, size; /* mapped, stack */
	uint32_t thread;      /* id: who mapped it; whose stack it is */
	uint64_t position;    /* mapped: when */
};

/* Of an address, as it was for an operation with this stamp. */
struct origin origin_find(const struct accesses *accesses, uint64_t address, uint64_t stamp);

#endif
