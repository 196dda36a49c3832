/* timeout: 120 */
/*
 * The sigsuspend race: two processes wake each other 100 000 times. Each blocks its signal except inside
 * sigsuspend; a signal lost between the test and the wait hangs both until the alarm. The child ends when the
 * parent is done.
 */
#include "check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ROUNDS 50000

static volatile unsigned received;

static void handler(int sig)
{
	(void)sig;
	received++;
}

static void play(pid_t peer, int first)
{
	sigset_t open;
	sigprocmask(SIG_SETMASK, NULL, &open);
	sigdelset(&open, SIGUSR1);
	if (first)
		CHECK(!kill(peer, SIGUSR1));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		while (received < i)
			sigsuspend(&open);
		CHECK_EQ(received, i);
		if (!first || i < ROUNDS)
			CHECK(!kill(peer, SIGUSR1));
	}
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler};
	sigset_t set;

	alarm(110);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	pid_t parent = getpid(), child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(parent, 0);
		_exit(0);
	}
	play(child, 1);
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	printf("%u signals\n", received);
	return done();
}
