/* Where a thread executes instructions at some pcs: told piece by piece, for those who ask on. */
#ifndef BUGNET_DEBUG_EXECUTIONS_H
#define BUGNET_DEBUG_EXECUTIONS_H

#include "debug/debugger.h"

struct execution {
	uint64_t position, pc;
	uint64_t stack;  /* the stack pointer, when it is about to be executed, */
	uint64_t top;    /* the word there, or 0: not known, */
	uint64_t result; /* and rax */
};

struct executions {
	VECTOR(struct execution) items;
	uint64_t reached; /* it was looked for up to here */
	bool all;         /* which is the thread's end */
};

/* From this position on, until there are some, or much was looked through. False: `why` tells. The caller
 * frees either way. */
bool executions_find(struct debugger *debugger, uint32_t thread, uint64_t from, const uint64_t *pcs,
        uint32_t count, struct executions *found, char *why, size_t why_size);
void executions_deinit(struct executions *found);

#endif
