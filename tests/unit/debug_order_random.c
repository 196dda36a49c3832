/*
 * Random executions of a machine with store buffers, whose truth is known: every load of them can be
 * explained, so the order that is found has to explain every one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "debug/order.h"

#define THREADS_MOST 8
#define WORDS        4
#define BUFFERED     4

struct machine {
	uint64_t random;
	uint64_t memory[WORDS];
	uint64_t line, calls; /* the stamps that came last */
	struct machine_thread {
		uint64_t clock;
		struct {
			uint32_t word;
			uint8_t bytes;
			uint64_t value;
		} buffer[BUFFERED];
		unsigned buffered;
	} threads[THREADS_MOST];
	uint64_t values; /* how many there are, or 0: each store has another one */
	uint64_t stored;
	unsigned operations; /* of a hundred steps */
	bool partial;        /* accesses of less than a word */
};

static struct accesses accesses;
static struct accessing_thread threads[THREADS_MOST];
static uint64_t initial[WORDS];

static uint64_t random_below(struct machine *m, uint64_t limit)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (m->random * 0x2545f4914f6cdd1dul >> 16) % limit;
}

static uint64_t mask_of(uint8_t bytes)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 8; i++)
		mask |= bytes >> i & 1 ? 0xfful << 8 * i : 0;
	return mask;
}

static void put(uint64_t *word, uint64_t value, uint8_t bytes)
{
	*word = (*word & ~mask_of(bytes)) | (value & mask_of(bytes));
}

static void drain_one(struct machine *m, struct machine_thread *t)
{
	if (!t->buffered)
		return;
	put(&m->memory[t->buffer[0].word], t->buffer[0].value, t->buffer[0].bytes);
	t->buffered--;
	memmove(t->buffer, t->buffer + 1, t->buffered * sizeof t->buffer[0]);
}

static void drain(struct machine *m, struct machine_thread *t)
{
	while (t->buffered)
		drain_one(m, t);
}

static uint64_t view(const struct machine *m, const struct machine_thread *t, uint32_t word)
{
	uint64_t value = m->memory[word];

	for (unsigned i = 0; i < t->buffered; i++) {
		if (t->buffer[i].word == word)
			put(&value, t->buffer[i].value, t->buffer[i].bytes);
	}
	return value;
}

static uint64_t new_value(struct machine *m)
{
	if (m->values)
		return random_below(m, m->values) * 0x0101010101010101ul;
	m->stored++;
	return (m->stored >> 8) * 0x0100010001000100ul + (m->stored & 0xff) * 0x0001000100010001ul;
}

static uint8_t some_bytes(struct machine *m)
{
	static const uint8_t parts[] = {0xff, 0x0f, 0xf0, 0x01, 0x30, 0x80, 0xff, 0x0f};

	return m->partial ? parts[random_below(m, sizeof parts)] : 0xff;
}

static void push(unsigned thread, struct step step)
{
	step.position = threads[thread].steps.count;
	step.address = 0x1000 + 8 * step.word;
	vector_push(&threads[thread].steps, step);
}

static void stamped(struct machine *m, unsigned thread, uint64_t *last, enum step_kind kind, uint32_t word)
{
	struct machine_thread *t = &m->threads[thread];

	drain(m, t);
	t->clock = *last = (t->clock > *last ? t->clock : *last) + 1;
	push(thread, (struct step){.kind = kind, .word = word, .stamp = t->clock, .since = t->clock - 1});
}

static void access(struct machine *m, unsigned thread)
{
	struct machine_thread *t = &m->threads[thread];
	struct step step = {.kind = STEP_ACCESS, .word = (uint32_t)random_below(m, WORDS)};
	unsigned what = (unsigned)random_below(m, 8);
	uint8_t bytes = some_bytes(m);

	step.before = step.after = view(m, t, step.word);
	step.reads = what < 5 ? bytes : 0;
	step.writes = what > 3 ? bytes : 0;
	if (step.writes) {
		if (t->buffered == BUFFERED)
			drain_one(m, t);
		put(&step.after, new_value(m), bytes);
		t->buffer[t->buffered].word = step.word;
		t->buffer[t->buffered].bytes = bytes;
		t->buffer[t->buffered++].value = step.after;
	}
	push(thread, step);
}

