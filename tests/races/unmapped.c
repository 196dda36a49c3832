/*
 * Memory is unmapped when the thread that uses it has ended by chance.
 *
 * race: reader() destroy()
 * call: munmap reader() destroy()
 */
#include "race.h"
#include <sys/mman.h>

#define SIZE 65536

static volatile long *memory;
static _Atomic pid_t tid;

static NOINLINE void *reader(void *unused)
{
	long sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += memory[i];
	return sum == 1 ? NULL : unused;
}

static void *begin(void *unused)
{
	tid = gettid();
	return reader(unused);
}

static NOINLINE void destroy(void)
{
	munmap((void *)memory, SIZE);
	__asm__ volatile("");
}

int main(void)
{
	pthread_t thread;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&thread, NULL, begin, NULL);
	while (!tid)
		sched_yield();
	IF_FIXED(pthread_join(thread, NULL);)
	IF_RACING(outlive(tid);)
	destroy();
	IF_RACING(pthread_join(thread, NULL);)
	puts("done");
	return 0;
}
