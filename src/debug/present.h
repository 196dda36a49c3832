/*
 * A debugger whose program runs while it is recorded (live.h). Where the program stands still is the present:
 * what is looked at there is the program itself. Whoever goes back from there, or asks for something
 * that only a recording knows, has everything up to now recorded and opened, and moves in that; going on
 * beyond its end is going on with the program.
 */
#ifndef BUGNET_DEBUG_PRESENT_H
#define BUGNET_DEBUG_PRESENT_H

#include "debug/debugger.h"
#include "debug/live.h"

/* It stands at the program's first instruction. `directory`: for recordings. debugger_close is called in the
 * end. */
void present_open(struct debugger *debugger, struct live *live, const char *directory);
void present_close(struct debugger *debugger);

/* The state of a thread that stands in the present. NULL: `why` tells. */
const struct standing *present_look(struct debugger *debugger, uint32_t thread, char *why, size_t why_size);

/* The program goes on: a thread by one instruction, alone or not, or all of them. */
void present_step(struct debugger *debugger, uint32_t thread, bool alone, struct stop *stop);
void present_continue(struct debugger *debugger, uint32_t thread, struct stop *stop);

/*
 * Going on in the recording, in which nobody executes the instruction at the very end: is there a breakpoint
 * at that of a thread? present_leave comes before the move, present_breaks where it found nothing.
 */
void present_leave(struct debugger *debugger);
bool present_breaks(struct debugger *debugger, struct stop *stop);

/* Is the end of the recording that of the program? */
bool present_ends(const struct debugger *debugger);

/* After a move in the recording: is it all as it is now? */
void present_reached(struct debugger *debugger);

#endif
