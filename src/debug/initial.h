/* What was in memory before the first instruction: the data of mapped files; all else is zero. */
#ifndef BUGNET_DEBUG_INITIAL_H
#define BUGNET_DEBUG_INITIAL_H

#include "replay/recorded.h"

/* Is the recording there from the program's first instruction on? Else what was in memory is not known. */
bool initial_is_known(const struct recorded *recorded);
/* The 8-byte word there, as the files have it. */
uint64_t initial_word(const struct recorded *recorded, uint64_t address);

#endif
