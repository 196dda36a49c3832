/* What /proc tells of a process. */
#ifndef BUGNET_RECORD_PROCESS_FACTS_H
#define BUGNET_RECORD_PROCESS_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where /proc/PID/NAME leads, as "exe" and "cwd"; false, with errno set and an empty path: that cannot be
 * told. */
bool process_link(pid_t pid, const char *name, char path[PATH_MAX]);

/* The arguments it was started with, ended by NULL. They and their text, *text, are to be freed. */
char **process_arguments(pid_t pid, char **text);

/* /proc/PID/stat from the process's state on, which comes behind its name; false: it is gone. */
#define PROCESS_STAT_SIZE 1024
bool process_stat(pid_t pid, char text[PROCESS_STAT_SIZE]);

/* Has the process, or the thread, ended, or is it about to, also if its parent does not know yet? */
bool process_is_over(pid_t pid);

bool process_is_kernels(pid_t pid);

/* By a signal, such as SIGSTOP; not by who traces it. */
bool process_is_stopped(pid_t pid);

/* What it was executed as, which may be a link to, or a script for, what "exe" leads to; false: nobody can
 * tell. */
bool process_called(pid_t pid, char path[PATH_MAX]);

/*
 * Has the whole process ended? *signal: what killed it, or 0: nobody can tell, or it was no signal. Until its
 * parent has been told /proc says so where the process is ours, and from Linux 6.15 on a pidfd that was open
 * before, or -1, says it afterwards.
 */
bool process_has_ended(pid_t pid, int pidfd, int *signal);

/* The name of a thread, cut to `size`; empty: it is gone. */
void process_thread_name(pid_t pid, pid_t tid, char *name, size_t size);

/* The number behind NAME: in /proc/PID/status; -1: there is none. */
long process_status(pid_t pid, const char *name);

#endif
