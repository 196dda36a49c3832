/* Has a handler of SIGTRAP in a thread that blocks it, and ends with its standard input, for tests/attach.sh. */
#include "../check.h"

#include <signal.h>

static volatile int trapped;

static void on_trap(int number)
{
	CHECK_EQ(number, SIGTRAP);
	trapped++;
}

int main(void)
{
	sigset_t set;
	char byte;

	CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	raise(SIGTRAP);
	CHECK_EQ(trapped, 0);
	CHECK_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_EQ(trapped, 1);
	return 5;
}
