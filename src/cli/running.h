/* What is being recorded now, as its supervisors tell. */
#ifndef BUGNET_CLI_RUNNING_H
#define BUGNET_CLI_RUNNING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct running {
	pid_t pid;
	unsigned threads;
	uint64_t age;          /* ns since it began */
	uint64_t ring, used;   /* bytes; ring 0: everything goes to a file */
	uint64_t instructions; /* in the ring */
	uint64_t window;       /* ns that they reach back */
	uint64_t dropped;      /* instructions that are gone */
	uint64_t pieces;       /* of the code history */
	double slowdown;       /* times natively, an estimate; 0: too early to tell */
	uint64_t memory;       /* bytes that recording takes; 0: nobody asked for a limit */
	uint64_t interval;     /* instructions from one keyframe to the next; 0: times */
	const char *program;
};

/* *silent: a supervisor that does not answer, see CONTROL_SILENT; or 0. */
void running_each(void (*found)(void *context, const struct running *running), void *context, pid_t *silent);

/* The socket of the supervisor of this process; false: it is not recorded, or *silent may do so. */
bool running_find(pid_t pid, char socket[PATH_MAX], pid_t *silent);

/* Why running_find has found nobody, as far as the kernel lets us know, and what to do. */
void running_explain(const char *command, pid_t pid);

/* What is recorded of this user's processes by somebody whom only root can ask; false: nothing. It is told on
 * standard error. */
bool running_tell_others(const char *command);

#endif
