/*
 * One order of everything that the threads of a recording did to shared memory: it respects
 * every stamp, and every loaded value is that of the last store before it, by whomever, or
 * came from outside.
 *
 * Stamps leave much open: plain accesses between them are ordered by their values. The order
 * is found by running all threads' steps together over one memory. A load that memory has
 * another value for waits until the thread that stores it has done so; a store waits until those
 * who still have to load the old value have done so. As on the processor, a store may become
 * visible after loads that follow it in its thread, but not after its next operation.
 *
 * What cannot be explained is said: a load of a value that no thread ever stored came from
 * outside (the kernel, another process); and where some thread stored it, but no order was
 * found in which that is the last store, the load is unordered. Nothing is invented for it.
 */
#ifndef BUGNET_DEBUG_ORDER_H
#define BUGNET_DEBUG_ORDER_H

#include "debug/accesses.h"

enum order_source {       /* where a load's value is from */
	SOURCE_NONE,      /* it is no load */
	SOURCE_INITIAL,   /* it was there before anybody's store */
	SOURCE_OWN,       /* the thread's own last store to the word */
	SOURCE_OTHER,     /* another thread's */
	SOURCE_OUTSIDE,   /* nobody's */
	SOURCE_UNORDERED, /* some store's, but of which, and when, is not known */
};

/* A step takes place, or a store that took place becomes visible to others. */
struct order_event {
	uint32_t thread, step; /* numbers, in struct accesses */
	uint8_t source;        /* enum order_source */
	bool visible;          /* it is a store that others see from now on; else it is the step itself */
	bool delayed;          /* a step with a store that others do not see yet */
};

struct order {
	VECTOR(struct order_event) events;
	uint64_t sources[SOURCE_UNORDERED + 1];
};

/* False: the stamps contradict each other; `why` tells. */
bool order_find(struct order *order, const struct accesses *accesses, char *why, size_t why_size);
void order_deinit(struct order *order);

/* Goes through the order once more, as anybody can, and compares: false: `why` tells where it is wrong. */
bool order_verify(const struct order *order, const struct accesses *accesses, char *why, size_t why_size);

#endif
