/*
 * What the program had mapped, as far as the recording tells: the files that it began with, what its threads'
 * system calls mapped and unmapped up to where they stand, and memory that they touched elsewhere.
 */
#ifndef BUGNET_DEBUG_MAPPINGS_H
#define BUGNET_DEBUG_MAPPINGS_H

#include "debug/debugger.h"

struct mapping {
	uint64_t start, end;
	int protection; /* PROT_* */
	bool shared;
	uint64_t offset;  /* in the file */
	const char *name; /* path of the file, "[heap]", "[stack]" or "" */
	uint64_t inode;
};

struct mappings {
	VECTOR(struct mapping) items; /* by address, none over another */
};

void mappings_find(struct mappings *mappings, struct debugger *debugger);
void mappings_deinit(struct mappings *mappings);

/* Other than what is there: this, or nothing. */
void mappings_map(struct mappings *mappings, struct mapping mapping);
void mappings_unmap(struct mappings *mappings, uint64_t start, uint64_t end);
void mappings_protect(struct mappings *mappings, uint64_t start, uint64_t end, int protection);

#endif
