/* expect: exit 9 */
/* Ends of a process: atexit, on_exit, destructors and buffered output, in order; _exit leaves all that out.
 */
#include "check.h"
#include <sys/wait.h>

static void handler_one(void)
{
	puts("atexit one");
}

static void handler_two(void)
{
	puts("atexit two");
	atexit(handler_one);
}

static void with_status(int status, void *arg)
{
	printf("on_exit %d %s\n", status, (char *)arg);
}

static void __attribute__((constructor)) constructor(void)
{
	printf("constructor\n");
}

static void __attribute__((destructor)) destructor(void)
{
	printf("destructor\n");
}

int main(void)
{
	CHECK(!atexit(handler_one));
	CHECK(!atexit(handler_two));
	CHECK(!on_exit(with_status, "argument"));
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		printf("lost");
		_exit(1);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 1 << 8);
	printf("not flushed before exit");
	exit(9);
}
