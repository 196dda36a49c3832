/*
 * Waits for a program to be started, by anybody. No privileges are needed: inotify tells that the file was
 * opened, and /proc who runs it. Without the first, as where only a name is known, /proc is looked at again
 * and again.
 */
#ifndef BUGNET_RECORD_START_WATCH_H
#define BUGNET_RECORD_START_WATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/vector.h"

/* A process, also when its number is another's one day. */
struct started {
	pid_t pid;
	uint64_t time;
};

struct start_watch {
	char path[PATH_MAX];          /* of the executable; empty: only its name is known */
	const char *name;             /* as it was given */
	int inotify;                  /* tells that the file is opened, or -1 */
	VECTOR(struct started) known; /* who runs it, and is not meant */
};

/*
 * `name`: a path, or a name that is looked for in $PATH; if it is not there, any executable of that name is
 * meant. Processes that run it by now do not count. False, with the reason in `why`: there is no such file.
 */
bool start_watch_begin(struct start_watch *watch, const char *name, char *why, size_t why_size);

/* The next one that may be looked at; waits for it. */
pid_t start_watch_next(struct start_watch *watch);

void start_watch_end(struct start_watch *watch);

#endif
