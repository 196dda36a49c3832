/* run: | --children */
/* posix_spawn with file actions and attributes, system(), popen both ways, a pipeline of shell commands. */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void handler(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	pid_t child;
	int status;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "child")) {
		char text[64] = "";
		ssize_t size = read(0, text, sizeof text);
		sigset_t set;
		sigprocmask(SIG_SETMASK, NULL, &set);
		printf("child read %zd, USR1 blocked %d, own group %d, environment %s\n", size,
		        sigismember(&set, SIGUSR1), getpgrp() == getpid(), getenv("SPAWNED"));
		return 6;
	}

	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t set;
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0));
	CHECK(!posix_spawnattr_init(&attr));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!posix_spawnattr_setsigmask(&attr, &set));
	CHECK(!posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	signal(SIGTERM, handler);
	char *child_argv[] = {argv[0], "child", NULL}, *child_env[] = {"SPAWNED=yes", NULL};
	for (int i = 0; i < 5; i++) {
		CHECK(!posix_spawn(&child, "/proc/self/exe", &actions, &attr, child_argv, child_env));
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 6 << 8);
	}
	CHECK_EQ(posix_spawn(&child, "/nonexistent", NULL, NULL, child_argv, environ), ENOENT);
	CHECK_EQ(posix_spawnp(&child, "no-such-program-anywhere", NULL, NULL, child_argv, environ), ENOENT);
	for (int i = 0; i < 50; i++) {
		char *true_argv[] = {"true", NULL};
		CHECK(!posix_spawnp(&child, "true", NULL, NULL, true_argv, environ));
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}

	CHECK_EQ(system("exit 3"), 3 << 8);
	CHECK_EQ(system("kill -9 $$") & 127, 9);
	CHECK_EQ(system("echo from system; echo one two three | tr ' ' '\\n' | sort | paste -sd,"), 0);

	FILE *pipe = popen("cat; echo end of cat", "w");
	CHECK(pipe);
	fprintf(pipe, "into popen\n");
	CHECK_EQ(pclose(pipe), 0);
	pipe = popen("seq 1 1000 | while read n; do [ $n = 500 ] && exit 4; done", "r");
	CHECK(pipe);
	CHECK_EQ(pclose(pipe), 4 << 8);
	pipe = popen("seq 1 20000", "r");
	char line[64];
	long sum = 0;
	while (fgets(line, sizeof line, pipe))
		sum += atol(line);
	CHECK_EQ(pclose(pipe), 0);
	CHECK_EQ(sum, 200010000);
	return done();
}
