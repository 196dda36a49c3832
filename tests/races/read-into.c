/*
 * A thread looks at a buffer that another one reads into.
 *
 * race: buffer
 * call: read fill() look()
 */
#include "race.h"

static int ends[2];
static char buffer[64];

static NOINLINE void *fill(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		if (read(ends[0], buffer, sizeof buffer) != sizeof buffer)
			unused = NULL;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

static NOINLINE void *look(void *unused)
{
	long sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		sum += *(volatile char *)&buffer[i];
		IF_FIXED(UNLOCK();)
	}
	return sum == 1 ? NULL : unused;
}

int main(void)
{
	char text[64] = "text";

	if (pipe(ends))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		if (write(ends[1], text, sizeof text) != sizeof text)
			return 1;
	}
	run_two(fill, look);
	puts("done");
	return 0;
}
