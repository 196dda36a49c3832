/*
 * The supervisor: serves the requests of all processes of a tree, follows them
 * through fork and execve, and ends when the last of them does.
 */
#ifndef BUGNET_RECORD_SUPERVISOR_H
#define BUGNET_RECORD_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct recorder_options;

struct supervisor_options {
	bool stats;
	bool children;
	bool count;
	uint64_t cache;                        /* see struct launch_options */
	const struct recorder_options *record; /* NULL: the program is only run */
	bool debugged;                         /* by somebody at the other end of `debugger`, see hold.h */
	int debugger;
};

/*
 * Takes `pid` over at its next execve, which it makes after a byte could be read
 * from `ready_fd`. Returns the supervisor's exit status when nobody is left.
 */
int supervise(pid_t pid, const struct supervisor_options *options, int ready_fd);

/*
 * Takes over a program that is running already, and returns 0 when it has ended or was let go.
 * SUPERVISED_NOBODY: it ended, or executed another program than the one to be recorded, before it could be
 * taken over. Otherwise it was said why it could not be.
 */
#define SUPERVISED_NOBODY 2
int supervise_running(pid_t pid, const struct supervisor_options *options);

#endif
