/* Where recordings are: in the current directory, and in one of the user's for those with a name. */
#ifndef BUGNET_CLI_RECORDINGS_H
#define BUGNET_CLI_RECORDINGS_H

#include <limits.h>
#include <stdbool.h>

#define RECORDINGS_SUFFIX ".bug"

/* $XDG_DATA_HOME/bugnet, or ~/.local/share/bugnet. False: the user has no home. */
bool recordings_directory(char path[PATH_MAX]);
/* The same, made if it is not there; false, with errno, if it cannot be. */
bool recordings_make_directory(char path[PATH_MAX]);

/* Calls `found` for each file that is called like a recording, here and there. */
void recordings_each(void (*found)(void *context, const char *path), void *context);

/* The recording that was made last, whatever else is called like one; false: there is none. */
bool recordings_latest(char path[PATH_MAX]);

/* The recording that the user means by this word: a file, or a name in the recordings directory. */
const char *recordings_find(const char *word, char path[PATH_MAX]);

#endif
