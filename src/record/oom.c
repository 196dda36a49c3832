#include "record/oom.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 8192

/* Is `word` among what commas divide? */
static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; at; at = strchr(at, ','), at += at != NULL) {
		if (strncmp(at, word, size) == 0 && (at[size] == ',' || at[size] == 0))
			return true;
	}
	return false;
}

/* The group of the process, as /proc/PID/cgroup names it: that of controller `memory`, or of version 2 ("").
 */
static bool find_group(pid_t pid, const char *controller, char group[PATH_MAX])
{
	char path[64], line[LINE];
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof line, file)) {
		char *rest = line;
		line[strcspn(line, "\n")] = 0;
		strsep(&rest, ":");
		const char *controllers = rest ? strsep(&rest, ":") : NULL;
		found = rest && (*controller ? has_word(controllers, controller) : !*controllers) &&
		        strlen(rest) < PATH_MAX;
		if (found)
			strcpy(group, rest);
	}
	if (file)
		fclose(file);
	return found;
}

/* A mount of that kind: where it is, and which group is at its root. */
static bool is_mount(char *line, const char *type, const char *option, char **root, char **place)
{
	char *fields[6] = {0}, *rest = strstr(line, " - ");

	if (!rest)
		return false;
	*rest = 0;
	rest += 3;
	for (unsigned i = 0; i < 6 && line; i++)
		fields[i] = strsep(&line, " ");
	const char *kind = strsep(&rest, " ");
	strsep(&rest, " "); /* its source */
	*root = fields[3];
	*place = fields[4];
	return *place && strcmp(kind, type) == 0 && rest && (!*option || has_word(rest, option));
}

static int open_counters(pid_t pid, const char *type, const char *controller, const char *name)
{
	char group[PATH_MAX], line[LINE], path[3 * PATH_MAX];
	int fd = -1;

	if (!find_group(pid, controller, group))
		return -1;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && fd < 0 && fgets(line, sizeof line, file)) {
		char *root, *place;
		line[strcspn(line, "\n")] = 0;
		if (!is_mount(line, type, controller, &root, &place))
			continue;
		size_t skipped = strcmp(root, "/") == 0 ? 0 : strlen(root);
		if (strncmp(group, root, skipped) != 0)
			continue;
		snprintf(path, sizeof path, "%s%s/%s", place, group + skipped, name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (file)
		fclose(file);
	return fd;
}

static long count(int fd)
{
	char text[1024];
	ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);

	text[size > 0 ? size : 0] = 0;
	const char *at = strncmp(text, "oom_kill ", 9) == 0 ? text : strstr(text, "\noom_kill ");
	return at ? strtol(strchr(at, ' '), NULL, 10) : -1;
}

void oom_watch_begin(struct oom_watch *watch, pid_t pid)
{
	watch->fd = open_counters(pid, "cgroup2", "", "memory.events");
	if (watch->fd < 0)
		watch->fd = open_counters(pid, "cgroup", "memory", "memory.oom_control");
	watch->counted = count(watch->fd);
}

bool oom_watch_killed(const struct oom_watch *watch)
{
	return watch->counted >= 0 && count(watch->fd) > watch->counted;
}

void oom_watch_end(struct oom_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
	watch->counted = -1;
}
