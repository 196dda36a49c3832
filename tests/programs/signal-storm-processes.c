/* run: | --children */
/*
 * Signals at 2 kHz while the program forks, vforks, spawns, execs and starts threads: every child gives its
 * status, nothing hangs. The children inherit no timer.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;
static volatile unsigned signals;

static void handler(int sig)
{
	(void)sig;
	signals++;
}

static void *thread(void *arg)
{
	return (void *)((long)arg * 2);
}

static int wait_for(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerval timer = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}}, now;

	if (argc > 1) {
		CHECK(!getitimer(ITIMER_REAL, &now));
		/* a spawned child keeps the mask and has the default action; the timer went with the parent
		 */
		CHECK_EQ(now.it_value.tv_usec, 0);
		return atoi(argv[1]);
	}
	alarm(0);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	for (int i = 0; i < 60; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit((int)(compute((uint64_t)i, 100) & 63));
		CHECK_EQ(wait_for(child), (int)(compute((uint64_t)i, 100) & 63));
		child = vfork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(i);
		CHECK_EQ(wait_for(child), i);
		if (i % 4 == 0) {
			char number[16], *arguments[] = {argv[0], number, NULL};
			snprintf(number, sizeof number, "%d", i);
			CHECK(!posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ));
			CHECK_EQ(wait_for(child), i);
		}
		pthread_t id;
		void *result;
		CHECK(!pthread_create(&id, NULL, thread, (void *)(long)i));
		CHECK(!pthread_join(id, &result));
		CHECK_EQ(result, i * 2);
	}
	while (signals < 50)
		pause();
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	return done();
}
