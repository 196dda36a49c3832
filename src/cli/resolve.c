#define _GNU_SOURCE 1

#include "cli/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * What execve would say about a file before it looks inside; but a directory that we may
 * not search holds nothing, where execvp would remember EACCES.
 */
static int exec_error(const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return errno == EACCES ? ENOENT : errno;
	if (!S_ISREG(status.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

/* Errors that make execvp go on with the next directory; EACCES does too, but is remembered. */
static bool goes_on(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ESTALE || error == ENODEV ||
	       error == ETIMEDOUT;
}

/* "DIRECTORY/NAME"; an empty directory is the current one and leaves the bare name. */
static bool join(const char *directory, size_t length, const char *name, char *path, size_t size)
{
	int needed = snprintf(path, size, "%.*s%s%s", (int)length, directory, length ? "/" : "", name);

	return needed >= 0 && (size_t)needed < size;
}

static int search(const char *directories, const char *name, char *path, size_t size)
{
	char candidate[PATH_MAX];
	bool refused = false;

	for (const char *directory = directories, *end;; directory = end + 1) {
		end = strchrnul(directory, ':');
		if (join(directory, end - directory, name, candidate, sizeof(candidate))) {
			int error = exec_error(candidate);

			if (error == 0 || (error == EACCES && !refused))
				snprintf(path, size, "%s", candidate);
			if (error == EACCES)
				refused = true;
			else if (!goes_on(error))
				return error;
		}
		if (*end == '\0')
			return refused ? EACCES : ENOENT;
	}
}

int resolve_program(const char *name, char *path, size_t size)
{
	char standard[256];
	const char *directories = getenv("PATH");

	if (*name == '\0')
		return ENOENT;
	if (strlen(name) >= size)
		return ENAMETOOLONG;
	if (strchr(name, '/')) {
		strcpy(path, name);
		return 0;
	}
	if (strlen(name) > NAME_MAX)
		return ENAMETOOLONG;
	if (!directories) {
		confstr(_CS_PATH, standard, sizeof(standard));
		directories = standard;
	}
	return search(directories, name, path, size);
}
