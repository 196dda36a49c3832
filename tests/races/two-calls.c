/*
 * One thread reads into a buffer that another one writes from, and no instruction touches it. Fixed, the message of
 * the one has to be there before the other reads over it.
 *
 * race: buffer
 * call: readv fill() send()
 */
#include "race.h"
#include <sys/uio.h>

static int in[2], out[2];
static char buffer[128];

static NOINLINE void *fill(void *unused)
{
	struct iovec all = {buffer, sizeof buffer};

	IF_FIXED(char copy[sizeof buffer]; if (read(out[0], copy, sizeof copy) != sizeof copy) return NULL;)
	if (readv(in[0], &all, 1) != sizeof buffer)
		return NULL;
	return unused;
}

static NOINLINE void *send(void *unused)
{
	if (write(out[1], buffer, sizeof buffer) != sizeof buffer)
		return NULL;
	return unused;
}

int main(void)
{
	static const char text[sizeof buffer] = "text";

	if (pipe(in) || pipe(out) || write(in[1], text, sizeof text) != sizeof text)
		return 1;
	run_two(fill, send);
	puts("done");
	return 0;
}
