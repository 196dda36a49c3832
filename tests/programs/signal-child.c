/* run: | --children */
/*
 * SIGCHLD comes once per child that this program started and never for a helper of the tool; wait finds no
 * children that it did not start; SA_NOCLDWAIT, SA_NOCLDSTOP, SIG_IGN; siginfo of each way to end.
 */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static volatile int count;
static volatile siginfo_t last;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	count++;
	last = *info;
}

static void wait_count(int wanted)
{
	sigset_t set;
	sigprocmask(SIG_SETMASK, NULL, &set);
	sigdelset(&set, SIGCHLD);
	while (count < wanted)
		sigsuspend(&set);
	CHECK_EQ(count, wanted);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigset_t set;
	int status;

	alarm(50);
	CHECK_ERRNO(waitpid(-1, &status, WNOHANG), ECHILD);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!sigaction(SIGCHLD, &action, NULL));
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			if (i % 3 == 1)
				kill(getpid(), SIGKILL);
			_exit(i);
		}
		wait_count(i + 1);
		CHECK_EQ(last.si_pid, child);
		CHECK_EQ(last.si_code, i % 3 == 1 ? CLD_KILLED : CLD_EXITED);
		CHECK_EQ(last.si_status, i % 3 == 1 ? SIGKILL : i);
		CHECK_EQ(last.si_uid, getuid());
		CHECK_EQ(waitpid(-1, &status, 0), child);
	}
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	usleep(20000);
	wait_count(200);

	/* Stops are told, unless SA_NOCLDSTOP. */
	for (int quiet = 0; quiet < 2; quiet++) {
		action.sa_flags = SA_SIGINFO | (quiet ? SA_NOCLDSTOP : 0);
		CHECK(!sigaction(SIGCHLD, &action, NULL));
		count = 0;
		pid_t child = fork();
		if (child == 0)
			for (;;)
				pause();
		kill(child, SIGSTOP);
		CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
		if (!quiet) {
			wait_count(1);
			CHECK_EQ(last.si_code, CLD_STOPPED);
		}
		kill(child, SIGCONT);
		CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
		if (!quiet) {
			wait_count(2);
			CHECK_EQ(last.si_code, CLD_CONTINUED);
		}
		kill(child, SIGTERM);
		wait_count(quiet ? 1 : 3);
		CHECK_EQ(last.si_code, CLD_KILLED);
		CHECK_EQ(waitpid(child, &status, 0), child);
	}

	/* No zombies, and wait waits for all of them. */
	action.sa_flags = SA_SIGINFO | SA_NOCLDWAIT;
	CHECK(!sigaction(SIGCHLD, &action, NULL));
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			_exit(0);
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			_exit(0);
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	return done();
}
