/*
 * Where shadows go. A thread's shadow lies at one distance from all of the program's
 * memory, so it is decided at the start where memory may be (the windows), and then
 * for each thread how far away it is free everywhere.
 */
#ifndef BUGNET_RECORD_SHADOW_PLAN_H
#define BUGNET_RECORD_SHADOW_PLAN_H

#include "record/maps.h"
#include "target/layout.h"

struct shadow_plan {
	struct range windows[MAX_WINDOWS];
	unsigned window_count;
	uint64_t distances[MAX_RECORDED_THREADS]; /* [0] is not used */
	unsigned thread_count;                    /* numbers below it have a distance */
	bool low_memory;
};

/*
 * `library` is an address where the kernel puts mappings, `stack` one of the stack,
 * [low, high) the executable. The segments of our own are inside the windows.
 */
void shadow_plan(struct shadow_plan *plan, const struct maps *maps, uint64_t library, uint64_t stack,
        uint64_t low, uint64_t high);

#endif
