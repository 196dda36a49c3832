/* Zombies, wait statuses, waitid and its options, resource usage, orphans and a subreaper, pidfd. */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return '-';
	CHECK(fgets(text, sizeof text, file));
	fclose(file);
	return strrchr(text, ')')[2];
}

int main(void)
{
	int status;
	siginfo_t info;

	pid_t child = fork();
	if (child == 0)
		_exit(77);
	for (int i = 0; i < 5000 && state_of(child) != 'Z'; i++)
		usleep(1000);
	CHECK_EQ(state_of(child), 'Z');
	CHECK(!kill(child, 0));
	CHECK(!waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	CHECK_EQ(info.si_status, 77);
	CHECK_EQ(state_of(child), 'Z');
	struct rusage usage;
	CHECK_EQ(wait4(child, &status, 0, &usage), child);
	CHECK_EQ(status, 77 << 8);
	CHECK_EQ(state_of(child), '-');
	CHECK_ERRNO(kill(child, 0), ESRCH);
	CHECK_ERRNO(waitpid(child, &status, 0), ECHILD);
	for (int i = 0; i < 256; i += 15) {
		child = fork();
		if (child == 0)
			exit(i);
		CHECK_EQ(waitpid(-1, &status, 0), child);
		CHECK_EQ(status, i << 8);
	}
	child = fork();
	if (child == 0)
		_exit(0x12345);
	CHECK_EQ(waitpid(0, &status, 0), child);
	CHECK_EQ(status, 0x45 << 8);

	/* Orphans come to the subreaper. */
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	int fds[2];
	CHECK(!pipe(fds));
	child = fork();
	if (child == 0) {
		pid_t middle = getpid();
		pid_t grandchild = fork();
		if (grandchild == 0) {
			while (getppid() == middle)
				usleep(1000);
			pid_t parent = getppid();
			CHECK_EQ(write(fds[1], &parent, sizeof parent), sizeof parent);
			_exit(5);
		}
		CHECK_EQ(write(fds[1], &grandchild, sizeof grandchild), sizeof grandchild);
		_exit(0);
	}
	pid_t grandchild, parent;
	CHECK_EQ(read(fds[0], &grandchild, sizeof grandchild), sizeof grandchild);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(read(fds[0], &parent, sizeof parent), sizeof parent);
	CHECK_EQ(parent, getpid());
	CHECK_EQ(waitpid(-1, &status, 0), grandchild);
	CHECK_EQ(status, 5 << 8);
	CHECK_ERRNO(wait(&status), ECHILD);

	child = fork();
	if (child == 0)
		for (;;)
			pause();
	int pidfd = (int)syscall(434, child, 0); /* pidfd_open */
	if (pidfd >= 0) {
		struct pollfd poll_fd = {pidfd, POLLIN, 0};
		CHECK_EQ(poll(&poll_fd, 1, 0), 0);
		CHECK(!syscall(424, pidfd, SIGTERM, NULL, 0)); /* pidfd_send_signal */
		CHECK_EQ(poll(&poll_fd, 1, 10000), 1);
		CHECK(!waitid((idtype_t)3, (id_t)pidfd, &info, WEXITED));
		CHECK_EQ(info.si_status, SIGTERM);
	} else {
		kill(child, SIGTERM);
		CHECK_EQ(waitpid(child, &status, 0), child);
	}
	return done();
}
