/* record: | --children */
/* run: | --children */
/*
 * vfork: the child shares memory and stack until it execs or exits; the parent waits; nothing is disturbed.
 * Also clone(CLONE_VM | CLONE_VFORK) with a stack of its own, and signals while suspended.
 */
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static volatile int written_by_child, handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static int child_on_own_stack(void *arg)
{
	written_by_child += *(int *)arg;
	_exit(written_by_child);
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 1) {
		printf("%s\n", argv[1]);
		return done() ? 1 : atoi(argv[1]);
	}
	for (int i = 0; i < 500; i++) {
		pid_t child = vfork();
		if (child == 0) {
			written_by_child++;
			_exit(i & 63);
		}
		CHECK(child > 0);
		CHECK_EQ(written_by_child, i + 1);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, (i & 63) << 8);
	}
	for (int i = 0; i < 10; i++) {
		char number[16];
		snprintf(number, sizeof number, "%d", i);
		fflush(stdout);
		pid_t child = vfork();
		if (child == 0) {
			execl("/proc/self/exe", argv[0], number, NULL);
			_exit(99);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, i << 8);
	}
	/* exec fails: the child exits, the parent goes on */
	pid_t child = vfork();
	if (child == 0) {
		execl("/nonexistent/program", "x", NULL);
		_exit(errno == ENOENT ? 5 : 6);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 5 << 8);

	static char stack[65536] __attribute__((aligned(16)));
	for (int i = 0; i < 100; i++) {
		written_by_child = i;
		int value = 3;
		child = clone(
		        child_on_own_stack, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &value);
		CHECK(child > 0);
		CHECK_EQ(written_by_child, i + 3);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, (i + 3) << 8);
	}

	/* A signal sent to the suspended parent arrives once it goes on. */
	signal(SIGUSR1, handler);
	child = vfork();
	if (child == 0) {
		kill(getppid(), SIGUSR1);
		_exit(handled);
	}
	CHECK_EQ(handled, 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	/* A child that dies of a fault. */
	child = vfork();
	if (child == 0) {
		kill(getpid(), SIGKILL);
		_exit(1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WTERMSIG(status), SIGKILL);
	return done();
}
