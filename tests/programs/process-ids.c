/* Process, parent, group and session ids; setpgid, setsid; PR_SET_PDEATHSIG; PR_SET_NAME and comm;
 * PR_SET_DUMPABLE. */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
}

static long status_field(const char *field)
{
	char text[8192];
	read_file("/proc/self/status", text, sizeof text);
	char *at = strstr(text, field);
	CHECK(at);
	return atol(at + strlen(field));
}

int main(void)
{
	char text[256];
	int status, value;

	CHECK_EQ(getsid(0), getpid()); /* the test runner starts every test in a session of its own */
	CHECK_EQ(getpgrp(), getpid());
	CHECK_EQ(gettid(), getpid());
	CHECK_EQ(status_field("\nPid:"), getpid());
	CHECK_EQ(status_field("\nPPid:"), getppid());
	CHECK_EQ(status_field("\nTracerPid:"), 0);
	CHECK_EQ(status_field("\nThreads:"), 1);
	CHECK_ERRNO(setsid(), EPERM);

	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		CHECK_EQ(getppid(), parent);
		CHECK_EQ(getpgrp(), parent);
		CHECK_EQ(getsid(0), parent);
		CHECK(!setpgid(0, 0));
		CHECK_EQ(getpgrp(), getpid());
		CHECK(!setpgid(0, parent));
		CHECK_EQ(setsid(), getpid());
		CHECK_EQ(getsid(0), getpid());
		CHECK_EQ(status_field("\nTracerPid:"), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	/* The child of a child that dies is told by the signal it asked for. */
	int fds[2];
	CHECK(!pipe(fds));
	child = fork();
	if (child == 0) {
		if (fork() == 0) {
			sigset_t set;
			int sig;
			sigemptyset(&set);
			sigaddset(&set, SIGUSR2);
			sigprocmask(SIG_BLOCK, &set, NULL);
			CHECK(!prctl(PR_SET_PDEATHSIG, SIGUSR2));
			CHECK(!prctl(PR_GET_PDEATHSIG, &value));
			CHECK_EQ(value, SIGUSR2);
			CHECK_EQ(write(fds[1], "r", 1), 1);
			CHECK(!sigwait(&set, &sig));
			CHECK_EQ(write(fds[1], "d", 1), 1);
			_exit(0);
		}
		for (;;)
			pause();
	}
	CHECK_EQ(read(fds[0], text, 1), 1);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(read(fds[0], text, 1), 1);
	CHECK_EQ(text[0], 'd');
	CHECK(!prctl(PR_GET_PDEATHSIG, &value));
	CHECK_EQ(value, 0);

	CHECK(!prctl(PR_GET_NAME, text));
	printf("name %s\n", text);
	read_file("/proc/self/comm", text, sizeof text);
	printf("comm %s", text);
	CHECK(!prctl(PR_SET_NAME, "a name too long for it"));
	CHECK(!prctl(PR_GET_NAME, text));
	printf("name %s\n", text);
	read_file("/proc/self/comm", text, sizeof text);
	printf("comm %s", text);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		prctl(PR_GET_NAME, text);
		_exit(strcmp(text, "a name too long") != 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
	/* Not dumpable: /proc/self belongs to root; the program must go on, with code never run before. */
	printf("%g %s\n", 0.1 + 0.2, strsignal(SIGTERM));
	child = fork();
	if (child == 0)
		_exit((int)(compute(11, 1000) & 31));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, (int)(compute(11, 1000) & 31) << 8);
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
	return done();
}
