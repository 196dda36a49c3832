/*
 * walk RECORDING COUNT SEED: threads of a recording at random places, reached by steps forwards, by steps backwards, and
 * from elsewhere: registers, memory and which of it is known must be the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug/chronicle.h"
#include "replay/explorer.h"

#define STEPS 5
#define PAGE  4096ul

struct look {
	struct state state;
	uint64_t memory; /* a sum of it */
};

static char why[1024];
static struct recorded recorded;
static struct chronicle chronicle;
static struct explorer *plain, *fresh;
static uint64_t seed;

static void fail(const char *what, uint32_t thread, uint64_t position)
{
	printf("thread %u position %lu: %s\n", thread, position, what);
	exit(1);
}

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The stack, and what registers point to. */
static uint64_t sum_memory(struct explorer *explorer, const struct standing *standing)
{
	const struct event_registers *registers = &standing->state.registers;
	uint64_t sum = 0;

	for (unsigned i = 0; i < 16; i++) {
		uint64_t page = registers->gpr[i] & -PAGE, words[PAGE / 8] = {0};
		uint8_t known[PAGE] = {0};
		explorer_read(explorer, standing, page, (uint8_t *)words, known, sizeof words);
		for (unsigned k = 0; k < PAGE; k++)
			sum += (uint64_t)known[k] * (k + 1);
		for (unsigned k = 0; k < PAGE / 8; k++)
			sum = (sum ^ words[k]) * 0x9e3779b97f4a7c15u + (sum >> 29);
	}
	return sum;
}

static struct look look(struct explorer *explorer, uint32_t thread, uint64_t position)
{
	const struct happening *signal;
	struct place place = {position, chronicle_signals(&chronicle, thread, position, &signal)};
	const struct standing *standing = explorer_go(explorer, thread, place, why, sizeof why);

	if (!standing)
		fail(why, thread, position);
	struct look seen;
	memset(&seen, 0, sizeof seen);
	seen.state = standing->state;
	seen.memory = sum_memory(explorer, standing);
	explorer_release(explorer, standing);
	return seen;
}

static void expect(const struct look *a, const struct look *b, const char *how, uint32_t thread, uint64_t position)
{
	struct state_live all;
	char what[256], text[400];

	memset(&all, 0xff, sizeof all);
	if (!state_equal(&a->state, &b->state, &all, what, sizeof what)) {
		snprintf(text, sizeof text, "%s: %s", how, what);
		fail(text, thread, position);
	}
	if (a->memory != b->memory) {
		snprintf(text, sizeof text, "%s: memory differs", how);
		fail(text, thread, position);
	}
}

static void walk(uint32_t thread, uint64_t first, uint64_t last)
{
	uint64_t start = first + random_number() % (last - first);
	struct look seen[STEPS], again;
	unsigned steps = last - start < STEPS ? (unsigned)(last - start) : STEPS;

	for (unsigned i = 0; i < steps; i++)
		seen[i] = look(plain, thread, start + i);
	for (unsigned i = steps; i-- > 0;) {
		again = look(plain, thread, start + i);
		expect(&seen[i], &again, "backwards", thread, start + i);
	}
	if (steps) {
		again = look(fresh, thread, start + steps - 1);
		expect(&seen[steps - 1], &again, "from elsewhere", thread, start + steps - 1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4 || !recorded_open(&recorded, argv[1], NULL, NULL, why, sizeof why)) {
		printf("%s\n", why);
		return 1;
	}
	seed = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u | 1;
	chronicle_open(&chronicle, &recorded);
	plain = explorer_create(&recorded, why, sizeof why);
	fresh = explorer_create(&recorded, why, sizeof why);
	if (!plain || !fresh)
		fail(why, 0, 0);
	for (int i = 0; i < atoi(argv[2]); i++) {
		uint32_t thread = (uint32_t)(random_number() % chronicle.thread_count);
		uint32_t id = chronicle.threads[thread].id;
		uint64_t first = chronicle_first(&chronicle, id), last = chronicle_end(&chronicle, id)->position;
		if (last > first)
			walk(id, first, last);
	}
	explorer_destroy(plain);
	explorer_destroy(fresh);
	chronicle_close(&chronicle);
	recorded_close(&recorded);
	puts("same");
	return 0;
}
