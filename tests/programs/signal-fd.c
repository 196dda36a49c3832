/* signalfd: blocked signals read from a descriptor, with their siginfo; poll on it; signals that were merged.
 */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t set;
	struct signalfd_siginfo info[16];

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGRTMIN + 3);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_ERRNO(read(fd, info, sizeof info), EAGAIN);

	raise(SIGUSR1);
	raise(SIGUSR1);
	for (int i = 0; i < 3; i++)
		CHECK(!sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 100 + i}));
	struct pollfd poll_fd = {fd, POLLIN, 0};
	CHECK_EQ(poll(&poll_fd, 1, 0), 1);
	ssize_t size = read(fd, info, sizeof info);
	CHECK(size > 0);
	for (int i = 0; i < (int)(size / (ssize_t)sizeof *info); i++)
		printf("signal %u code %d value %d from %s\n", info[i].ssi_signo, info[i].ssi_code,
		        info[i].ssi_int, info[i].ssi_pid == (unsigned)getpid() ? "self" : "other");

	pid_t child = fork();
	if (child == 0)
		_exit(9);
	CHECK_EQ(poll(&poll_fd, 1, 10000), 1);
	CHECK_EQ(read(fd, info, sizeof info), sizeof *info);
	CHECK_EQ(info->ssi_signo, SIGCHLD);
	CHECK_EQ(info->ssi_pid, child);
	CHECK_EQ(info->ssi_status, 9);
	CHECK_EQ(info->ssi_code, CLD_EXITED);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_ERRNO(read(fd, info, sizeof info), EAGAIN);

	/* Two processes, 2000 signals through signalfd, none lost: the child answers each. */
	int blocking = signalfd(-1, &set, 0);
	pid_t parent = getpid();
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 2000; i++) {
			if (read(blocking, info, sizeof *info) != sizeof *info || (int)info->ssi_int != i)
				_exit(1);
			sigqueue(parent, SIGRTMIN + 3, (union sigval){.sival_int = i * 3});
		}
		_exit(0);
	}
	for (int i = 0; i < 2000; i++) {
		CHECK(!sigqueue(child, SIGRTMIN + 3, (union sigval){.sival_int = i}));
		do
			CHECK_EQ(read(blocking, info, sizeof *info), sizeof *info);
		while (info->ssi_signo == SIGCHLD);
		CHECK_EQ(info->ssi_int, i * 3);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	return done();
}
