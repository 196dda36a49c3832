/*
 * A program that is running already: all its threads are stopped, wherever they are, looked at,
 * and later set on their way into translated code.
 *
 * The kernel's rules for ptrace decide who may do that. Until inject() succeeds nothing of the
 * program is changed, and attachment_abandon() lets it go on as if nothing had been.
 */
#ifndef BUGNET_RECORD_ATTACH_H
#define BUGNET_RECORD_ATTACH_H

#include <limits.h>
#include <sys/user.h>

#include "record/filters.h"
#include "record/halt.h"
#include "target/layout.h"

struct attached_thread {
	struct halted halted;
	struct user_regs_struct registers; /* the program's, with a call it was in yet to be made */
	uint64_t mask;                     /* of signals */
	bool looked_at;                    /* all of that is known, and all signals are blocked */
	bool adopted;                      /* the stub has room for it */
};

struct attachment {
	pid_t pid;
	struct attached_thread *items; /* threads, the first is the process's first */
	uint32_t count, capacity;
	struct stragglers stragglers;
	enum filters filters;
	bool sleeps; /* they permit to wait by futex */
};

/* The file that it runs. False, with the reason in `why`: there is no such process, or it runs no program. */
bool attachment_program(pid_t pid, char program[PATH_MAX], char *why, size_t why_size);

/* Stops all threads of a program that can be taken over. False, with the reason in `why`: it goes on. */
bool attachment_begin(
        struct attachment *attachment, pid_t pid, const struct memory *memory, char *why, size_t why_size);
/* The same for one that we know already. */
bool attachment_stop(
        struct attachment *attachment, pid_t pid, const struct memory *memory, char *why, size_t why_size);
/* Did a system call end only because the thread was stopped? */
bool attached_call_is_undone(const struct user_regs_struct *r);
/* Is it in a call of the program's that it makes from the stub, which has done nothing yet, and ended only
 * for that reason? */
bool attached_is_calling(const struct space *space, const struct user_regs_struct *r);
/* What the stub is to know of the threads is put into the logs of the space. */
void attachment_describe(const struct attachment *attachment, struct space *space);
/* The first thread goes on; the stub runs in it. With FILTERS_FORBID it is still traced, so that its filters
 * sleep. */
void attachment_start(struct attachment *attachment);
/*
 * The stub has prepared everything: all others go on, too. Nothing is left of the attachment. With
 * FILTERS_FORBID those in `traced` are still traced.
 */
void attachment_finish(struct attachment *attachment, const struct space *space, struct stragglers *traced);
/* Lets go of everything, unchanged. */
void attachment_abandon(struct attachment *attachment);

#endif
