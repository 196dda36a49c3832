#include "record/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAXIMUM (1u << 20) /* bytes */

bool process_link(pid_t pid, const char *name, char path[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof link, "/proc/%d/%s", pid, name);
	ssize_t size = readlink(link, path, PATH_MAX - 1);
	path[size < 0 ? 0 : size] = 0;
	return size > 0;
}

/* Returns its size; it ends with a zero. */
static size_t read_arguments(pid_t pid, char *text)
{
	char path[64];
	size_t size = 0;
	ssize_t more = 1;

	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (size < ARGUMENTS_MAXIMUM && (more = read(fd, text + size, ARGUMENTS_MAXIMUM - size)) > 0)
		size += (size_t)more;
	close(fd);
	return size;
}

char **process_arguments(pid_t pid, char **text)
{
	*text = calloc(1, ARGUMENTS_MAXIMUM + 1);
	if (!*text)
		abort();
	size_t size = read_arguments(pid, *text), count = 0;
	for (size_t i = 0; i < size; i++)
		count += !(*text)[i];
	char **argv = calloc(count + 2, sizeof *argv);
	if (!argv)
		abort();
	count = 0;
	for (size_t at = 0; at < size; at += strlen(*text + at) + 1)
		argv[count++] = *text + at;
	return argv;
}

/* What fits of the file, ended by a zero. */
static size_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	return got > 0 ? (size_t)got : 0;
}

bool process_stat(pid_t pid, char text[PROCESS_STAT_SIZE])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	read_text(path, text, PROCESS_STAT_SIZE);
	const char *behind = strrchr(text, ')'); /* the name may have anything in it */
	if (!behind || behind[1] != ' ')
		return false;
	memmove(text, behind + 2, strlen(behind + 2) + 1);
	return true;
}

void process_thread_name(pid_t pid, pid_t tid, char *name, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
	read_text(path, name, size);
	name[strcspn(name, "\n")] = 0;
}

long process_status(pid_t pid, const char *name)
{
	char path[64], line[256];
	long value = -1;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof line, file)) {
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtol(line + strlen(name) + 1, NULL, 10);
	}
	fclose(file);
	return value;
}
