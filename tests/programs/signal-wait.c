/* sigwait, sigwaitinfo, sigtimedwait: pending before, arriving during, timing out, interrupted by another
 * handler. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static volatile int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *waiter(void *arg)
{
	sigset_t set;
	int sig, count = 0;
	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	do {
		CHECK(!sigwait(&set, &sig));
		count++;
	} while (sig != SIGUSR2);
	return (void *)(long)count;
}

int main(void)
{
	sigset_t set;
	siginfo_t info;
	int sig;
	struct timespec soon = {0, 20 * 1000 * 1000}, now = {0, 0};

	alarm(50);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGSEGV);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));

	CHECK_ERRNO(sigtimedwait(&set, &info, &now), EAGAIN);
	CHECK_ERRNO(sigtimedwait(&set, &info, &soon), EAGAIN);
	raise(SIGUSR1);
	CHECK(!sigwait(&set, &sig));
	CHECK_EQ(sig, SIGUSR1);
	sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 17});
	CHECK_EQ(sigwaitinfo(&set, &info), SIGRTMIN);
	CHECK_EQ(info.si_value.sival_int, 17);
	CHECK_EQ(info.si_code, SI_QUEUE);
	CHECK_EQ(info.si_pid, getpid());
	kill(getpid(), SIGSEGV); /* a sent SIGSEGV can be waited for like any other */
	CHECK_EQ(sigtimedwait(&set, &info, &soon), SIGSEGV);
	CHECK_EQ(info.si_code, SI_USER);
	raise(SIGRTMIN);
	raise(SIGUSR2);
	raise(SIGUSR1);
	for (int i = 0; i < 3; i++) {
		CHECK((sig = sigwaitinfo(&set, &info)) > 0);
		printf("waited for %d code %d\n", sig, info.si_code);
	}

	/* A handler of a signal that is not waited for interrupts. */
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	CHECK(!sigaction(SIGHUP, &action, NULL));
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		for (int i = 0; i < 50 && !usleep(10000); i++)
			kill(parent, SIGHUP);
		_exit(0);
	}
	CHECK_ERRNO(sigwaitinfo(&set, &info), EINTR);
	CHECK(handled > 0);
	int status;
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);

	/* Sent to the process, taken by the thread that waits. */
	pthread_t thread;
	void *result;
	CHECK(!pthread_create(&thread, NULL, waiter, NULL));
	for (int i = 0; i < 200; i++) {
		CHECK(!kill(getpid(), SIGUSR1));
		sigset_t pending;
		do
			CHECK(!sigpending(&pending));
		while (sigismember(&pending, SIGUSR1));
	}
	CHECK(!kill(getpid(), SIGUSR2));
	CHECK(!pthread_join(thread, &result));
	CHECK_EQ(result, 201);
	return done();
}
