/*
 * A program that looks for its own memory in /proc/self/maps, as the memory test in a crash report of redis
 * does: every mapping that can be written to, has no file and no name. Nothing there may be anybody else's,
 * with threads either.
 */
#include "check.h"
#include <pthread.h>

#define THREADS 3
#define PAGE    4096
#define ENOUGH  (1ul << 30)

static pthread_barrier_t begun, ended;

static void *idle(void *argument)
{
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&ended);
	return argument;
}

/* Each page is changed, and changed back. */
static void go_through(unsigned long start, unsigned long end)
{
	for (unsigned long at = start; at < end; at += PAGE) {
		volatile unsigned long *words = (volatile unsigned long *)at;
		for (unsigned i = 0; i < PAGE / sizeof *words; i += 64) {
			words[i] = ~words[i];
			words[i] = ~words[i];
		}
	}
}

static void go_through_all(void)
{
	static struct {
		unsigned long start, end;
	} mappings[256];
	unsigned long offset, inode, sum = 0;
	unsigned major, minor, count = 0;
	char line[1024], permissions[8], path[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	CHECK(maps);
	while (count < 256 && fgets(line, sizeof line, maps)) {
		int fields = sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %511s", &mappings[count].start,
		        &mappings[count].end, permissions, &offset, &major, &minor, &inode, path);
		CHECK(fields >= 7);
		if (fields == 7 && permissions[1] == 'w' && !major && !minor) {
			sum += mappings[count].end - mappings[count].start;
			count++;
		}
	}
	fclose(maps);
	CHECK(count > 0 && count < 256);
	CHECK(sum < ENOUGH); /* it has a few stacks */
	for (unsigned i = 0; i < count && sum < ENOUGH; i++)
		go_through(mappings[i].start, mappings[i].end);
}

int main(void)
{
	pthread_t threads[THREADS];

	go_through_all();
	CHECK(!pthread_barrier_init(&begun, NULL, THREADS + 1));
	CHECK(!pthread_barrier_init(&ended, NULL, THREADS + 1));
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, idle, (void *)i));
	pthread_barrier_wait(&begun);
	go_through_all();
	pthread_barrier_wait(&ended);
	for (long i = 0; i < THREADS; i++) {
		void *result;
		CHECK(!pthread_join(threads[i], &result));
		CHECK(result == (void *)i);
	}
	puts("gone through");
	return done();
}
