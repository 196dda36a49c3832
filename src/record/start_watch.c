#include "record/start_watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/process_facts.h"
#include "record/why.h"

/* Where the file tells that it is opened, we look for who has it right away and for a while; else now and
 * then. */
#define SOON_MILLISECONDS 1
#define SOON_LOOKS        100
#define LOOK_MILLISECONDS 20
#define REST_MILLISECONDS 250

/* ---- which file ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool search(const char *name, char path[PATH_MAX])
{
	const char *directories = getenv("PATH");

	for (const char *rest = directories ? directories : "/usr/bin:/bin"; rest; rest = strchr(rest, ':')) {
		rest += *rest == ':';
		int size = (int)strcspn(rest, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", size, rest, name) < PATH_MAX && is_program(path))
			return true;
	}
	*path = 0;
	return false;
}

static bool find_file(struct start_watch *watch, char *why, size_t why_size)
{
	if (!*watch->name)
		return fail_because(why, why_size, "'' names no program; give its path, or its name");
	if (!strchr(watch->name, '/')) {
		search(watch->name, watch->path);
		return true;
	}
	if (!is_program(watch->name))
		return fail_because(why, why_size,
		        "%s: no program that can be started: %s; give the path of one", watch->name,
		        strerror(errno ? errno : EACCES));
	if (!realpath(watch->name, watch->path))
		return fail_because(why, why_size, "%s: %s; give another path", watch->name, strerror(errno));
	return true;
}

/* ---- who runs it ---- */

/* In ticks since the system started; 0: it is gone. */
static uint64_t start_time(pid_t pid)
{
	char text[PROCESS_STAT_SIZE];
	unsigned long time = 0;

	if (!process_stat(pid, text) ||
	        sscanf(text,
	                "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
	                &time) != 1)
		return 0;
	return time;
}

/* The file may be replaced by a new version meanwhile: it is the one of that path that counts. */
static bool runs_it(const struct start_watch *watch, pid_t pid, const struct stat *file)
{
	char link[64], path[PATH_MAX];
	struct stat status;

	if (file) {
		snprintf(link, sizeof link, "/proc/%d/exe", pid);
		return stat(link, &status) == 0 && status.st_dev == file->st_dev &&
		       status.st_ino == file->st_ino;
	}
	if (!process_link(pid, "exe", path))
		return false;
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, watch->name) == 0;
}

static bool is_known(const struct start_watch *watch, struct started process)
{
	for (uint32_t i = 0; i < watch->known.count; i++) {
		if (watch->known.items[i].pid == process.pid && watch->known.items[i].time == process.time)
			return true;
	}
	return false;
}

/* All that are new become known; returns one of them, or 0. */
static pid_t look(struct start_watch *watch)
{
	DIR *directory = opendir("/proc");
	struct stat file;
	bool has_file = *watch->path && stat(watch->path, &file) == 0;
	pid_t found = 0;

	for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
		struct started process = {.pid = (pid_t)atoi(entry->d_name)};
		if (process.pid <= 0 || process.pid == getpid() ||
		        !runs_it(watch, process.pid, has_file ? &file : NULL))
			continue;
		process.time = start_time(process.pid);
		if (!process.time || is_known(watch, process))
			continue;
		vector_push(&watch->known, process);
		found = process.pid;
	}
	if (directory)
		closedir(directory);
	return found;
}

/* ---- waiting ---- */

bool start_watch_begin(struct start_watch *watch, const char *name, char *why, size_t why_size)
{
	*watch = (struct start_watch){.name = name, .inotify = -1};
	if (!find_file(watch, why, why_size))
		return false;
	watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->inotify >= 0 &&
	        (!*watch->path || inotify_add_watch(watch->inotify, watch->path, IN_OPEN) < 0)) {
		close(watch->inotify);
		watch->inotify = -1;
	}
	while (look(watch))
		;
	return true;
}

static void drain(int inotify)
{
	char events[4096];

	while (read(inotify, events, sizeof events) > 0)
		;
}

pid_t start_watch_next(struct start_watch *watch)
{
	struct pollfd opened = {.fd = watch->inotify, .events = POLLIN};
	unsigned soon = 0; /* looks that are still made at once */
	pid_t found;

	while (!(found = look(watch))) {
		int wait = watch->inotify < 0 ? LOOK_MILLISECONDS
		           : soon             ? SOON_MILLISECONDS
		                              : REST_MILLISECONDS;
		soon -= soon > 0;
		if (poll(&opened, watch->inotify >= 0, wait) > 0) {
			drain(watch->inotify);
			soon = SOON_LOOKS;
		}
	}
	return found;
}

void start_watch_end(struct start_watch *watch)
{
	if (watch->inotify >= 0)
		close(watch->inotify);
	vector_free(&watch->known);
}
