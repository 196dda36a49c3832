/*
 * A throw-away copy of the program where a thread stands, for a debugger that calls functions in it:
 * registers and memory can be changed, and it can run, until it is dropped. The recording knows nothing of
 * it.
 *
 * The copy has the memory that is known there, as the debugger shows it. It may write to standard output and
 * standard error, which the debugger shows; map memory; and ask who it is. Anything else of the kernel ends
 * it.
 */
#ifndef BUGNET_DEBUG_DIVERSION_H
#define BUGNET_DEBUG_DIVERSION_H

#include "debug/debugger.h"

struct diverted_line {
	uint64_t address;
	uint8_t bytes[EVENT_LINE_BYTES];
	uint64_t known;
};
typedef VECTOR(struct diverted_line) diverted_lines;

struct diversion {
	struct debugger *debugger; /* NULL: there is none */
	uint32_t thread;
	struct state state;
	const struct standing *standing; /* where the copy stopped, or NULL: it has not run yet */
	diverted_lines lines;            /* of memory that was written since */
	diverted_lines found;            /* what the recording has where it was not at hand */
	uint64_t mapped;                 /* so much memory has it got */
	void (*output)(void *context, const char *bytes, size_t size);
	void *context;
};

/* False: the thread cannot be looked at. */
bool diversion_begin(struct diversion *diversion, struct debugger *debugger, uint32_t thread);
void diversion_end(struct diversion *diversion);

void diversion_write(struct diversion *diversion, uint64_t address, const uint8_t *bytes, size_t size);
/* Notes which bytes are known. */
void diversion_read(struct diversion *diversion, uint64_t address, uint8_t *to, uint8_t *known, size_t size);

/* Runs up to a breakpoint, or executes one instruction; stop->kind is STOP_BREAK, STOP_STEP, or STOP_SIGNAL,
 * with a reason in stop->why: it was given up. */
void diversion_run(struct diversion *diversion, bool step, struct stop *stop);

#endif
