/*
 * Races: pairs of accesses to the same bytes by two threads, one of which stores, that no
 * synchronisation orders.
 *
 * What synchronises (happens before) is what the processor and the kernel order for the program on
 * purpose: locked instructions on the same word, and plain loads and stores of words that
 * some thread uses with locked instructions or that a thread waits for in a loop (on this
 * processor a plain store releases and a plain load acquires: so unlock by mov and
 * atomic loads are seen as what they are); the making and the end of threads; futexes; signals that
 * are sent; and what is written to and read from descriptors.
 *
 * An instruction that loads and stores but is not locked changes nothing atomically: it races also on words
 * that others use with locked instructions.
 *
 * To free a block is to store to all of it, if allocations_note_frees has told who did. So is to unmap
 * memory, or to have it emptied, and what system calls read from and write to buffers is loaded and stored by
 * the thread that makes them, if call_accesses_note has told of that: a buffer is read before anybody can
 * know what was in it, and written when what the call waited for has happened.
 */
#ifndef BUGNET_DEBUG_RACES_H
#define BUGNET_DEBUG_RACES_H

#include "debug/order.h"

struct race_access {
	uint32_t thread, step; /* numbers, in struct accesses */
};

/* Pairs with the same two instructions. */
struct race {
	struct race_access first, second; /* an example, in the order found */
	uint64_t count;
	uint32_t words; /* different ones, up to some */
	bool saw;       /* the second loads what the first stored, in the example */
	bool ordered;   /* which came first is known, in the example */
	bool both_store;
	bool spins;       /* on a word that a thread waits for in a loop */
	uint64_t address; /* of the first byte that both access */
};

struct races {
	VECTOR(struct race) races; /* most suspicious first */
};

/* Says of a race whether it is one. */
enum race_kind {
	RACE_PLAIN,
	RACE_OF_ATOMIC, /* the address is atomic by its type: accesses to it are none, but synchronise; */
	RACE_BY_ATOMIC_TYPE, /* and so is all that these instructions access; */
	RACE_BY_ATOMICS,     /* these two instructions do, and not what else accesses the same */
};

typedef enum race_kind race_judge(void *context, uint64_t address, uint64_t first_pc, uint64_t second_pc);

/* The judge may be NULL. */
void races_find(struct races *races, const struct accesses *accesses, const struct order *order,
        race_judge *judge, void *context);
void races_deinit(struct races *races);

#endif
