/* What a data address of a recorded program is called, and of what type, by the files that it mapped. */
#ifndef BUGNET_CLI_VARIABLES_H
#define BUGNET_CLI_VARIABLES_H

#include "cli/recording.h"

struct variables;

/* Opens the files of the recording that are still what they were. NULL: out of memory. */
struct variables *variables_open(struct recording *recording);
void variables_close(struct variables *variables);

struct variable {
	const char *file; /* that it belongs to, or NULL: none's, such as the heap or a stack */
	const char *name; /* or NULL */
	uint64_t offset;  /* from its start */
};

struct variable variables_find(struct variables *variables, uint64_t address);
/* Is it atomic by its type (_Atomic, std::atomic), as far as the debug information says? */
bool variables_is_atomic(struct variables *variables, uint64_t address);
/* Is the instruction a part of a language's own atomic type, wherever it was inlined? */
bool variables_accesses_atomic(struct variables *variables, uint64_t pc);
/* Is the line that it was made of about something atomic, as far as the source is there? */
bool variables_says_atomic(struct variables *variables, uint64_t pc);

#endif
