/*
 * A program that is debugged while it is recorded: brings all its threads to a standstill, each between two
 * instructions of the program, tells a debugger so, and does what that asks for.
 *
 * The debugger is another process, at the other end of a socket for packets. It asks for one thing at a time.
 * The program stands still from its first instruction on; HOLD_GO lets it go, and some time later HOLD_STANDS
 * says that it stands again, or HOLD_ENDS that it is about to end, or has: the recording is there then. A
 * debugger that goes without a word takes a program that it has started with it.
 */
#ifndef BUGNET_RECORD_HOLD_H
#define BUGNET_RECORD_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "record/halt.h"
#include "record/hold_messages.h"
#include "record/recorded_process.h"

/* ---- the supervisor's side ---- */

/* The process that is debugged, as it is at the moment. */
struct hold_process {
	pid_t pid;
	struct channel *channel;
	struct space *space;
	struct memory *memory;
	struct recorded_process *recorded;
};

struct hold;

struct hold *hold_create(int fd);
void hold_destroy(struct hold *hold);

/* The program is in place, and nobody runs yet. */
void hold_begin(struct hold *hold, const struct hold_process *process);
/*
 * What the debugger asked for is done. False: it has gone. *leave: it wants the program to go on natively.
 */
bool hold_serve(struct hold *hold, const struct hold_process *process, bool *leave);
/* Brings threads that still run to a standstill; to be called until hold_next_look says never. */
void hold_look(
        struct hold *hold, const struct hold_process *process, uint64_t now, struct stragglers *stragglers);
uint64_t hold_next_look(const struct hold *hold);

/* Is the thread that asks for code at a place to stop at? */
bool hold_stops(struct hold *hold, const struct space *space, const struct mailbox *mailbox);
/* OP_HELD, OP_EXIT: answered later. */
enum status hold_stands(struct hold *hold, const struct hold_process *process, struct mailbox *mailbox);
enum status hold_exits(struct hold *hold, const struct hold_process *process);
/* The process has ended, or is another program, and its recording is finished. */
void hold_ended(struct hold *hold, pid_t pid);
/* It leaves: nobody stands still any more. */
void hold_release(const struct hold_process *process);

#endif
