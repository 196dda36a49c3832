/* What a debugger and the supervisor say to each other, see hold.h: a struct is a packet. */
#ifndef BUGNET_RECORD_HOLD_MESSAGES_H
#define BUGNET_RECORD_HOLD_MESSAGES_H

#include <limits.h>
#include <stdint.h>

#include "target/layout.h"

#define HOLD_STOPS  4096 /* instructions to stop at, at most */
#define HOLD_NOBODY UINT32_MAX

/* ---- what the debugger says ---- */

enum hold_asks {
	HOLD_STOP,      /* all threads are to stand still: HOLD_STANDS comes */
	HOLD_GO,        /* on with it */
	HOLD_REGISTERS, /* of a thread: struct hold_registers comes */
	HOLD_SAVE,      /* what is recorded so far, as a file: HOLD_SAVED comes */
	HOLD_LEAVE,     /* the program goes on natively, and we end */
};

struct hold_request {
	uint32_t kind;
	uint32_t thread; /* by its id in the recording. HOLD_GO: executes one instruction; or HOLD_NOBODY */
	uint32_t others; /* HOLD_GO with a thread: the others run meanwhile */
	uint32_t stop_count;
	uint64_t passed; /* HOLD_GO: signals, by their bits, that are delivered without standing still */
	union {
		uint64_t stops[HOLD_STOPS]; /* HOLD_GO: the instructions to stop at */
		char path[PATH_MAX];        /* HOLD_SAVE */
	};
};

/* ---- what it is told ---- */

enum hold_tells { HOLD_STANDS, HOLD_ENDS, HOLD_REGISTERS_ARE, HOLD_SAVED };

enum hold_reason {
	HOLD_WANTED, /* the debugger wanted it, or it has just begun */
	HOLD_AT_STOP,
	HOLD_STEPPED,
	HOLD_SIGNAL,
};

struct hold_thread {
	uint32_t id;
	int32_t tid;
	uint64_t position;
};

struct hold_event {
	uint32_t kind; /* HOLD_STANDS, HOLD_ENDS */
	uint32_t reason;
	uint32_t thread; /* whose reason it is, or HOLD_NOBODY */
	uint32_t signal;
	int32_t pid;
	uint32_t waits; /* HOLD_ENDS: HOLD_GO has it end; else it has ended */
	uint32_t thread_count;
	struct hold_thread threads[MAX_RECORDED_THREADS];
};

struct hold_registers {
	uint32_t kind;
	uint32_t known;
	uint64_t position;
	struct registers registers;
	uint64_t fs_base, gs_base;
	uint32_t xsave_size;
	uint8_t xsave[VECTORS_BYTES];
};

struct hold_saved {
	uint32_t kind;
	char why[512]; /* "": the file is there */
};

#endif
