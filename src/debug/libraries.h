/*
 * The program's file and its libraries, with where they lie: those of a recording as of the place where the
 * debugger stands, or those of the program itself where that is what is looked at.
 */
#ifndef BUGNET_DEBUG_LIBRARIES_H
#define BUGNET_DEBUG_LIBRARIES_H

#include "debug/debugger.h"

struct library {
	char *path;
	uint64_t start;    /* address */
	uint64_t distance; /* from where its headers say */
	uint64_t dynamic;  /* address, or 0: it has none */
	bool program;
};

struct libraries {
	VECTOR(struct library) items; /* by address */
};

void libraries_find(struct libraries *libraries, struct debugger *debugger);
void libraries_deinit(struct libraries *libraries);

#endif
