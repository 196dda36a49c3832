/*
 * How others reach the supervisor of a program that is being recorded: a socket in the user's runtime
 * directory, or in one of the user's own in /tmp, named by the supervisor's pid. Requests and answers are
 * packets of text; the first line of a request says what is wanted, that of an answer "ok" or "error".
 *
 *   save, PID, PATH or an empty line, REASON: make a file; the answer has its path and what it comes to;
 *     before it there may be packets "progress", DONE and TOTAL in bytes
 *   state: a line for each process that is recorded
 *   detach: let the program go; the answer comes when that is done
 *   wait: an answer only if the program still runs
 *
 * Only the same user, or root, is listened to.
 */
#ifndef BUGNET_RECORD_CONTROL_H
#define BUGNET_RECORD_CONTROL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "recording/progress.h"

#define CONTROL_PACKET 16384

/* ---- the supervisor's side ---- */

#define CONTROL_CALLERS 16

struct control {
	int fd;     /* -1: there is none */
	int events; /* can be polled for input: somebody has come, or has said what he wants */
	/* Those who have come, in this order, and said nothing yet: they are not waited for. */
	int callers[CONTROL_CALLERS];
	unsigned caller_count;
	char path[PATH_MAX];
};

/* Without a place for it nobody can ask, which harms nothing else, and is told on standard error. */
void control_open(struct control *control);
void control_close(struct control *control);

/* The next request, ended by a zero, and who made it; -1: there is none. Whoever is answered is let go. */
int control_next(struct control *control, char request[CONTROL_PACKET]);
__attribute__((format(printf, 2, 3))) void control_answer(int client, const char *format, ...);
/* How far the answer is, for who waits for it; is dropped if he does not look. */
void control_tell_progress(int client, uint64_t done, uint64_t total);

/* ---- the other side ---- */

/*
 * Sends the request and waits for the answer, ended by a zero; false: nobody is there, or he went, or
 * *silent, if that is not 0, does not answer: he is stopped, or has done nothing for long. `progress` is set
 * while that takes time, if it is not NULL.
 */
bool control_ask(const char *path, const char *request, char answer[CONTROL_PACKET],
        struct progress *progress, pid_t *silent);

/* What to say of such a one, with his number. */
#define CONTROL_SILENT                                                                                       \
	"recorder %d does not answer; continue it with 'kill -CONT %d', or end it with 'kill -KILL %d', "    \
	"which "                                                                                             \
	"leaves its program to go on natively"

/* Calls `found` for every socket of this user, or of all if this is root, until it returns true. */
bool control_each(bool (*found)(void *context, const char *path), void *context);

/* Waits for those whose program has ended and who may be about to save; who does not answer is named on
 * standard error. */
void control_wait_for_savers(void);

#endif
