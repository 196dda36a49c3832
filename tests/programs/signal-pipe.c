/* SIGPIPE: default, ignored (EPIPE), handled (EPIPE after the handler), on sockets, MSG_NOSIGNAL. */
#include "check.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static volatile int handled;

static void handler(int sig)
{
	CHECK_EQ(sig, SIGPIPE);
	handled++;
}

int main(void)
{
	int fds[2], pair[2], status;

	CHECK(!pipe(fds));
	close(fds[0]);
	pid_t child = fork();
	if (child == 0) {
		if (write(fds[1], "x", 1) < 0)
			_exit(1);
		_exit(2);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && !WCOREDUMP(status));
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
	signal(SIGPIPE, handler);
	CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
	CHECK_EQ(handled, 1);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	close(pair[0]);
	CHECK_ERRNO(write(pair[1], "x", 1), EPIPE);
	CHECK_EQ(handled, 2);
	CHECK_ERRNO(send(pair[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_EQ(handled, 2);
	for (int i = 0; i < 5000; i++)
		CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
	CHECK_EQ(handled, 5002);
	return done();
}
