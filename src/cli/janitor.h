/* A directory that is removed when we end, however we end: also by SIGKILL. */
#ifndef BUGNET_CLI_JANITOR_H
#define BUGNET_CLI_JANITOR_H

#include <sys/types.h>

struct janitor {
	pid_t pid; /* of the process that waits for our end, or 0 */
	int fd;    /* open as long as we are there */
};

/* Without a process for it the directory is removed by janitor_end alone. */
void janitor_begin(struct janitor *janitor, const char *directory);
void janitor_end(struct janitor *janitor, const char *directory);

#endif
