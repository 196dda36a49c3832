#include "cli/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "record/control.h"
#include "recording/reader.h"

bool recordings_directory(char path[PATH_MAX])
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (data && *data == '/')
		return snprintf(path, PATH_MAX, "%s/bugnet", data) < PATH_MAX;
	return home && *home == '/' && snprintf(path, PATH_MAX, "%s/.local/share/bugnet", home) < PATH_MAX;
}

bool recordings_make_directory(char path[PATH_MAX])
{
	if (!recordings_directory(path)) {
		errno = ENOENT;
		return false;
	}
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		int made = mkdir(path, 0700);
		*slash = '/';
		if (made < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return false;
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static void each_in(const char *directory, const char *prefix, void (*found)(void *context, const char *path),
        void *context)
{
	DIR *entries = opendir(directory);
	char path[PATH_MAX];
	size_t suffix = strlen(RECORDINGS_SUFFIX);

	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		size_t size = strlen(entry->d_name);
		if (size > suffix && !strcmp(entry->d_name + size - suffix, RECORDINGS_SUFFIX) &&
		        snprintf(path, sizeof path, "%s%s", prefix, entry->d_name) < PATH_MAX)
			found(context, path);
	}
	if (entries)
		closedir(entries);
}

void recordings_each(void (*found)(void *context, const char *path), void *context)
{
	char directory[PATH_MAX], prefix[PATH_MAX + 1];
	struct stat here, there;

	each_in(".", "", found, context);
	if (!recordings_directory(directory))
		return;
	if (stat(".", &here) == 0 && stat(directory, &there) == 0 && here.st_dev == there.st_dev &&
	        here.st_ino == there.st_ino)
		return;
	snprintf(prefix, sizeof prefix, "%s/", directory);
	each_in(directory, prefix, found, context);
}

struct latest {
	struct timespec time;
	char *path;
};

/* It may only be called like one, or be what is left of one of which nothing was written. */
static bool is_recording(const char *path)
{
	struct reader reader;

	if (reader_open(&reader, path))
		return false;
	bool any = reader.count > 0;
	reader_deinit(&reader);
	return any;
}

static void compare_age(void *context, const char *path)
{
	struct latest *latest = context;
	struct stat status;

	if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	if (*latest->path && (status.st_mtim.tv_sec < latest->time.tv_sec ||
	                             (status.st_mtim.tv_sec == latest->time.tv_sec &&
	                                     status.st_mtim.tv_nsec <= latest->time.tv_nsec)))
		return;
	if (!is_recording(path))
		return;
	latest->time = status.st_mtim;
	snprintf(latest->path, PATH_MAX, "%s", path);
}

bool recordings_latest(char path[PATH_MAX])
{
	struct latest latest = {.path = path};

	control_wait_for_savers();
	*path = 0;
	recordings_each(compare_age, &latest);
	return *path;
}

static bool exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0;
}

const char *recordings_find(const char *word, char path[PATH_MAX])
{
	char directory[PATH_MAX];

	if (exists(word))
		return word;
	control_wait_for_savers(); /* a program that was killed is reported dead before its file is there */
	if (exists(word) || strchr(word, '/') || !recordings_directory(directory))
		return word;
	if (snprintf(path, PATH_MAX, "%s/%s", directory, word) < PATH_MAX && exists(path))
		return path;
	if (snprintf(path, PATH_MAX, "%s/%s%s", directory, word, RECORDINGS_SUFFIX) < PATH_MAX &&
	        exists(path))
		return path;
	return word;
}
