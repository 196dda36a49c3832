/* The signal lines of /proc/self/status: blocked, ignored, pending are the program's. */
#include "check.h"
#include <signal.h>

static void show(const char *what)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	CHECK(file);
	printf("%s\n", what);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6) ||
		        !strncmp(line, "SigPnd", 6) || !strncmp(line, "ShdPnd", 6) ||
		        !strncmp(line, "Threads", 7) || !strncmp(line, "TracerPid", 9) ||
		        !strncmp(line, "Seccomp:", 8) || !strncmp(line, "NoNewPrivs", 10))
			printf("  %s", line);
	fclose(file);
}

int main(void)
{
	sigset_t set;
	show("at the start");
	signal(SIGHUP, SIG_IGN);
	signal(SIGRTMIN, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGRTMAX);
	CHECK(!sigprocmask(SIG_SETMASK, &set, NULL));
	raise(SIGUSR1);
	kill(getpid(), SIGRTMAX);
	show("after");
	return done();
}
