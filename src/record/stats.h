/* What the engine did, for --stats. */
#ifndef BUGNET_RECORD_STATS_H
#define BUGNET_RECORD_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "record/space.h"

struct engine_counters {
	struct space_counters spaces;
	uint64_t images, copies, cache_bytes, refused, released;
	uint64_t returned; /* times that a thread told that it goes on, see log.unwatched */
	uint64_t executed; /* instructions, when they are counted */
};

void stats_add_space(struct engine_counters *counters, const struct space *space);
void stats_print_pages(const struct space *space, FILE *file);
void stats_print(const struct engine_counters *counters, FILE *file);

#endif
