/*
 * A program that forks when it is told to by a byte on its standard input, and prints the child's pid, for
 * tests/attach.sh. The child waits for ever. The program ends when its standard input does, and ends the child.
 */
#include "../check.h"

#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	char byte;
	pid_t child = 0;

	puts("ready");
	fflush(stdout);
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
