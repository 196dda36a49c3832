/*
 * SA_NODEFER (the handler may be interrupted by its own signal), SA_RESETHAND (back to the default on entry),
 * both, neither; what sigaction says of them afterwards.
 */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static volatile int depth, deepest, total;

static void handler(int sig)
{
	struct sigaction now;
	total++;
	if (++depth > deepest)
		deepest = depth;
	CHECK(!sigaction(sig, NULL, &now));
	printf("  depth %d, now %s, flags %#x\n", depth, now.sa_handler == SIG_DFL ? "default" : "handler",
	        now.sa_flags & ~0x4000000);
	if (total < 3 && now.sa_handler != SIG_DFL)
		raise(sig);
	depth--;
}

static void try(const char *name, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, now;
	printf("%s\n", name);
	depth = deepest = total = 0;
	CHECK(!sigaction(SIGCHLD, &action, NULL)); /* its default does nothing */
	raise(SIGCHLD);
	printf("  deepest %d, total %d\n", deepest, total);
	CHECK(!sigaction(SIGCHLD, NULL, &now));
	printf("  afterwards %s, flags %#x\n", now.sa_handler == SIG_DFL ? "default" : "handler",
	        now.sa_flags & ~0x4000000);
	CHECK_EQ(now.sa_flags & flags, flags);
}

int main(void)
{
	try("plain", 0);
	try("SA_NODEFER", SA_NODEFER);
	try("SA_RESETHAND", (int)SA_RESETHAND);
	try("both", (int)(SA_RESETHAND | SA_NODEFER));

	/* The second signal after SA_RESETHAND takes the default action. */
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};
		total = 5;
		fclose(stdout);
		sigaction(SIGTERM, &action, NULL);
		raise(SIGTERM);
		raise(SIGTERM);
		_exit(3);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	return done();
}
