/*
 * A function with a static buffer is called by two threads.
 *
 * race: buffer
 */
#include "race.h"

static IF_FIXED(__thread) char buffer[64];

static NOINLINE const char *text_of(unsigned number)
{
	for (unsigned i = 0; i < 8; i++)
		buffer[i] = (char)('a' + number % 16);
	return buffer;
}

static NOINLINE void *work(void *unused)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < ROUNDS; i++)
		sum += (unsigned)text_of(i)[3];
	return sum ? unused : NULL;
}

int main(void)
{
	run_two(work, work);
	puts("done");
	return 0;
}
