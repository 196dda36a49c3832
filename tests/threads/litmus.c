/*
 * litmus CASE: two threads, two words, many rounds; says which outcomes there were, and that none was that the processor
 * does not allow. What it allows beyond any interleaving (store-buffer: both load 0) is what replay and the order have
 * to be able to explain.
 *
 * cases: store-buffer message-passing load-buffer store-store
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 300

static struct {
	_Alignas(64) volatile int value;
} x[ROUNDS], y[ROUNDS];
static _Atomic int arrived[ROUNDS];
static int seen[2][ROUNDS];
static const char *name;

/* Both go on at about the same time. */
static void meet(int round)
{
	arrived[round]++;
	for (int i = 0; arrived[round] < 2 && i < 100000; i++)
		;
}

static void *first(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet(i);
		if (!strcmp(name, "store-buffer")) {
			x[i].value = 1;
			seen[0][i] = y[i].value;
		} else if (!strcmp(name, "load-buffer")) {
			seen[0][i] = y[i].value;
			x[i].value = 1;
		} else if (!strcmp(name, "message-passing")) {
			x[i].value = 1;
			y[i].value = 1;
		} else {
			x[i].value = 1;
			y[i].value = 2;
		}
	}
	return unused;
}

static void *second(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet(i);
		if (!strcmp(name, "store-buffer")) {
			y[i].value = 1;
			seen[1][i] = x[i].value;
		} else if (!strcmp(name, "load-buffer")) {
			seen[1][i] = x[i].value;
			y[i].value = 1;
		} else if (!strcmp(name, "message-passing")) {
			seen[0][i] = y[i].value;
			seen[1][i] = x[i].value;
		} else {
			y[i].value = 1;
			x[i].value = 2;
		}
	}
	return unused;
}

static int is_forbidden(int i)
{
	if (!strcmp(name, "load-buffer"))
		return seen[0][i] && seen[1][i];
	if (!strcmp(name, "message-passing"))
		return seen[0][i] && !seen[1][i];
	return !strcmp(name, "store-store") && x[i].value == 1 && y[i].value == 1;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int forbidden = 0;

	name = argc > 1 ? argv[1] : "store-buffer";
	pthread_create(&threads[0], NULL, first, NULL);
	pthread_create(&threads[1], NULL, second, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	int outcomes[2][2] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		outcomes[seen[0][i] != 0][seen[1][i] != 0]++;
		forbidden += is_forbidden(i);
	}
	printf("00 %d  01 %d  10 %d  11 %d\n", outcomes[0][0], outcomes[0][1], outcomes[1][0], outcomes[1][1]);
	return forbidden != 0;
}
