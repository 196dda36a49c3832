/* The names of the numbers that system calls take: flags that are or-ed, and choices. */
#ifndef BUGNET_EXPLAIN_VOCABULARY_H
#define BUGNET_EXPLAIN_VOCABULARY_H

#include <stdint.h>
#include <stdio.h>

#include "recording/signatures.h"

/* "O_RDWR|O_CREAT"; bits without a name as a number, "0" for none. */
void explain_flags(FILE *out, enum vocabulary vocabulary, uint64_t value);
/* "SEEK_SET"; a number without a name as it is. */
void explain_choice(FILE *out, enum vocabulary vocabulary, uint64_t value);

#endif
