/* A file of the code log, here and now: is it still what the program ran? */
#ifndef BUGNET_CLI_RECORDED_FILE_H
#define BUGNET_CLI_RECORDED_FILE_H

#include "cli/recording.h"

enum recorded_file_state {
	RECORDED_FILE_SAME,
	RECORDED_FILE_MISSING, /* cannot be opened; errno says why */
	RECORDED_FILE_CHANGED,
	RECORDED_FILE_UNKNOWN, /* it may be the same, but the recording does not have enough to tell */
};

/* Compares size, and checksum or build id. Reads all of the file. */
enum recorded_file_state recorded_file_check(const struct codelog_file *file, int fd);

/* A descriptor of the file's content as it was: packed, or the file itself if it did not change; or -1. */
int recorded_file_open(struct recording *recording, const struct codelog_file *file);

#endif
