/* Objects are published by a pointer and read without a lock, while the next version is made; old ones stay. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define VERSIONS 100

struct version {
	int number, square;
};
static _Atomic(struct version *) current;
static int wrong[2];

static void *read_versions(void *which)
{
	int *bad = which;
	for (int last = 0; last < VERSIONS;) {
		struct version *version = atomic_load_explicit(&current, memory_order_acquire);
		if (!version) {
			sched_yield();
			continue;
		}
		*bad += version->square != version->number * version->number || version->number < last;
		last = version->number;
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_versions, &wrong[i]);
	for (int i = 1; i <= VERSIONS; i++) {
		struct version *version = malloc(sizeof *version);
		version->number = i;
		version->square = i * i;
		atomic_store_explicit(&current, version, memory_order_release);
		sched_yield();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", wrong[0] + wrong[1]);
	return wrong[0] + wrong[1] != 0;
}
