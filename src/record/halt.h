/*
 * Stopping a thread of the program for a moment, and taking it out of translated code.
 * ptrace is used for this alone while a program runs.
 */
#ifndef BUGNET_RECORD_HALT_H
#define BUGNET_RECORD_HALT_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/memory.h"
#include "record/space.h"

struct halted {
	pid_t tid;
	int signal;   /* that it was about to receive */
	bool stopped; /* as the whole process is, by a signal of job control */
	bool further; /* halt_settle: it must come to another instruction than the one it is at, which a load
	                 that missed may have begun */
	const struct memory *memory;
};

/* Threads that are still traced although they should not be: to be let go once they stop, or reaped. */
struct stragglers {
	pid_t *items;
	uint32_t count, capacity;
};

enum halt_outcome {
	HALT_SAFE,
	HALT_UNSAFE,  /* not at a place like that: it will be elsewhere soon */
	HALT_GONE,    /* it has ended, or is about to */
	HALT_REFUSED, /* a debugger has it, it may not be traced, or it is stuck */
};

/* Stops the thread. Unless it is HALT_SAFE it is not ours any more, or a straggler. */
enum halt_outcome halt_stop(
        struct halted *thread, pid_t tid, const struct memory *memory, struct stragglers *stragglers);

/*
 * A thread that is in translated code is stepped to the next boundary between two program
 * instructions and put at `entry` of the stub (an offset in segment 0) with its state in thread.regs,
 * as a signal handler of the stub would do it. *moved: so it was. HALT_SAFE without that: it holds no
 * address of the code cache.
 */
enum halt_outcome halt_settle(const struct space *space, struct halted *thread, uint64_t entry, bool *moved);
/* Puts it at `entry`, wherever it is. */
void halt_put(const struct space *space, const struct halted *thread, uint64_t entry);
/* Where it is settled: what the x87 unit remembers of the code cache becomes the program's. */
void halt_mend_x87(const struct space *space, const struct halted *thread);
/* It goes on, also with a system call that ended only because it was stopped. */
void halt_let_go(const struct halted *thread, struct stragglers *stragglers);

#endif
