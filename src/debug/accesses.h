/*
 * What the threads of a recording did to memory that they share, and how they were ordered:
 * each thread's loads and stores of shared words, its locked instructions, system calls and
 * signals with their stamps, one behind the other. It is found by replaying three times: once for
 * the pages that each thread touches, once for the words in those that several touch, once for the accesses
 * to these.
 *
 * A word is shared if more than one thread accesses it and one of them stores to it; and so is
 * the one by which the kernel tells that a thread has ended.
 */
#ifndef BUGNET_DEBUG_ACCESSES_H
#define BUGNET_DEBUG_ACCESSES_H

#include "debug/word_map.h"
#include "record/index.h"
#include "record/vector.h"
#include "recording/thread.h"
#include "replay/recorded.h"

enum step_kind {
	STEP_START,     /* of the thread, or of what was kept of it */
	STEP_ACCESS,    /* to one 8-byte word */
	STEP_OPERATION, /* a locked instruction; its accesses follow, as part of it */
	STEP_CALL,      /* a system call is made; */
	STEP_RETURN,    /* it returns */
	STEP_SIGNAL,    /* a handler is entered */
	STEP_END,
	/* Behind all others, and not in the order: see races.h. */
	STEP_BESIDE,
	STEP_CALL_LOADS = STEP_BESIDE, /* a system call reads the word, */
	STEP_CALL_UNMAPS,              /* or it is gone with it, */
	STEP_CALL_STORES,              /* or written; the number of the call is arguments[0] */
	STEP_FREE,                     /* the block that the word is a part of is given back */
};

struct step {
	uint64_t position, pc;
	uint64_t address; /* of the word; call, return: number of the call */
	uint64_t before, after;
	/* call, return: the result is `before`, */
	uint64_t arguments[4]; /* and these are the first arguments */
	uint64_t stamp, since; /* all but accesses; since: if it is loose, else stamp - 1 */
	uint32_t word;         /* access: the number of the word; operation: of its line; else NO_WORD */
	uint8_t kind;          /* enum step_kind */
	uint8_t reads, writes; /* bytes of the word */
	bool locked;           /* access: of the operation before it */
	bool kernel;           /* access: the kernel's, when the thread had ended */
	bool loose;
	bool pair; /* return of pipe and the like: the two descriptors are in arguments[2] and [3] */
};
#define NO_WORD   UINT32_MAX
#define NO_THREAD UINT32_MAX

struct accessing_thread {
	uint32_t id;
	struct thread_record record;
	uint32_t maker,
	        made_by;  /* number of the thread that made it, and of the step; NO_THREAD: not known */
	uint64_t cleared; /* where the kernel stores 0 when it has ended, or 0 */
	VECTOR(struct step) steps;
};

struct accesses {
	struct accessing_thread *threads; /* by id, ascending */
	uint32_t thread_count;
	struct word_map word_map; /* address -> number */
	VECTOR(uint64_t) words;   /* addresses */
	uint64_t *initial;        /* what was in them before the first instruction; NULL: not known */
	struct index line_index;
	VECTOR(uint64_t) lines; /* of locked instructions */
	uint64_t traced;        /* accesses that were looked at */
	uint64_t instructions;
};

struct call_accesses;

/* What `calls` access counts as accessed, too; NULL: it does not. False: `why` tells. Either way
 * accesses_deinit is called in the end. */
bool accesses_collect(struct accesses *accesses, const struct recorded *recorded,
        const struct call_accesses *calls, char *why, size_t why_size);
void accesses_deinit(struct accesses *accesses);

#endif
