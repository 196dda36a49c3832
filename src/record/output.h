/* What a system call is about to write: does it match what the user looks for? */
#ifndef BUGNET_RECORD_OUTPUT_H
#define BUGNET_RECORD_OUTPUT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/memory.h"

/* Text at this address up to a zero, into a buffer; what cannot be read is missing. */
void memory_text(const struct memory *memory, uint64_t address, char *text, size_t size);

/*
 * The call's number, second and third argument. The line that matches goes into `text`. Calls that write
 * nothing match nothing.
 */
bool output_matches(
        const regex_t *pattern, const struct memory *memory, const uint64_t call[3], char *text, size_t size);

#endif
