/* The value of --interval: so many instructions, or so much time. */
#ifndef BUGNET_CLI_INTERVAL_H
#define BUGNET_CLI_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * 1000000, 500K, 1.5M, 2G: instructions, in thousands, millions and billions; 300us,
 * 500ms, 2s, 1min: time, in nanoseconds. Sets one of the two and leaves the other. False:
 * neither, or nothing.
 */
bool interval_parse(const char *text, uint64_t *instructions, uint64_t *nanoseconds);

#endif
