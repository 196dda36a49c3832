/*
 * The stacks of recorded threads: a thread is brought to a place by replay, and its frames are found there
 * as a debugger finds them, by the tables for unwinding in the files its code came from.
 */
#ifndef BUGNET_CLI_STACKS_H
#define BUGNET_CLI_STACKS_H

#include "cli/recording.h"
#include "replay/recorded.h"

struct frame {
	uint64_t pc;
	char *function, *source; /* or NULL */
	int line;
};

#define STACK_MAXIMUM 64

/* The innermost frame first. */
struct stack {
	struct frame frames[STACK_MAXIMUM];
	unsigned count;
};

struct stacks;

/* NULL: `why` tells. */
struct stacks *stacks_open(
        struct recording *recording, const struct recorded *recorded, char *why, size_t why_size);
void stacks_close(struct stacks *stacks);

/*
 * Where a thread was when it had executed so many instructions. Frames whose memory the thread has
 * neither loaded nor stored since the last keyframe are not known; there it ends.
 */
void stacks_find(struct stacks *stacks, uint32_t thread, uint64_t position, struct stack *stack);
void stack_deinit(struct stack *stack);

/* Where functions of that name begin, in the program and its libraries. Returns how many were found. */
unsigned stacks_functions(struct stacks *stacks, const char *name, uint64_t *pcs, unsigned most);
/* What brings the threads to their places. */
struct explorer *stacks_explorer(struct stacks *stacks);

#endif
