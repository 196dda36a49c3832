/*
 * Which call of an allocator gave a block of the heap, and which took it back: the threads are replayed twice
 * with its functions probed, once for the calls and where they return to, once for what they return there.
 */
#ifndef BUGNET_DEBUG_ALLOCATIONS_H
#define BUGNET_DEBUG_ALLOCATIONS_H

#include "debug/accesses.h"
#include "replay/explorer.h"

/* How a function of the kind is told how much is wanted. */
enum allocator_kind {
	ALLOCATES_FIRST,   /* malloc */
	ALLOCATES_SECOND,  /* realloc, aligned_alloc, memalign */
	ALLOCATES_PRODUCT, /* calloc */
	FREES_FIRST,       /* free */
};

struct allocator {
	uint64_t pc; /* of its first instruction */
	enum allocator_kind kind;
};

struct allocation {
	uint32_t thread;   /* number, in struct accesses */
	uint64_t position; /* of the first instruction of the allocator */
	uint64_t start, size;
	uint64_t since, until; /* stamps of the thread's operations before and behind it */
};

/* A call that gives a block back. */
struct freed {
	uint32_t thread; /* number */
	uint64_t position, pc;
	uint64_t start;
};

struct allocations {
	VECTOR(struct allocation) items;
	VECTOR(struct freed) frees; /* of each thread by position, one thread behind the other */
};

/* False: `why` tells. Either way allocations_deinit is called in the end. */
bool allocations_find(struct allocations *allocations, const struct accesses *accesses,
        struct explorer *explorer, const struct allocator *allocators, unsigned count, char *why,
        size_t why_size);
void allocations_deinit(struct allocations *allocations);

/* Notes in `accesses`, behind the steps of each thread, which words that threads share it has freed, and
 * where: as large as the smallest block that was ever there. */
void allocations_note_frees(const struct allocations *allocations, struct accesses *accesses);

/*
 * The last one of that address before a step of a thread. NULL: there is none, or two threads have
 * allocated there and nothing tells who was later.
 */
const struct allocation *allocations_last(const struct allocations *allocations,
        const struct accesses *accesses, uint32_t thread, uint32_t step, uint64_t address);

#endif
