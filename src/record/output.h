/*
 * What system calls are about to write: is there a line in it that the user looks for? A line may be written
 * by several calls.
 */
#ifndef BUGNET_RECORD_OUTPUT_H
#define BUGNET_RECORD_OUTPUT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/memory.h"
#include "record/vector.h"

/* Text at this address up to a zero, into a buffer; what cannot be read is missing. */
void memory_text(const struct memory *memory, uint64_t address, char *text, size_t size);

#define OUTPUT_LINE 4096 /* bytes of an unfinished line that are kept, the last ones */

/* What was written to a descriptor behind the last end of a line. */
struct output_line {
	uint32_t descriptor;
	bool found; /* it has matched already */
	char text[OUTPUT_LINE];
};

/* Of a process. All zero: none. */
struct output_lines {
	VECTOR(struct output_line) lines;
};

/* Is it a system call that writes what its second and third argument say? */
bool output_is_written_by(uint64_t number);

/*
 * Such a call's number, second and third argument. The line that matches goes into `text`; one that is not
 * finished matches once.
 */
bool output_matches(struct output_lines *lines, uint32_t descriptor, const regex_t *pattern,
        const struct memory *memory, const uint64_t call[3], char *text, size_t size);

#endif
