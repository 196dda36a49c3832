/*
 * Memory that one thread unmaps and another one maps again is no race; that both use it at once is one.
 *
 * race: use()
 */
#include "race.h"
#include <sys/mman.h>

#define SIZE 65536

static char *place;

static NOINLINE void use(volatile char *memory)
{
	for (int i = 0; i < 64; i++)
		memory[i * 8]++;
}

static NOINLINE void *work(void *unused)
{
	for (int i = 0; i < ROUNDS / 5; i++) {
		char *memory = IF_RACING(place) IF_FIXED(mmap(place, SIZE, PROT_READ | PROT_WRITE,
		                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
		if (memory == MAP_FAILED) {
			sched_yield();
			continue;
		}
		use(memory);
		IF_FIXED(munmap(memory, SIZE);)
		sched_yield();
	}
	return unused;
}

int main(void)
{
	place = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IF_FIXED(munmap(place, SIZE);)
	run_two(work, work);
	puts("done");
	return 0;
}
