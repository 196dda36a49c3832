/*
 * How long threads come to no progress, for bench/attach: as many as the argument says look at the clock all the time, and
 * whenever a line comes on standard input the longest gap since the last one is printed, in microseconds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Atomic uint64_t longest;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *look(void *unused)
{
	for (uint64_t last = now(), here;; last = here) {
		here = now();
		uint64_t known = atomic_load_explicit(&longest, memory_order_relaxed);
		while (here - last > known && !atomic_compare_exchange_weak(&longest, &known, here - last))
			;
	}
	return unused;
}

int main(int argc, char **argv)
{
	char line[16];

	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
		pthread_t thread;
		pthread_create(&thread, NULL, look, NULL);
	}
	while (fgets(line, sizeof line, stdin)) {
		printf("%.1f\n", (double)atomic_exchange(&longest, 0) / 1000);
		fflush(stdout);
	}
	return 0;
}
