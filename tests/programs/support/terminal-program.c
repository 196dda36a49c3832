/* What runs on the terminal in terminal-job: answers signals and lines, prints `ready` when it waits for the
 * next. */
#include "../check.h"
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static volatile sig_atomic_t interrupted, resized, continued;

static void handler(int sig)
{
	if (sig == SIGINT)
		interrupted = 1;
	else if (sig == SIGWINCH)
		resized = 1;
	else
		continued = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	const char *how = argc > 1 ? argv[1] : "lines";
	char line[200];

	setvbuf(stdout, NULL, _IONBF, 0);
	printf("terminal %d %d %d, foreground %d, session leader %d\n", isatty(0), isatty(1), isatty(2),
	        tcgetpgrp(0) == getpgrp(), getsid(0) == getpid());
	sigaction(SIGWINCH, &action, NULL);
	sigaction(SIGCONT, &action, NULL);
	if (!strcmp(how, "compute")) {
		puts("ready");
		for (volatile uint64_t n = 0;; n++)
			if (continued) {
				continued = 0;
				puts("continued");
				puts("ready");
			}
	}
	sigaction(SIGINT, &action, NULL);
	for (;;) {
		puts("ready");
		ssize_t size = read(0, line, sizeof line - 1);
		if (size < 0) {
			printf("%s%s%s%s\n", strerror(errno), interrupted ? ", interrupted" : "",
			        resized ? ", resized" : "", continued ? ", continued" : "");
			if (resized) {
				struct winsize window;
				CHECK(!ioctl(0, TIOCGWINSZ, &window));
				printf("%d columns\n", window.ws_col);
			}
			interrupted = resized = continued = 0;
			continue;
		}
		if (size == 0)
			return done();
		line[size] = 0;
		printf("read: %s", line);
		struct termios settings;
		CHECK(!tcgetattr(0, &settings));
		settings.c_lflag ^= ECHO;
		CHECK(!tcsetattr(0, TCSADRAIN, &settings));
	}
}
