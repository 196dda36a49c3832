/* bugnet doctor: settings, limits and room. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/checks.h"
#include "cli/resolve.h"

#define MEGABYTE 1048576ul
#define GIGABYTE (1024 * MEGABYTE)

bool read_first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool got;

	if (!file)
		return false;
	got = fgets(line, size, file) != NULL;
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

bool read_field(const char *path, const char *name, char *value, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length = strlen(name);
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strncmp(line, name, length) == 0 && line[length] == ':';
		if (found) {
			const char *start = line + length + 1;

			start += strspn(start, " \t");
			snprintf(value, size, "%.*s", (int)strcspn(start, "\n"), start);
		}
	}
	if (file)
		fclose(file);
	return found;
}

/* ---- /proc ---- */

/* The value of hidepid= among the options of the file system mounted on /proc; "" for none. */
static void find_hidepid(char *value, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[1024], place[256];

	*value = '\0';
	while (mounts && fgets(line, sizeof(line), mounts)) {
		const char *option;

		if (sscanf(line, "%*s %*s %*s %*s %255s", place) != 1 || strcmp(place, "/proc") != 0)
			continue;
		option = strstr(line, "hidepid=");
		if (option) {
			option += strlen("hidepid=");
			snprintf(value, size, "%.*s", (int)strcspn(option, ", \n"), option);
		}
	}
	if (mounts)
		fclose(mounts);
}

void check_proc(struct finding *finding)
{
	char hidepid[16];

	if (access("/proc/self/maps", R_OK) < 0) {
		finding_what(finding, "/proc/self/maps: %s", strerror(errno));
		finding_mend(finding, CHECK_FAIL, "mount -t proc proc /proc");
		return;
	}
	find_hidepid(hidepid, sizeof(hidepid));
	if (*hidepid == '\0' || strcmp(hidepid, "0") == 0 || strcmp(hidepid, "off") == 0) {
		finding_what(finding, "mounted, shows all processes");
		return;
	}
	finding_what(finding, "mounted with hidepid=%s: only your own processes can be seen", hidepid);
	finding_mend(finding, CHECK_WARN, "mount -o remount,hidepid=0 /proc, if you debug those of others");
}

void check_proc_mem(struct finding *finding)
{
	static const char expected = 'b';
	char byte = 0;
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && pread(fd, &byte, 1, (off_t)(uintptr_t)&expected) == 1 && byte == expected) {
		finding_what(finding, "/proc/self/mem can be read");
	} else {
		finding_what(finding, "/proc/self/mem: %s", strerror(errno));
		finding_mend(finding, CHECK_FAIL,
		        "unset PR_SET_DUMPABLE=0; remove proc_mem restrictions from the kernel's command "
		        "line");
	}
	if (fd >= 0)
		close(fd);
}

/* ---- limits ---- */

/* How a limit is shown and how low is too low. */
struct limit {
	int resource;
	rlim_t least;
	enum check_result result; /* below that */
	rlim_t unit;
	const char *unit_name;
	const char *use;    /* what it would be needed for */
	const char *ulimit; /* arguments that mend it */
};

static void check_limit(struct finding *finding, const struct limit *limit)
{
	struct rlimit value;

	if (getrlimit(limit->resource, &value) < 0) {
		finding_what(finding, "unknown: %s", strerror(errno));
		return;
	}
	if (value.rlim_cur == RLIM_INFINITY) {
		finding_what(finding, "unlimited");
		return;
	}
	finding_what(finding, "limited to %lu %s", value.rlim_cur / limit->unit, limit->unit_name);
	if (value.rlim_cur >= limit->least)
		return;
	finding_mend(finding, limit->result, "%s %lu %s: ulimit %s%s", limit->use, limit->least / limit->unit,
	        limit->unit_name, limit->ulimit,
	        value.rlim_max < limit->least ? ", after root has raised the hard limit" : "");
}

void check_address_space(struct finding *finding)
{
	check_limit(finding, &(struct limit){RLIMIT_AS, GIGABYTE, CHECK_FAIL, MEGABYTE, "MB",
	                             "code caches and shadow memory take at least", "-v unlimited"});
}

void check_processes(struct finding *finding)
{
	check_limit(finding, &(struct limit){RLIMIT_NPROC, 64, CHECK_WARN, 1, "processes",
	                             "each program takes a helper, so allow at least", "-u 64"});
}

void check_open_files(struct finding *finding)
{
	check_limit(finding,
	        &(struct limit){RLIMIT_NOFILE, 64, CHECK_WARN, 1, "files",
	                "the supervisor opens several for each process, so allow at least", "-n 64"});
}

