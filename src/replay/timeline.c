#include "replay/timeline.h"

#include <stdlib.h>

static int compare_stretches(const void *a, const void *b)
{
	uint64_t left = (*(const struct section *const *)a)->id,
	         right = (*(const struct section *const *)b)->id;

	return (left > right) - (left < right);
}

bool timeline_read(struct timeline *timeline, const struct reader *reader)
{
	*timeline = (struct timeline){.stretches = calloc(reader->count + 1, sizeof *timeline->stretches)};
	if (!timeline->stretches)
		return false;
	for (size_t i = 0; i < reader->count; i++) {
		if (reader->sections[i].type == SECTION_STRETCH)
			timeline->stretches[timeline->count++] = &reader->sections[i];
	}
	qsort(timeline->stretches, timeline->count, sizeof *timeline->stretches, compare_stretches);
	for (size_t i = 0; i < timeline->count; i = timeline_next_thread(timeline, i))
		timeline->threads++;
	return true;
}

void timeline_deinit(struct timeline *timeline)
{
	free(timeline->stretches);
	*timeline = (struct timeline){0};
}

size_t timeline_next_thread(const struct timeline *timeline, size_t i)
{
	size_t next = i;

	while (next < timeline->count &&
	        stretch_thread(timeline->stretches[next]) == stretch_thread(timeline->stretches[i]))
		next++;
	return next;
}
