/*
 * Who reads from one pipe does not hear what was written to another.
 *
 * race: value
 */
#include "race.h"

static int value, right[2], wrong[2];

static NOINLINE void *tell(void *unused)
{
	value = 5;
	return write(right[1], "x", 1) == 1 ? unused : &value;
}

static NOINLINE void *hear(void *unused)
{
	char byte;

	/* By then the other one has written, as a rule: only that its pipe is another one tells. */
	usleep(50000);
	int descriptor = dup(IF_FIXED(right[0]) IF_RACING(wrong[0]));
	if (read(descriptor, &byte, 1) != 1 || value == 7)
		return &value;
	close(descriptor);
	return unused;
}

int main(void)
{
	if (pipe(right) || pipe(wrong) || write(wrong[1], "x", 1) != 1)
		return 1;
	run_two(tell, hear);
	puts("done");
	return 0;
}
