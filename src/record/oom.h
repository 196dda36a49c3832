/*
 * Was it the kernel that killed, for lack of memory? SIGKILL does not say whose it was; but the control group
 * counts the processes in it that were killed so.
 *
 * We are in the same group as a rule, and what we have counts there. Our own oom_score_adj is left as it is,
 * which is the program's: made worse, we would go first and take what is recorded of a program that leaks
 * with us; made better, the program would have to go for memory that is ours.
 */
#ifndef BUGNET_RECORD_OOM_H
#define BUGNET_RECORD_OOM_H

#include <stdbool.h>
#include <sys/types.h>

struct oom_watch {
	int fd;       /* of the group's counters; -1: it has none, or nobody may read them */
	long counted; /* at the beginning */
};

void oom_watch_begin(struct oom_watch *watch, pid_t pid);
/* Were processes of the group killed since? */
bool oom_watch_killed(const struct oom_watch *watch);
void oom_watch_end(struct oom_watch *watch);

#endif
