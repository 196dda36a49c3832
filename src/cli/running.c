#include "cli/running.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/error.h"
#include "record/control.h"
#include "record/memory.h"
#include "record/orphan.h"

/* See recorded_process_tell. */
static bool parse(char *line, struct running *running)
{
	int size = 0;

	if (sscanf(line, "%d %u %lu %lu %lu %lu %lu %lu %lu %lf %lu %lu %n", &running->pid, &running->threads,
	            &running->age, &running->ring, &running->used, &running->instructions, &running->window,
	            &running->dropped, &running->pieces, &running->slowdown, &running->memory,
	            &running->interval, &size) != 12)
		return false;
	running->program = line + size;
	return true;
}

struct visit {
	void (*found)(void *context, const struct running *running);
	void *context;
	pid_t wanted; /* or 0 */
	char *socket;
	pid_t silent;
};

static bool ask(void *context, const char *path)
{
	struct visit *visit = context;
	char answer[CONTROL_PACKET], *rest = answer, *line;

	pid_t silent;

	if (!control_ask(path, "state", answer, NULL, &silent)) {
		visit->silent = silent ? silent : visit->silent;
		return false;
	}
	strsep(&rest, "\n"); /* "ok" */
	while ((line = strsep(&rest, "\n"))) {
		struct running running;
		if (!parse(line, &running))
			continue;
		if (visit->found)
			visit->found(visit->context, &running);
		if (visit->wanted == running.pid) {
			snprintf(visit->socket, PATH_MAX, "%s", path);
			return true;
		}
	}
	return false;
}

void running_each(void (*found)(void *context, const struct running *running), void *context, pid_t *silent)
{
	struct visit visit = {.found = found, .context = context};

	control_each(ask, &visit);
	*silent = visit.silent;
}

bool running_find(pid_t pid, char socket[PATH_MAX], pid_t *silent)
{
	struct visit visit = {.wanted = pid, .socket = socket};

	bool found = control_each(ask, &visit);
	*silent = visit.silent;
	return found;
}

/* ---- whom we may not ask ---- */

static bool owner_of(pid_t pid, uid_t *owner)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d", pid);
	if (stat(path, &status) < 0)
		return false;
	*owner = status.st_uid;
	return true;
}

static const char *user_name(uid_t uid, char text[64])
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, 64, "user %.50s", user->pw_name);
	else
		snprintf(text, 64, "user number %u", uid);
	return text;
}

/* 0: nobody, or nobody else, or it cannot be known. */
static pid_t recorder_of_another(pid_t pid, uid_t *user)
{
	struct memory memory;
	pid_t recorder = 0;

	if (memory_open(&memory, pid) == 0 && orphan_look(&memory) == ORPHAN_SERVED)
		recorder = orphan_recorder(&memory);
	memory_close(&memory);
	return recorder && owner_of(recorder, user) && *user != geteuid() ? recorder : 0;
}

void running_explain(const char *command, pid_t pid)
{
	char name[64];
	uid_t user;
	pid_t recorder;

	if (geteuid() != 0 && owner_of(pid, &user) && user != geteuid())
		error_print(command,
		        "process %d is of %s, and whether it is being recorded is not for you to know; ask "
		        "as that "
		        "user, or as root",
		        pid, user_name(user, name));
	else if ((recorder = recorder_of_another(pid, &user)))
		error_print(command,
		        "process %d is recorded by process %d of %s, who alone may be asked; ask as that "
		        "user",
		        pid, recorder, user_name(user, name));
	else
		error_print(command, "process %d is not being recorded; 'bugnet ps' lists what is", pid);
}

bool running_tell_others(const char *command)
{
	DIR *processes = geteuid() == 0 ? NULL : opendir("/proc");
	char name[64];
	bool any = false;

	for (struct dirent *entry; processes && (entry = readdir(processes));) {
		pid_t pid = (pid_t)atoi(entry->d_name), recorder;
		uid_t user;
		if (pid <= 0 || !owner_of(pid, &user) || user != geteuid() ||
		        !(recorder = recorder_of_another(pid, &user)))
			continue;
		error_print(command,
		        "process %d is recorded by process %d of %s, who alone may be asked; ask as that "
		        "user",
		        pid, recorder, user_name(user, name));
		any = true;
	}
	if (processes)
		closedir(processes);
	return any;
}
