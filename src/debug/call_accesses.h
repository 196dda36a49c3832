/*
 * What system calls access of the program's memory, in the name of the thread that makes them: buffers that
 * they read before they have any effect, buffers that they write before they return, and memory that is gone
 * or empty behind them. Races take part in it (races.h); the order of threads does not, since what a call
 * wrote is in no log before somebody loads it.
 *
 * The logs tell the arguments, and signatures.h what they lead to; where they lead to vectors of buffers, the
 * thread is brought there to look. What is read up to a zero (paths), and what nobody knows the size of, is
 * left out.
 */
#ifndef BUGNET_DEBUG_CALL_ACCESSES_H
#define BUGNET_DEBUG_CALL_ACCESSES_H

#include "debug/accesses.h"

enum call_access_kind {
	CALL_LOADS,
	CALL_UNMAPS,
	CALL_STORES,
};

struct call_access {
	uint32_t thread; /* its id */
	uint8_t kind;    /* enum call_access_kind */
	uint16_t number; /* of the call */
	uint64_t position, pc;
	uint64_t start, end;
};

struct call_accesses {
	VECTOR(struct call_access) items; /* of each thread by position, those of a call by their kind */
};

/* False: `why` tells. Either way call_accesses_deinit is called in the end. */
bool call_accesses_find(
        struct call_accesses *calls, const struct recorded *recorded, char *why, size_t why_size);
void call_accesses_deinit(struct call_accesses *calls);

/* Notes in `accesses`, behind the steps of each thread, which words that threads share they access. False:
 * there are too many, and the last ones are left out. */
bool call_accesses_note(const struct call_accesses *calls, struct accesses *accesses);

#endif
