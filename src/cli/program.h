/* The program that a command is to start: found, checked, and told what is wrong with it. */
#ifndef BUGNET_CLI_PROGRAM_H
#define BUGNET_CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Find the program argv[0], as execvp does, and check that it can be translated. True:
 * `path` has it. False: `command` is over, with *status, after saying why. A program that
 * must not be translated is executed natively, after a note; `consequence` ends the note.
 */
bool program_check(
        const char *command, char **argv, const char *consequence, char path[PATH_MAX], int *status);

/* Is this a size for --cache, or 0? Says so if not. */
bool program_cache_check(const char *command, uint64_t cache);

#endif
