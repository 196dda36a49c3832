/* Where every thread of a recording stands at one time, also at another one than the debugger is at. */
#ifndef BUGNET_DEBUG_WHEREABOUTS_H
#define BUGNET_DEBUG_WHEREABOUTS_H

#include "debug/debugger.h"

enum whereabouts_state {
	WHEREABOUTS_TO_COME, /* it was not there yet */
	WHEREABOUTS_RUNNING,
	WHEREABOUTS_CALL,  /* in a system call, or about to make it: `number` */
	WHEREABOUTS_CUT,   /* where what was recorded of it ends */
	WHEREABOUTS_ENDED, /* it was not there any more */
	WHEREABOUTS_ENDS,  /* where it ends, */
	WHEREABOUTS_DIES,  /* the program is killed by a signal, `number`, */
	WHEREABOUTS_EXITS, /* or exits, with a status, `number` */
	WHEREABOUTS_UNKNOWN,
};

struct whereabouts {
	enum whereabouts_state state;
	struct place place;
	uint64_t pc; /* 0: it has none */
	int64_t number;
};

/* Where the threads stand now: debugger->thread_count of them, by their index; to be freed. */
struct whereabouts *whereabouts_now(struct debugger *debugger);
/* When this thread is about to execute the instruction at the position. The debugger stays where it is. */
struct whereabouts *whereabouts_at(struct debugger *debugger, uint32_t thread, uint64_t position);

#endif
