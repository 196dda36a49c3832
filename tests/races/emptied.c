/*
 * A page is given back while another thread still counts in it.
 *
 * race: count() give_back()
 * call: madvise count() give_back()
 */
#include "race.h"
#include <sys/mman.h>

#define SIZE 4096

static volatile long *counts;

static NOINLINE void *count(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		counts[i % 4]++;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

static NOINLINE void *give_back(void *unused)
{
	IF_FIXED(LOCK();)
	madvise((void *)counts, SIZE, MADV_DONTNEED);
	IF_FIXED(UNLOCK();)
	return unused;
}

int main(void)
{
	counts = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	run_two(count, give_back);
	puts("done");
	return 0;
}
