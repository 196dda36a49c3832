#include "record/process_facts.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ARGUMENTS_MAXIMUM (1u << 20) /* bytes */

/* PF_EXITING and PF_KTHREAD of linux/sched.h, which /proc/PID/stat shows */
#define IS_EXITING       0x00000004u
#define IS_KERNEL_THREAD 0x00200000u

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

/* Its state, and PF_... of linux/sched.h; false: it is gone. */
static bool read_state(pid_t pid, char *state, unsigned *flags)
{
	char stat[PROCESS_STAT_SIZE];

	return process_stat(pid, stat) && sscanf(stat, "%c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

bool process_is_over(pid_t pid)
{
	char state;
	unsigned flags;

	return !read_state(pid, &state, &flags) || state == 'Z' || state == 'X' || flags & IS_EXITING;
}

bool process_is_stopped(pid_t pid)
{
	char stat[PROCESS_STAT_SIZE];

	return process_stat(pid, stat) && *stat == 'T';
}

bool process_is_kernels(pid_t pid)
{
	char state;
	unsigned flags;

	return read_state(pid, &state, &flags) && flags & IS_KERNEL_THREAD;
}

/* Not the program's arguments, which it may have changed: the kernel's own copy, above them on the first
 * stack. */
bool process_called(pid_t pid, char path[PATH_MAX])
{
	char file[64];
	Elf64_auxv_t auxv[64];
	uint64_t address = 0;

	snprintf(file, sizeof file, "/proc/%d/auxv", pid);
	size_t size = read_text(file, (char *)auxv, sizeof auxv);
	for (size_t i = 0; i < size / sizeof *auxv; i++) {
		if (auxv[i].a_type == AT_EXECFN)
			address = auxv[i].a_un.a_val;
	}
	snprintf(file, sizeof file, "/proc/%d/mem", pid);
	int fd = address ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t got = fd < 0 ? -1 : pread(fd, path, PATH_MAX - 1, (off_t)address);
	if (fd >= 0)
		close(fd);
	path[got > 0 ? got : 0] = 0;
	return *path;
}

/* linux/pidfd.h since 6.13; what is told of the end since 6.15 */
struct pidfd_facts {
	uint64_t mask;
	uint64_t group;
	uint32_t ids[11];
	int32_t status;
};
#define PIDFD_FACTS        _IOWR(0xff, 11, struct pidfd_facts)
#define PIDFD_FACTS_STATUS 8u

static int signal_of_status(int status)
{
	return status & 0x7f;
}

static int told_by_pidfd(int pidfd)
{
	struct pidfd_facts facts = {.mask = PIDFD_FACTS_STATUS};

	if (pidfd < 0 || ioctl(pidfd, PIDFD_FACTS, &facts) < 0 || !(facts.mask & PIDFD_FACTS_STATUS))
		return 0;
	return signal_of_status(facts.status);
}

bool process_has_ended(pid_t pid, int pidfd, int *signal)
{
	char text[PROCESS_STAT_SIZE], *field = text;

	*signal = 0;
	if (!process_stat(pid, text)) {
		*signal = told_by_pidfd(pidfd);
		return true;
	}
	/* The first thread may have, and others not. */
	if ((*text != 'Z' && *text != 'X') || process_status(pid, "Threads") > 1)
		return false;
	for (int number = 3; field && number < 52; number++) {
		field = strchr(field, ' ');
		field += field != NULL;
	}
	if (field)
		*signal = signal_of_status(atoi(field));
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