/* The code cache is a file to this limit: a memfd that grows. */
void check_file_size(struct finding *finding)
{
	check_limit(finding, &(struct limit){RLIMIT_FSIZE, 128 * MEGABYTE, CHECK_FAIL, MEGABYTE, "MB",
	                             "code caches and recordings take at least", "-f unlimited"});
}

/* ---- memory and disk ---- */

void check_overcommit(struct finding *finding)
{
	char mode[16];

	if (!read_first_line("/proc/sys/vm/overcommit_memory", mode, sizeof(mode))) {
		finding_what(finding, "unknown: /proc/sys/vm/overcommit_memory cannot be read");
		return;
	}
	finding_what(finding, "vm.overcommit_memory is %s", mode);
	if (*mode == '2')
		finding_mend(finding, CHECK_WARN,
		        "large mappings that are never touched may be refused: sysctl "
		        "vm.overcommit_memory=0");
}

void check_map_count(struct finding *finding)
{
	char count[32];

	if (!read_first_line("/proc/sys/vm/max_map_count", count, sizeof(count))) {
		finding_what(finding, "unknown: /proc/sys/vm/max_map_count cannot be read");
		return;
	}
	finding_what(finding, "vm.max_map_count is %s", count);
	if (atol(count) < 65530)
		finding_mend(finding, CHECK_WARN,
		        "programs with many mappings need more: sysctl vm.max_map_count=65530");
}

/* Megabytes this control group may still take, or ULONG_MAX. */
static unsigned long group_room(void)
{
	char limit[32], usage[32];

	if (!read_first_line("/sys/fs/cgroup/memory.max", limit, sizeof(limit)) || *limit == 'm' ||
	        !read_first_line("/sys/fs/cgroup/memory.current", usage, sizeof(usage)))
		return ULONG_MAX;
	unsigned long most = strtoul(limit, NULL, 10), used = strtoul(usage, NULL, 10);

	return most > used ? (most - used) / MEGABYTE : 0;
}

void check_memory(struct finding *finding)
{
	char available[64];
	unsigned long room = group_room(), megabytes;

	if (!read_field("/proc/meminfo", "MemAvailable", available, sizeof(available))) {
		finding_what(finding, "unknown: /proc/meminfo does not say");
		return;
	}
	megabytes = strtoul(available, NULL, 10) / 1024;
	if (room < megabytes)
		megabytes = room;
	finding_what(finding, "%lu MB available%s", megabytes,
	        room == megabytes ? " within the control group" : "");
	if (megabytes < 256)
		finding_mend(finding, CHECK_WARN, "bugnet wants 256 MB beside the program: free some memory");
}

void check_disk(struct finding *finding)
{
	struct statvfs system;
	unsigned long megabytes;

	if (statvfs(".", &system) < 0) {
		finding_what(finding, "unknown: current directory: %s", strerror(errno));
		return;
	}
	megabytes = (uint64_t)system.f_bavail * system.f_frsize / MEGABYTE;
	finding_what(finding, "%lu MB free in the current directory", megabytes);
	if (megabytes < 100)
		finding_mend(
		        finding, CHECK_WARN, "recordings want 100 MB: free some or change to another disk");
}

void check_core_pattern(struct finding *finding)
{
	char pattern[256];

	if (!read_first_line("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)))
		finding_what(finding, "unknown: /proc/sys/kernel/core_pattern cannot be read");
	else
		finding_what(finding, "core dumps of programs go to '%s'", pattern);
}

/* ---- gdb ---- */

/* The first line of `gdb --version`: "GNU gdb (Debian 13.1-3) 13.1". */
static bool gdb_version(char *line, size_t size)
{
	FILE *output = popen("gdb --version 2>/dev/null", "re");
	char rest[256];
	bool got;

	if (!output)
		return false;
	got = fgets(line, size, output) != NULL;
	while (fgets(rest, sizeof(rest), output))
		continue;
	pclose(output);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

void check_gdb(struct finding *finding)
{
	char path[PATH_MAX], line[128];
	const char *last;

	if (resolve_program("gdb", path, sizeof(path)) != 0) {
		finding_what(finding, "not found; programs run and are recorded without it");
		finding_mend(finding, CHECK_WARN, "to debug recordings, apt-get install gdb");
		return;
	}
	if (!gdb_version(line, sizeof(line))) {
		finding_what(finding, "%.200s does not tell its version", path);
		finding_mend(finding, CHECK_WARN, "to debug recordings, reinstall gdb");
		return;
	}
	last = strrchr(line, ' ');
	finding_what(finding, "%s", line);
	if (!last || atoi(last + 1) < 12)
		finding_mend(finding, CHECK_WARN, "to debug recordings, install gdb 12 or later");
}
