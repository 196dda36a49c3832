/*
 * The same with vectors of buffers: the second one is changed while it is written.
 *
 * race: tail
 * call: writev send() change()
 */
#include "race.h"
#include <sys/uio.h>

static int ends[2];
static char head[8] = "head", tail[24] = "tail";

static NOINLINE void *send(void *unused)
{
	struct iovec both[] = {{head, sizeof head}, {tail, sizeof tail}};

	IF_FIXED(LOCK();)
	if (writev(ends[1], both, 2) != sizeof head + sizeof tail)
		unused = NULL;
	IF_FIXED(UNLOCK();)
	return unused;
}

static NOINLINE void *change(void *unused)
{
	IF_FIXED(LOCK();)
	for (unsigned i = 0; i < sizeof tail; i++)
		*(volatile char *)&tail[i] = 'x';
	IF_FIXED(UNLOCK();)
	return unused;
}

int main(void)
{
	if (pipe(ends))
		return 1;
	run_two(send, change);
	puts("done");
	return 0;
}
