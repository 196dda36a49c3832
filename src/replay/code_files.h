/*
 * The files that the recorded program's code came from: found, verified and mapped before
 * anything is replayed. A file is known by its size, its build id and its checksum, not
 * by its name.
 */
#ifndef BUGNET_REPLAY_CODE_FILES_H
#define BUGNET_REPLAY_CODE_FILES_H

#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/reader.h"

struct code_files_options {
	const char *sysroot; /* where the recorded paths begin, or NULL */
	const char *binary;  /* the file to take for the program itself, or NULL */
	const char *program; /* its recorded path, or NULL */
};

struct code_file {
	const uint8_t *bytes; /* NULL: no code came from it */
	uint64_t size;
};

struct code_files {
	struct code_file *files; /* by their number in the code log */
	uint32_t count;
};

/* Finds all files that the history speaks of: inside the recording, or where the options and their paths say.
 * Returns false and says why. */
bool code_files_open(struct code_files *files, struct reader *reader, const struct codelog *log,
        const struct code_history *history, const struct code_files_options *options, char *why,
        size_t why_size);
void code_files_close(struct code_files *files);

#endif
