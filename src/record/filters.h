/*
 * Seccomp filters of a program that was running already. Its threads are stopped, under ptrace.
 *
 * A filter may answer a call that it does not know with death, and sees the calls that are made in the
 * program's name as it sees the program's own. The kernel lets those who have CAP_SYS_ADMIN put filters to
 * sleep while they trace a thread, and read them. So it is known beforehand which calls the stub may make by
 * itself; the others are made for it, see assist.h.
 */
#ifndef BUGNET_RECORD_FILTERS_H
#define BUGNET_RECORD_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attachment;
struct memory;

enum filters {
	FILTERS_NONE,   /* it has none */
	FILTERS_PERMIT, /* all that the stub does */
	FILTERS_FORBID, /* some of it */
};

/* What a thread may call, until we let go of it. False: the kernel does not let us. */
bool filters_sleep(pid_t tid);
/* Has any of its threads filters? */
bool filters_there(const struct attachment *attachment);
/* The same for all threads that have filters. */
bool filters_sleep_all(const struct attachment *attachment, char *why, size_t why_size);
/* Could they be put to sleep? The thread runs on. */
bool filters_could_sleep(pid_t tid, const struct memory *memory, char *why, size_t why_size);
/* What they have: attachment.filters. False, with the reason in `why`: nothing can be done with such filters.
 */
bool filters_judge(struct attachment *attachment, char *why, size_t why_size);

#endif
