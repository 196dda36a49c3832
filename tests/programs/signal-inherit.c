/* record: | --children */
/* run: | --children */
/*
 * Across execve: handlers become defaults, ignored signals stay ignored, the mask and pending signals stay,
 * the alternate stack goes, a running timer goes on. The program runs itself again and prints what it finds.
 */
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static void handler(int sig)
{
	(void)sig;
}

static void show(void)
{
	struct sigaction now;
	sigset_t set;
	stack_t stack;

	printf("ignored:");
	for (int sig = 1; sig < 65; sig++) {
		if (sig == 32 || sig == 33)
			continue;
		CHECK(!sigaction(sig, NULL, &now));
		if (now.sa_handler == SIG_IGN)
			printf(" %d", sig);
		else if (now.sa_handler != SIG_DFL)
			printf(" %d(handler)", sig);
	}
	printf("\nblocked:");
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &set));
	for (int sig = 1; sig < 65; sig++)
		if (sigismember(&set, sig) == 1)
			printf(" %d", sig);
	printf("\npending:");
	CHECK(!sigpending(&set));
	for (int sig = 1; sig < 65; sig++)
		if (sigismember(&set, sig) == 1)
			printf(" %d", sig);
	CHECK(!sigaltstack(NULL, &stack));
	struct itimerval timer;
	CHECK(!getitimer(ITIMER_REAL, &timer));
	printf("\naltstack flags %d, alarm %s\n", stack.ss_flags, timer.it_value.tv_sec > 10 ? "set" : "off");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		show();
		if (argv[1][0] == '1') {
			execl("/proc/self/exe", argv[0], "2", NULL);
			fail("execl");
		}
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL); /* the pending SIGUSR2 kills */
		fail("SIGUSR2 was lost");
	}
	show();
	pid_t child = fork();
	if (child == 0) {
		static char space[65536];
		stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
		sigset_t set;
		signal(SIGHUP, SIG_IGN);
		signal(SIGUSR1, SIG_IGN);
		signal(SIGSEGV, SIG_IGN);
		signal(SIGCHLD, SIG_IGN);
		signal(SIGRTMIN + 5, SIG_IGN);
		signal(SIGTERM, handler);
		signal(SIGBUS, handler);
		sigaltstack(&stack, NULL);
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGRTMAX);
		sigaddset(&set, SIGILL);
		sigprocmask(SIG_SETMASK, &set, NULL);
		alarm(1000);
		raise(SIGUSR2);
		raise(SIGRTMAX);
		raise(SIGUSR1);
		execl("/proc/self/exe", argv[0], "1", NULL);
		fail("execl");
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGUSR2);
	return done();
}
