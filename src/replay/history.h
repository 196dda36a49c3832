/* What a thread's log has right before a position: where a divergence is, that is where to look for its
 * cause. */
#ifndef BUGNET_REPLAY_HISTORY_H
#define BUGNET_REPLAY_HISTORY_H

#include <stdio.h>

#include "replay/timeline.h"

/* The last events before the position and at it; patches are only counted. */
void history_print(FILE *stream, struct reader *reader, const struct timeline *timeline, uint32_t thread,
        uint64_t position);

#endif
