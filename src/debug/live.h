/*
 * The program itself, while it is recorded and debugged: it stands still, runs until it stands again, or has
 * come to its end. This is the debugger's end of record/hold.h.
 */
#ifndef BUGNET_DEBUG_LIVE_H
#define BUGNET_DEBUG_LIVE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "record/hold_messages.h"
#include "replay/state.h"

enum live_state {
	LIVE_STANDS,
	LIVE_ENDS,  /* it is about to end: the recording of all of it is there */
	LIVE_ENDED, /* it has, or nobody knows what became of it */
};

struct live {
	int link; /* to the supervisor */
	pid_t pid;
	bool attached;      /* it was running before: nobody tells us how it ends */
	int memory;         /* of the process; -1: not open */
	char end[PATH_MAX]; /* the recording, when it has ended */
	enum live_state state;
	struct hold_event last; /* why it stands, and where its threads do */
	bool reaped;            /* and `status` is as wait() has it, unless it was attached to */
	int status;
	/* Has the user asked for it to stop, at the terminal? */
	volatile sig_atomic_t *asked;
	/* The terminal is the program's now, or the debugger's again; or NULL. */
	void (*turn)(void *context, bool program);
	void *context;
};

/* The program has been started, or attached to, and is about to stand. False: `why` tells. */
bool live_begin(struct live *live, char *why, size_t why_size);
void live_close(struct live *live);

/* What to do until it stands again. */
struct live_run {
	uint32_t step; /* the thread that executes one instruction, by its id; HOLD_NOBODY: all run */
	bool others;   /* run, too */
	const uint64_t *stops;
	uint32_t stop_count;
	uint64_t passed;       /* signals that it does not stand still for */
	unsigned milliseconds; /* after which it is stopped; 0: never */
	bool (*interrupted)(void *context);
	void *context;
};
/* *interrupted: it was stopped because the user wanted it to be. */
void live_go(struct live *live, const struct live_run *run, bool *interrupted);

bool live_registers(struct live *live, uint32_t thread, struct state *state);
size_t live_read(struct live *live, uint64_t address, void *to, size_t size);
/* A recording of all up to now. False: `why` tells. */
bool live_save(struct live *live, const char *path, char *why, size_t why_size);

/* It comes to its end, of which `status` tells then. */
void live_end(struct live *live);
void live_kill(struct live *live);
/* It goes on natively. */
void live_leave(struct live *live);

#endif
