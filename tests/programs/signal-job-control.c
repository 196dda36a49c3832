/*
 * Job control: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU stop a child and SIGCONT makes it go on, seen by waitpid
 * and waitid exactly once each; a handler for SIGCONT runs; a stopped child can be killed; threads stop
 * together.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct {
	volatile unsigned long counter[3];
	volatile int continued, stop_handled;
} * shared;

static void on_cont(int sig)
{
	(void)sig;
	shared->continued++;
}

static void *count(void *arg)
{
	volatile unsigned long *counter = arg;
	for (;;) {
		(*counter)++;
		if (*counter % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

static pid_t start(int threads)
{
	memset(shared, 0, sizeof *shared);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child)
		return child;
	alarm(50);
	setpgid(0, 0); /* an orphaned group would ignore SIGTSTP: our parent is in the same session */
	signal(SIGCONT, on_cont);
	pthread_t id;
	for (int i = 1; i < threads; i++)
		pthread_create(&id, NULL, count, (void *)&shared->counter[i]);
	count((void *)&shared->counter[0]);
	_exit(0);
}

static void wait_for_progress(int threads)
{
	for (int i = 0; i < threads; i++) {
		unsigned long before = shared->counter[i];
		while (shared->counter[i] == before)
			usleep(1000);
	}
}

static void stop_and_go(int sig, int threads)
{
	int status;
	pid_t child = start(threads);

	for (int round = 0; round < 5; round++) {
		wait_for_progress(threads);
		CHECK(!kill(child, sig));
		CHECK_EQ(waitpid(child, &status, WUNTRACED | WCONTINUED), child);
		CHECK(WIFSTOPPED(status));
		CHECK_EQ(WSTOPSIG(status), sig);
		CHECK_EQ(waitpid(child, &status, WUNTRACED | WCONTINUED | WNOHANG), 0);
		unsigned long before[3];
		for (int i = 0; i < threads; i++)
			before[i] = shared->counter[i];
		usleep(5000);
		for (int i = 0; i < threads; i++)
			CHECK_EQ(shared->counter[i], before[i]);
		CHECK(!kill(child, SIGCONT));
		CHECK_EQ(waitpid(child, &status, WUNTRACED | WCONTINUED), child);
		CHECK(WIFCONTINUED(status));
	}
	wait_for_progress(threads);
	CHECK_EQ(shared->continued, 5);
	CHECK(!kill(child, SIGSTOP));
	siginfo_t info;
	CHECK(!waitid(P_PID, (id_t)child, &info, WSTOPPED));
	CHECK_EQ(info.si_code, CLD_STOPPED);
	CHECK_EQ(info.si_status, SIGSTOP);
	CHECK(!kill(child, SIGTERM)); /* pending until continued */
	CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
	CHECK(!kill(child, SIGCONT));
	do
		CHECK_EQ(waitpid(child, &status, 0), child);
	while (!WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGTERM);
	printf("signal %d, %d threads: ok\n", sig, threads);
}

int main(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	setvbuf(stdout, NULL, _IONBF, 0);
	stop_and_go(SIGSTOP, 1);
	stop_and_go(SIGTSTP, 1);
	stop_and_go(SIGTTIN, 1);
	stop_and_go(SIGTTOU, 1);
	stop_and_go(SIGSTOP, 3);

	/* A program that stops itself. */
	pid_t child = fork();
	int status;
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			raise(SIGSTOP);
		_exit(12);
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
		CHECK(WIFSTOPPED(status));
		kill(child, SIGCONT);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 12);

	/* Stopped, then killed. */
	child = start(2);
	wait_for_progress(2);
	kill(child, SIGSTOP);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return done();
}
