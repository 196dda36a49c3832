/* expect: signal 11 */
/* cause: read() is told a larger size than the array on the stack has */
/* symptom: the function returns to an address that came from the input */
#include "bug.h"

static __attribute__((noinline)) int parse(int fd)
{
	char header[24];

#ifdef FIXED
	ssize_t got = read(fd, header, sizeof header);
#else
	ROOT_CAUSE();
	ssize_t got = read(fd, header, 128);
#endif
	bug_work(1500);
	return got > 0 ? header[0] : -1;
}

int main(void)
{
	int ends[2];
	char input[128];

	memset(input, '#', sizeof input);
	if (pipe(ends) || write(ends[1], input, sizeof input) < 0)
		return 2;
	return parse(ends[0]) != '#';
}