static void operate(struct machine *m, unsigned thread)
{
	struct step step = {
	        .kind = STEP_ACCESS, .word = (uint32_t)random_below(m, WORDS), .locked = true, .reads = 0xff};

	stamped(m, thread, &m->line, STEP_OPERATION, 0);
	step.before = step.after = m->memory[step.word];
	if (random_below(m, 4)) {
		step.writes = 0xff;
		step.after = m->memory[step.word] = new_value(m);
	}
	push(thread, step);
}

static void execute(struct machine *m, unsigned count, unsigned steps)
{
	accesses = (struct accesses){.threads = threads, .thread_count = count, .initial = initial};
	for (unsigned i = 0; i < WORDS; i++)
		vector_push(&accesses.words, 0x1000 + 8 * i);
	vector_push(&accesses.lines, 0x1000);
	for (unsigned i = 0; i < count; i++) {
		threads[i] = (struct accessing_thread){.id = i, .maker = NO_THREAD};
		vector_push(&threads[i].steps, (struct step){.kind = STEP_START, .word = NO_WORD});
	}
	for (unsigned i = 0; i < steps; i++) {
		unsigned thread = (unsigned)random_below(m, count);
		/* for some time one thread alone */
		for (unsigned times = (unsigned)random_below(m, 6) + 1; times; times--) {
			if (random_below(m, 3) == 0)
				drain_one(m, &m->threads[thread]);
			if (random_below(m, 100) >= m->operations)
				access(m, thread);
			else if (random_below(m, 3))
				operate(m, thread);
			else
				stamped(m, thread, &m->calls, STEP_CALL, NO_WORD);
		}
	}
}

static void finish(void)
{
	for (unsigned i = 0; i < accesses.thread_count; i++)
		vector_free(&threads[i].steps);
	vector_free(&accesses.words);
	vector_free(&accesses.lines);
}

static unsigned unexplained(struct machine *m, unsigned count, unsigned steps)
{
	struct order order;
	char why[256] = "";

	execute(m, count, steps);
	if (!order_find(&order, &accesses, why, sizeof why) ||
	        !order_verify(&order, &accesses, why, sizeof why))
		fail_msg("%s", why);
	unsigned left = (unsigned)(order.sources[SOURCE_OUTSIDE] + order.sources[SOURCE_UNORDERED]);
	order_deinit(&order);
	finish();
	return left;
}

struct kind {
	unsigned threads, steps, operations;
	uint64_t values;
	bool partial;
};

static unsigned unexplained_of(const struct kind *kind, unsigned seeds)
{
	unsigned left = 0;

	for (unsigned seed = 1; seed <= seeds; seed++) {
		struct machine m = {.random = seed * 0x9e3779b97f4a7c15ul,
		        .values = kind->values,
		        .operations = kind->operations,
		        .partial = kind->partial};
		left += unexplained(&m, kind->threads, kind->steps);
	}
	return left;
}

/* Where each store has another value, or there is little to choose from, everything is explained. */
static void test_all(void **state)
{
	static const struct kind kinds[] = {
	        {2, 60, 0, 0, false},
	        {2, 60, 30, 0, false},
	        {5, 60, 0, 0, false},
	        {8, 60, 20, 0, false},
	        {2, 4, 0, 0, true},
	        {2, 3, 30, 4, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		assert_int_equal(unexplained_of(&kinds[i], 300), 0);
}

/* Where there are many ways the right one is not always found; but what is found is an order. */
static void test_many_ways(void **state)
{
	static const struct kind kinds[] = {
	        {8, 60, 15, 0, true},
	        {8, 60, 15, 4, true},
	        {5, 60, 45, 8, false},
	        {3, 60, 0, 4, true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		unexplained_of(&kinds[i], 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_all),
	        cmocka_unit_test(test_many_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
