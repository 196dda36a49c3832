/* Places as users write them, and as they are told. */
#ifndef BUGNET_DEBUG_PLACES_H
#define BUGNET_DEBUG_PLACES_H

#include "debug/debugger.h"

/* "start", "end", "12345", "50%": a position of the thread. False: `why` tells. */
bool place_parse(struct debugger *debugger, uint32_t thread, const char *text, uint64_t *position, char *why,
        size_t why_size);

#endif
