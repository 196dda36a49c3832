/* What debugger.c and present.c share: see debugger.h. */
#ifndef BUGNET_DEBUG_DEBUGGER_PRIVATE_H
#define BUGNET_DEBUG_DEBUGGER_PRIVATE_H

#include "debug/debugger.h"

/* The thread with this id, which is added if it was not there. */
uint32_t debugger_know_thread(struct debugger *debugger, uint32_t id);

/* What is recorded is opened; every thread stands at its end. The current one is the one that has ended the
 * process, or the one it was. False: `why` tells. Either way it is closed in the end. */
bool debugger_open_recording(
        struct debugger *debugger, const struct recorded *recorded, char *why, size_t why_size);
void debugger_close_recording(struct debugger *debugger);

/* What memory.c keeps of a recording. */
void debugger_forget_words(struct debugger *debugger);

/* The thread is there, and all others where they were then. */
void debugger_move(struct debugger *debugger, uint32_t thread, struct place place);
/* Where a signal comes that is told of, or about to execute the instruction. */
void debugger_arrive(struct debugger *debugger, uint32_t thread, uint64_t position, struct stop *stop);
/* What it is at the end of the recording. */
void debugger_stop_at_end(struct debugger *debugger, uint32_t thread, struct stop *stop);
/* As debugger_continue, in the recording only. */
void debugger_continue_recorded(
        struct debugger *debugger, uint32_t thread, bool alone, enum direction direction, struct stop *stop);
/* Its state there, if that can be told; else the stop is one that failed. */
void debugger_look_after_move(struct debugger *debugger, struct stop *stop);

#endif
