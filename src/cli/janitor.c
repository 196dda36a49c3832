#include "cli/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become_remover(const char *directory)
{
	execlp("rm", "rm", "-rf", "--", directory, (char *)NULL);
	_exit(127);
}

static void wait_for(pid_t pid)
{
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* In a session of its own, which no terminal's signals reach; nobody else has the other end of the pipe. */
static _Noreturn void wait_for_end(int fd, const char *directory)
{
	char byte;

	setsid();
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	become_remover(directory);
}

void janitor_begin(struct janitor *janitor, const char *directory)
{
	int fds[2];

	*janitor = (struct janitor){.fd = -1};
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	janitor->pid = fork();
	if (janitor->pid == 0) {
		close(fds[1]);
		/* Whoever waits for our output to end does not wait for this. */
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3 && null >= 0; fd++)
			dup2(null, fd);
		wait_for_end(fds[0], directory);
	}
	close(fds[0]);
	if (janitor->pid < 0)
		close(fds[1]);
	else
		janitor->fd = fds[1];
}

void janitor_end(struct janitor *janitor, const char *directory)
{
	if (janitor->fd >= 0) {
		close(janitor->fd);
		wait_for(janitor->pid);
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		become_remover(directory);
	wait_for(pid);
}
