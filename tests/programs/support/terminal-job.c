/*
 * Runs a command as a foreground job of a terminal of its own, the way a shell does, and presses keys.
 *
 *	terminal-job KEYS COMMAND [ARG...]
 *
 * KEYS: one character each: c (^C), z (^Z), q (^\), d (^D), l (types a line), w (changes the window size).
 *The next key is pressed each time the command prints a line with `ready`. A stopped command is continued in
 *the foreground. Prints what the command printed and how each wait for it ended; exits 0 when the command
 *ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* The session leader: starts the job, watches it, tells through `report`. */
static int lead(char **command, int report)
{
	int status;
	signal(SIGTTOU, SIG_IGN);
	pid_t job = fork();
	if (job == 0) {
		setpgid(0, 0);
		tcsetpgrp(0, getpid());
		signal(SIGTTOU, SIG_DFL);
		close(report);
		execvp(command[0], command);
		_exit(127);
	}
	setpgid(job, job);
	tcsetpgrp(0, job);
	while (waitpid(job, &status, WUNTRACED) == job) {
		if (WIFSTOPPED(status)) {
			dprintf(report, "stopped by %d\n", WSTOPSIG(status));
			tcsetpgrp(0, getpgrp());
			usleep(50000);
			tcsetpgrp(0, job);
			kill(-job, SIGCONT);
			continue;
		}
		if (WIFEXITED(status))
			dprintf(report, "exit %d\n", WEXITSTATUS(status));
		else
			dprintf(report, "signal %d%s\n", WTERMSIG(status), WCOREDUMP(status) ? " core" : "");
		break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char output[1 << 20], reported[4096];
	size_t used = 0, seen = 0, reported_used = 0;
	int master, report[2];
	struct winsize size = {.ws_row = 30, .ws_col = 100};

	if (argc < 3) {
		fprintf(stderr, "usage: terminal-job KEYS COMMAND [ARG...]\n");
		return 2;
	}
	const char *key = argv[1];
	if (pipe(report))
		return 2;
	pid_t leader = forkpty(&master, NULL, NULL, &size);
	if (leader < 0)
		return 2;
	if (leader == 0) {
		close(report[0]);
		_exit(lead(argv + 2, report[1]));
	}
	close(report[1]);
	for (;;) {
		struct pollfd fds[2] = {{master, POLLIN, 0}, {report[0], POLLIN, 0}};
		if (poll(fds, 2, 30000) <= 0) {
			printf("timeout\n");
			kill(leader, SIGKILL);
			break;
		}
		if (fds[0].revents & (POLLIN | POLLHUP)) {
			ssize_t got = read(master, output + used, sizeof output - used - 1);
			if (got > 0) {
				used += (size_t)got;
				output[used] = 0;
			} else if (!(fds[1].revents & POLLIN)) {
				break;
			}
		}
		if (fds[1].revents & POLLIN) {
			ssize_t got =
			        read(report[0], reported + reported_used, sizeof reported - reported_used);
			if (got > 0)
				reported_used += (size_t)got;
		}
		char *ready;
		while (*key && (ready = strstr(output + seen, "ready\r\n"))) {
			seen = (size_t)(ready - output) + 7;
			usleep(30000); /* let it reach its wait */
			const char *text = *key == 'c'   ? "\003"
			                   : *key == 'z' ? "\032"
			                   : *key == 'q' ? "\034"
			                   : *key == 'd' ? "\004"
			                   : *key == 'l' ? "a typed line\n"
			                                 : "";
			if (*key == 'w') {
				size.ws_col++;
				ioctl(master, TIOCSWINSZ, &size);
			}
			if (write(master, text, strlen(text)) < 0)
				break;
			key++;
		}
	}
	for (size_t i = 0; i < used; i++)
		if (output[i] != '\r')
			putchar(output[i]);
	printf("%.*s", (int)reported_used, reported);
	waitpid(leader, NULL, 0);
	return 0;
}
