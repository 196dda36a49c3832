/* run: | --cache 256K */
/*
 * SIGALRM at 10 kHz over a computing loop: integer, floating-point and vector results must stay right, and
 * the signals must arrive. The storm goes on while libc, the vdso and system calls are used.
 */
#include "check.h"
#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned signals;
static volatile double in_handler = 1;

static void handler(int sig)
{
	(void)sig;
	signals++;
	/* The handler uses the same registers as the loop. */
	in_handler = in_handler * 1.5 - (double)(signals & 3);
	if (in_handler > 1e6 || in_handler < -1e6)
		in_handler = 1;
}

static uint64_t work(void)
{
	static double matrix[32][32];
	uint64_t sum = compute(42, 200000), bits;
	long double extended = 1;

	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 32; j++)
			matrix[i][j] = 1.0 / (1 + i + j);
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < 32; i++)
			for (int j = 0; j < 32; j++) {
				double value = 0;
				for (int k = 0; k < 32; k++)
					value += matrix[i][k] * matrix[k][j];
				matrix[i][j] = value / 3;
			}
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 32; j++) {
			memcpy(&bits, &matrix[i][j], 8);
			sum = mix(sum, bits);
		}
	for (int i = 1; i < 5000; i++)
		extended = extended * 1.0001L + 1.0L / i;
	double rounded = (double)extended;
	memcpy(&bits, &rounded, 8);
	sum = mix(sum, bits);
	char text[128];
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "%d %x %.6f", i * 37, i * 1234567, i / 7.0);
		char *copy = strdup(text);
		for (char *c = copy; *c; c++)
			sum = mix(sum, (unsigned char)*c);
		free(copy);
	}
	return sum;
}

int main(void)
{
	uint64_t expected = work();
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	struct timespec begin, now;
	unsigned rounds = 0;

	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		CHECK_EQ(work(), expected);
		rounds++;
		struct timespec before = now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (rounds > 1)
			CHECK(now.tv_sec > before.tv_sec ||
			        (now.tv_sec == before.tv_sec && now.tv_nsec >= before.tv_nsec));
		CHECK(getppid() > 0);
	} while (rounds < 50 || signals < 3000 || now.tv_sec - begin.tv_sec < 1);
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	printf("sum %llx\n", (long long)expected);
	return done();
}
