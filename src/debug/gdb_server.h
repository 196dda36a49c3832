/*
 * Serves a recording to gdb by its remote protocol: gdb's own commands, forwards and backwards, and what
 * its scripts ask with `monitor`. Nothing of the recording can be changed through it.
 */
#ifndef BUGNET_DEBUG_GDB_SERVER_H
#define BUGNET_DEBUG_GDB_SERVER_H

#include <stdbool.h>

struct debugger;

/* Serves one gdb until it goes, and closes the descriptor. False: it wants us to end, too. */
bool gdb_serve(struct debugger *debugger, int fd);

#endif
