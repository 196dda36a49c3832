/*
 * Memory is moved when the thread that uses it has ended by chance.
 *
 * race: writer() grow()
 * call: mremap writer() grow()
 */
#include "race.h"
#include <sys/mman.h>

#define SIZE 65536

static volatile long *memory;
static _Atomic pid_t tid;

static NOINLINE void *writer(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		memory[i] = i;
	return unused;
}

static void *begin(void *unused)
{
	tid = gettid();
	return writer(unused);
}

static NOINLINE void grow(void)
{
	void *other = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory = mremap((void *)memory, SIZE, 2 * SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
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
	grow();
	IF_RACING(pthread_join(thread, NULL);)
	puts("done");
	return 0;
}
