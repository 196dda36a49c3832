/*
 * A thread changes a message that another one may not have written yet. Who has got it may change it: the pipe
 * orders that.
 *
 * race: message
 * call: write send() change()
 */
#include "race.h"

static int ends[2];
static char message[32] = "before";

static NOINLINE void *send(void *unused)
{
	if (write(ends[1], message, sizeof message) != sizeof message)
		return NULL;
	return unused;
}

static NOINLINE void *change(void *unused)
{
	IF_FIXED(char copy[sizeof message]; if (read(ends[0], copy, sizeof copy) != sizeof copy) return NULL;)
	for (unsigned i = 0; i < sizeof message; i++)
		*(volatile char *)&message[i] = 'x';
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
