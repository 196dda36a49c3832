/*
 * A program that makes processes, for tests/attach.sh. It ends when its standard input does.
 *
 * forking: it forks when it is told to by a byte on its standard input, and prints the child's pid. The child waits for
 * ever, and is ended with the program.
 *
 * forking execute: it forks all the time, and each child executes a program, this one, with so many arguments that most
 * of the time one is in execve.
 *
 * forking vfork: it is in vfork, until its child, whose pid is printed, gets SIGTERM.
 *
 * forking zombie: it prints the pid of a child that has ended, and sleeps.
 */
#include "../check.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { WORDS = 16, WORD_BYTES = 100000 };

static int fork_when_told(void)
{
	char byte;
	pid_t child = 0;

	while (read(0, &byte, 1) != 0) {
		if ((child = fork()) == 0) {
			for (;;)
				pause();
		}
		printf("child %d\n", child);
		fflush(stdout);
	}
	if (child)
		kill(child, SIGKILL);
	CHECK(!child || waitpid(child, NULL, 0) == child);
	return 5;
}

static int execute(const char *program)
{
	static char word[WORD_BYTES];
	char *arguments[WORDS + 3] = {(char *)program, "child"};
	struct pollfd input = {.fd = 0, .events = POLLIN};

	memset(word, 'x', sizeof word - 1);
	for (unsigned i = 0; i < WORDS; i++)
		arguments[2 + i] = word;
	while (poll(&input, 1, 0) == 0) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			execv(program, arguments);
			_exit(9);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 7 << 8);
	}
	return 5;
}

static int in_vfork(void)
{
	if (vfork() == 0) {
		dprintf(1, "%d\n", getpid());
		pause();
		_exit(0);
	}
	return 5;
}

static int with_zombie(void)
{
	siginfo_t info;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	dprintf(1, "%d\n", child);
	pause();
	return 5;
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return 7;
	if (argc > 1 && strcmp(argv[1], "vfork") == 0)
		return in_vfork();
	if (argc > 1 && strcmp(argv[1], "zombie") == 0)
		return with_zombie();
	puts("ready");
	fflush(stdout);
	return argc > 1 ? execute(argv[0]) : fork_when_told();
}
