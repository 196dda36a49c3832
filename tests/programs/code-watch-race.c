/* run: | --cache 256K */
/*
 * Pages with code and data on them that others write to at the very moment their code is run for the first
 * time: nothing that was done to notice writes may show as a fault.
 */
#include "emit.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define PAGE    4096
#define ROUNDS  50
#define WRITERS 2

static uint8_t *volatile current; /* the page of this round */
static volatile int over;
static volatile uint64_t written[WRITERS];

static void *writer(void *argument)
{
	uint64_t number = (uint64_t)argument;
	uint8_t *page, *last = NULL;

	while (!over) {
		page = current;
		if (!page) {
			sched_yield();
			continue;
		}
		for (unsigned i = 0; i < 200; i++)
			((volatile uint64_t *)(page + PAGE / 2))[number]++;
		if (page != last)
			written[number]++;
		last = page;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[WRITERS];

	for (uint64_t i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&threads[i], NULL, writer, (void *)i) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t *page = mmap(
		        NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t before[WRITERS] = {written[0], written[1]};

		CHECK(page != MAP_FAILED);
		emit_constant(page, round);
		current = page;
		CHECK_EQ(call(page, 0), round);
		while (written[0] == before[0] || written[1] == before[1]) {
			sched_yield();
			CHECK_EQ(call(page, 0), round);
		}
		emit_constant(page, -round);
		CHECK_EQ(call(page, 0), -round);
	}
	over = 1;
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	puts("nobody noticed");
	return 0;
}
