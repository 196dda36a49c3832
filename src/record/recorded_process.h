/*
 * A process that is recorded: its recorder, the logs of its threads and their keyframes.
 *
 * The first one is the program itself. With --children every process of the tree is one, and
 * has a recording of its own: a program that is executed from its first instruction on, the
 * child of a fork from behind that call on.
 */
#ifndef BUGNET_RECORD_RECORDED_PROCESS_H
#define BUGNET_RECORD_RECORDED_PROCESS_H

#include "record/budget.h"
#include "record/control.h"
#include "record/keyframes.h"
#include "record/recorder.h"

struct recorded_process;

/*
 * Begins to record process `pid` with this recorder, which it takes over, or with one of its own if
 * that is NULL; `options` are those of the program. `forked`: the process it is a copy of, or 0. NULL,
 * after saying why: it goes on without being recorded.
 */
struct recorded_process *recorded_process_create(struct recorder *recorder,
        const struct recorder_options *options, pid_t pid, pid_t forked, struct space *space,
        struct memory *memory);

/* Who is being served: code that is translated from now on is for this thread; NULL: nobody. */
void recorded_process_asks(struct recorded_process *recorded, const struct mailbox *mailbox);
/* The process has moved to a copy of its code cache. */
void recorded_process_moved(struct recorded_process *recorded, struct space *space);

/* What is in the log of thread `number` is taken: LOG_*. */
enum status recorded_process_log(struct recorded_process *recorded, uint64_t number, unsigned reason);

/* Where its threads are. */
struct process_place {
	uint32_t id;
	int32_t tid;
	uint64_t distance;      /* of its own memory */
	const uint8_t *vectors; /* LOG_XSAVE */
	uint64_t position;
	bool calls; /* it is in a system call, which the position is before */
	bool runs;  /* it is in translated code, or on its way there */
};
struct process_places {
	uint32_t count;
	struct process_place items[MAX_RECORDED_THREADS];
};
void recorded_process_places(
        struct recorded_process *recorded, const struct memory *memory, struct process_places *places);

/* When to look after keyframes next. */
uint64_t recorded_process_next_look(const struct recorded_process *recorded);
/* Not later than now. */
void recorded_process_look_now(struct recorded_process *recorded);
void recorded_process_look(struct recorded_process *recorded, const struct memory *memory, uint64_t now,
        struct stragglers *stragglers);

/* A file is wanted while the program goes on. */
struct save_wish {
	struct save_reason reason; /* texts are copied */
	int client;                /* who is to be answered, see control.h; -1: nobody */
	struct mailbox *mailbox;   /* of a thread that waits for it; NULL: none does */
	bool still;                /* all threads stand still: nobody has to make a keyframe for it */
	/* Told when the file is there, from another thread; or NULL: the client is. */
	void (*done)(void *argument, const struct save_outcome *outcome);
	void *argument;
};
/* False: there is no ring to make it of. The thread and the client are not answered then. */
bool recorded_process_save(struct recorded_process *recorded, const struct save_wish *wish);
/* Makes the files that are wanted, when the threads are ready for it. */
void recorded_process_look_after_saves(
        struct recorded_process *recorded, const struct memory *memory, uint64_t now);
bool recorded_process_is_saving(const struct recorded_process *recorded);

/*
 * What recording it costs, now and then: changes intervals, asks for keyframes, or advises to let it go,
 * after saying why. `waited`: ns that its threads have waited for us so far.
 */
enum budget_advice recorded_process_look_at_costs(
        struct recorded_process *recorded, const struct memory *memory, uint64_t waited, uint64_t now);

/* A line about it, for `bugnet ps`. */
void recorded_process_tell(
        struct recorded_process *recorded, const struct memory *memory, char *text, size_t size);

/* So many threads were not recorded, or not to their ends. */
void recorded_process_note_unrecorded(struct recorded_process *recorded, uint32_t threads);

/*
 * The process ends, or has ended: what its threads left is all there will be. `executed`: by execve.
 * `memory`: it is about to end, and threads that run can be asked how far they are; else NULL.
 */
void recorded_process_finish(struct recorded_process *recorded, const struct memory *memory, bool executed);
/* Finishes if that was not done. NULL is nobody. */
void recorded_process_destroy(struct recorded_process *recorded);

#endif
