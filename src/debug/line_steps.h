/*
 * Steps within a line of source. Forwards gdb tells the range of pcs that is to be left. It goes back over a
 * line one instruction at a time, and its protocol has no ranges for that; our commands tell which pcs are a
 * line's. As long as a thread is inside of one, gdb goes on until it is at its first instruction, or outside:
 * so it can be gone there at once.
 */
#ifndef BUGNET_DEBUG_LINE_STEPS_H
#define BUGNET_DEBUG_LINE_STEPS_H

#include "debug/debugger.h"

struct line_range {
	uint64_t start, end;
};

struct line_steps {
	VECTOR(struct line_range) ranges;
	unsigned steps; /* back, one by one, since they were told */
};

void line_steps_clear(struct line_steps *steps);

/* As debugger_step, and on as long as it stops inside of the range. */
void line_steps_forward(
        struct debugger *debugger, struct line_range range, uint32_t thread, bool alone, struct stop *stop);

/* As debugger_step, backwards; or further, after some that were inside of the same line. */
void line_steps_back(
        struct debugger *debugger, struct line_steps *steps, uint32_t thread, bool alone, struct stop *stop);

#endif
