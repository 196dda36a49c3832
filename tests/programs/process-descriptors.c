/* run: | --children */
/*
 * Descriptors: at the start exactly 0, 1 and 2 are open, as /proc/self/fd and a scan say; the lowest free one
 * is 3; all from 3 up can be closed, by close_range too, and the program goes on with new code; a limit of 3
 * is enough.
 */
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void list(const char *when)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	printf("%s:", when);
	if (!directory) {
		printf(" cannot be listed: %s\n", strerror(errno));
		return;
	}
	int count = 0, open_fds[64];
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			open_fds[count++] = atoi(entry->d_name);
	closedir(directory);
	for (int i = 0; i < count; i++)
		for (int k = 0; k + 1 < count; k++)
			if (open_fds[k] > open_fds[k + 1]) {
				int swap = open_fds[k];
				open_fds[k] = open_fds[k + 1];
				open_fds[k + 1] = swap;
			}
	for (int i = 0; i < count; i++)
		printf(" %d", open_fds[i]);
	printf("\n");
	fflush(stdout);
}

static int scan(void)
{
	int count = 0;
	for (int fd = 0; fd < 20000; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		list(argv[1]);
		return done();
	}
	list("at the start");
	CHECK_EQ(scan(), 3);
	CHECK_EQ(dup(0), 3);
	CHECK_EQ(open("/dev/null", O_RDONLY), 4);
	CHECK_EQ(fcntl(0, F_DUPFD, 500), 500);
	list("some open");
	for (int fd = 3; fd < 20000; fd++)
		close(fd);
	list("closed");
	CHECK_EQ(dup(0), 3);
	if (syscall(436, 3, ~0U, 0) && errno != ENOSYS) /* close_range */
		fail("close_range: %s", strerror(errno));
	close(3);
	CHECK_EQ(scan(), 3);
	printf("%.10f %s\n", 1.0 / 7, strerror(ENOENT));

	/* dup2 over every number: nothing of the tool's may sit there. */
	for (int fd = 3; fd < 1000; fd++)
		CHECK_EQ(dup2(0, fd), fd);
	CHECK_EQ(scan(), 1000);
	for (int fd = 3; fd < 1000; fd++)
		CHECK(!close(fd));

	int status;
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", argv[0], "after exec", NULL);
		_exit(1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	struct rlimit limit = {3, 3};
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK_ERRNO(open("/dev/null", O_RDONLY), EMFILE);
	child = fork();
	if (child == 0)
		_exit((int)(compute(2, 100) & 127));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, (int)(compute(2, 100) & 127) << 8);
	return done();
}
