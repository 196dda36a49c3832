/*
 * A service, for tests/systemd.sh: service crash|stay SECONDS. It works a little, and after that time it crashes or ends; on SIGTERM
 * it ends at once.
 */
#include "../check.h"

#include <time.h>

static volatile uintptr_t nowhere = 8;

int main(int argc, char **argv)
{
	int seconds = argc > 2 ? atoi(argv[2]) : 1;
	volatile uint64_t sum = 0;

	puts("service runs");
	fflush(stdout);
	for (int i = 0; i < 100 * seconds; i++) {
		for (unsigned k = 0; k < 1000; k++)
			sum = sum * 31 + k;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	if (argc > 1 && !strcmp(argv[1], "crash"))
		*(volatile char *)nowhere = 1;
	return 0;
}
