/*
 * Loops that lead to no recorder, for tests/keyframes.sh. The first argument says in what surroundings, the
 * second how many million rounds each thread makes; a round is eight instructions.
 */
#include "../check.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

static uint64_t rounds;
static volatile uint64_t result;

static __attribute__((noinline)) uint64_t loop(uint64_t count)
{
	uint64_t x = 1;

	while (count--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		x ^= x >> 29;
	}
	return x;
}

static void *run(void *argument)
{
	result = loop(rounds);
	return argument;
}

/* What each round leaves in memory the next one needs. */
static void store(void)
{
	static uint64_t cells[1 << 18];
	uint64_t x = 1;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t *cell = &cells[x >> 46];
		*cell += x | 1;
		x = x * 6364136223846793005u + *cell;
	}
	result = x;
}

/* Calls and returns only; as many instructions as a loop has, about. */
static __attribute__((noinline)) uint64_t descend(uint64_t depth, uint64_t x)
{
	if (depth == 0)
		return x | 1;
	return descend(depth - 1, x * 3) + descend(depth - 1, x ^ depth);
}

static void recur(void)
{
	uint64_t depth = 0;

	while (rounds >> (depth + 1))
		depth++;
	result = descend(depth, 1);
}

static void *wait_for_end(void *argument)
{
	char byte;

	return read(*(int *)argument, &byte, 1) == 0 ? argument : NULL;
}

static void threads(void)
{
	pthread_t others[2];

	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&others[i], NULL, run, NULL), 0);
	run(NULL);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
}

/* The other thread sits in a system call all the time. */
static void blocked(void)
{
	pthread_t other;
	void *ended;
	int pipes[2];

	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(pthread_create(&other, NULL, wait_for_end, &pipes[0]), 0);
	run(NULL);
	close(pipes[1]);
	pthread_join(other, &ended);
	CHECK(ended);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";

	CHECK(argc > 2);
	rounds = strtoull(argv[2], NULL, 10) * 1000000;
	if (strcmp(how, "threads") == 0) {
		threads();
	} else if (strcmp(how, "blocked") == 0) {
		blocked();
	} else if (strcmp(how, "calls") == 0) {
		recur();
	} else if (strcmp(how, "undumpable") == 0) {
		CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
		run(NULL);
	} else if (strcmp(how, "seccomp") == 0) {
		CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
		store();
		syscall(SYS_exit, 0);
	} else {
		run(NULL);
	}
	puts("looped");
	return 0;
}
