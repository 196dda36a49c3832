/*
 * Where shadows go. A thread's shadow lies at one distance from all of the program's
 * memory, so it is decided at the start where memory may be (the windows), and then
 * for each thread how far away it is free everywhere.
 *
 * There is room for the windows of a few hundred threads. So others have their shadow
 * only where they touch memory, made when they do: planned are distances at which
 * their homes are free, which is where all threads touch memory (our segments, the libraries next to
 * one, the executable next to the other). These distances are multiples of one step, so two threads
 * can come into each other's way only by memory that is further apart than that, and the first of
 * them are far from each other.
 */
#ifndef BUGNET_RECORD_SHADOW_PLAN_H
#define BUGNET_RECORD_SHADOW_PLAN_H

#include "record/maps.h"
#include "target/layout.h"

/* How much room is left around what is there; see shadow_plan. Memory elsewhere gets its shadow when it
 * comes. */
struct shadow_reach {
	uint64_t libraries, libraries_up; /* below and above where the kernel puts mappings */
	uint64_t stack;                   /* below the stack's top */
	uint64_t heap;                    /* above the executable, and above the heap's start */
	uint64_t chunk;                   /* that is added at a time */
};

/* Where the program has its memory at the start. */
struct shadow_places {
	uint64_t library; /* where the kernel puts mappings */
	uint64_t stack;
	struct range executable; /* or nothing */
	struct range segments[MAX_SEGMENTS];
	unsigned segment_count;
};

struct shadow_plan {
	struct range windows[MAX_WINDOWS];
	unsigned window_count;
	uint64_t distances[MAX_RECORDED_THREADS]; /* [0] is not used */
	unsigned windowed;                        /* numbers below it have windows, */
	unsigned thread_count;                    /* numbers below this a distance */
	struct range homes[MAX_SEGMENTS];
	unsigned home_count;
	uint64_t home_step;
	bool low_memory;
};

/* For at most `threads` numbers. The segments of our own are inside the windows. */
void shadow_plan(struct shadow_plan *plan, const struct maps *maps, const struct shadow_places *places,
        const struct shadow_reach *reach, unsigned threads);
/* What the shadow of one thread takes. */
uint64_t shadow_plan_bytes(const struct shadow_plan *plan);

#endif
