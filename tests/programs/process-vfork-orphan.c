/*
 * A process is killed while its child of vfork, which runs in its memory, lives on: the child comes to its end all
 * the same.
 */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void be_killed(int fd)
{
	pid_t parent = getpid();

	if (vfork() == 0) {
		struct timespec nap = {0, 100000000};
		kill(parent, SIGKILL);
		for (int i = 0; i < 3; i++) {
			nanosleep(&nap, NULL);
			if (write(fd, "abc" + i, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	_exit(2);
}

int main(void)
{
	int fds[2], status;
	char text[8];
	size_t size = 0;
	ssize_t n;

	CHECK(pipe(fds) == 0);
	pid_t pid = fork();
	if (pid == 0)
		be_killed(fds[1]);
	close(fds[1]);
	while (size < sizeof text && (n = read(fds[0], text + size, sizeof text - size)) > 0)
		size += (size_t)n;
	CHECK(size == 3 && memcmp(text, "abc", 3) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return done();
}
