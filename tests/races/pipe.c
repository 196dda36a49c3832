/*
 * A pipe tells of a message before it is there.
 *
 * race: message
 */
#include "race.h"

static int message, ends[2];

static NOINLINE void *send(void *unused)
{
	IF_FIXED(message = 11;)
	if (write(ends[1], "x", 1) != 1)
		return NULL;
	IF_RACING(message = 11;)
	return unused;
}

static NOINLINE void *receive(void *unused)
{
	char byte;
	if (read(ends[0], &byte, 1) != 1)
		return NULL;
	return *(volatile int *)&message == 99 ? NULL : unused;
}

int main(void)
{
	if (pipe(ends))
		return 1;
	run_two(receive, send);
	puts("done");
	return 0;
}
