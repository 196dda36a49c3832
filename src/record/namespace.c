#include "record/namespace.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 64

static bool namespace_of(pid_t process, char name[NAME_BYTES])
{
	char path[NAME_BYTES];

	snprintf(path, sizeof path, "/proc/%d/ns/pid", process);
	ssize_t size = readlink(path, name, NAME_BYTES - 1);
	if (size < 0)
		return false;
	name[size] = 0;
	return true;
}

/* What the task calls itself: the last number of the line NSpid, which counts from our namespace inwards. */
static pid_t own_id(const char *folder, pid_t task)
{
	char path[2 * NAME_BYTES], line[256];
	pid_t id = 0;

	snprintf(path, sizeof path, "%s/%d/status", folder, task);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof line, file)) {
		if (strncmp(line, "NSpid:", 6) == 0) {
			char *last = strrchr(line, '\t');
			id = last ? atoi(last + 1) : 0;
			break;
		}
	}
	fclose(file);
	return id;
}

static pid_t search(const char *folder, const char *namespace, pid_t id)
{
	DIR *directory = opendir(folder);
	const struct dirent *entry;
	char name[NAME_BYTES];
	pid_t found = 0;

	while (directory && !found && (entry = readdir(directory))) {
		pid_t task = atoi(entry->d_name);
		if (task && own_id(folder, task) == id && namespace_of(task, name) &&
		        strcmp(name, namespace) == 0)
			found = task;
	}
	if (directory)
		closedir(directory);
	return found;
}

pid_t namespace_resolve(pid_t member, pid_t id)
{
	char ours[NAME_BYTES], theirs[NAME_BYTES], tasks[NAME_BYTES];

	/* Who has gone already had no other namespace that would matter now. */
	if (!namespace_of(getpid(), ours) || !namespace_of(member, theirs) || strcmp(ours, theirs) == 0)
		return id;
	snprintf(tasks, sizeof tasks, "/proc/%d/task", member);
	pid_t found = search(tasks, theirs, id);
	return found ? found : search("/proc", theirs, id);
}
