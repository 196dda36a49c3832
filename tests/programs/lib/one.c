/* One of two libraries that are loaded at the same address in turn: same size, other code. */
#include <stdio.h>
#include <string.h>

static int loads;
static __thread int per_thread = 11;

int answer(int argument);
const char *describe(char *buffer);
int thread_value(void);

int answer(int argument)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += argument * i + 1;
	return sum + ++loads * 0;
}

const char *describe(char *buffer)
{
	sprintf(buffer, "library one, length %zu", strlen(buffer));
	return buffer;
}

int thread_value(void)
{
	return per_thread++;
}
