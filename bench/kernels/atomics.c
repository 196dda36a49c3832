/*
 * atomics CASE COUNT: prints the nanoseconds that one operation takes.
 *
 *	alone     locked additions to a word, by one thread
 *	apart     by two threads, to a word each
 *	together  by two threads, to the same word
 *	calls     system calls, by one thread
 *	calls2    by two threads
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Alignas(4096) uint64_t words[2][512];
static unsigned long count;

static void *add(void *word)
{
	for (unsigned long i = 0; i < count; i++)
		__atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *call(void *word)
{
	(void)word;
	for (unsigned long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	struct timespec start, end;
	pthread_t other;

	if (argc != 3)
		return 2;
	count = strtoul(argv[2], NULL, 0);
	void *(*work)(void *) = strncmp(name, "calls", 5) ? add : call;
	int two = strcmp(name, "alone") && strcmp(name, "calls");
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (two)
		pthread_create(&other, NULL, work, strcmp(name, "together") ? words[1] : words[0]);
	work(words[0]);
	if (two)
		pthread_join(other, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.1f\n", ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / count);
	return 0;
}
