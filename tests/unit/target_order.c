/*
 * The order of threads: operations on the same word are never stamped in the wrong order, also
 * when a thread sleeps while it has the word's place, and nobody waits for it; and a reader
 * that gives each operation the next number, unless the log says another, gets the stamps.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define stub_image process_image /* the stub itself is linked as well */
#include "target/stub.h"

_Alignas(4096) char stub_image[LAYOUT_PROCESS + LAYOUT_PROCESS_BYTES];

#include "target/order.c"

#define THREADS    4
#define OPERATIONS 20000
#define WORDS      3
#define SLEEPS     500 /* operations from one sleep to the next */

struct performed {
	unsigned word;
	uint64_t old; /* what the word was: its true place among the operations on it */
	uint64_t stamp, since;
	bool loose;
};

struct runner {
	struct thread thread;
	bool sleeps;
	struct performed operations[OPERATIONS];
	unsigned performed;
	uint64_t read;            /* the clock as the reader has it */
	struct event_order event; /* the last one */
	bool told;
	uint64_t events;
};

static struct runner *runners;
static _Alignas(64) uint64_t words[WORDS][8];

void log_order(struct thread *thread, uint64_t here, const struct event_order *order)
{
	struct runner *runner = (struct runner *)thread;

	assert_int_equal(here, runner->performed);
	runner->event = *order;
	runner->told = true;
	runner->events++;
}

/* As docs/format.md has it. */
static void read_stamp(struct runner *runner, struct performed *operation)
{
	runner->read++;
	operation->loose = false;
	if (runner->told) {
		runner->read = runner->event.stamp;
		operation->loose = runner->event.loose;
	}
	operation->stamp = runner->read;
	operation->since = operation->loose ? runner->event.since : runner->read - 1;
	runner->told = false;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
}

static void *run(void *argument)
{
	struct runner *runner = argument;
	uint64_t random = (uint64_t)(runner - runners) * 77777 + 1;

	for (unsigned i = 0; i < OPERATIONS; i++) {
		struct performed *operation = &runner->operations[i];
		struct order_hold hold;
		random = random * 6364136223846793005ul + 1442695040888963407ul;
		operation->word = (unsigned)(random >> 40) % WORDS;
		runner->performed = i;
		order_take(&runner->thread, &hold, (uint64_t)&words[operation->word], 8);
		bool sleeps = runner->sleeps && i % SLEEPS == 0;
		if (sleeps && i / SLEEPS % 2)
			nap();
		operation->old = __atomic_fetch_add(words[operation->word], 1, __ATOMIC_SEQ_CST);
		if (sleeps && i / SLEEPS % 2 == 0)
			nap();
		order_give(&runner->thread, &hold, i);
		assert_int_equal(runner->thread.clock, runner->thread.told);
		read_stamp(runner, operation);
		assert_int_equal(operation->stamp, runner->thread.clock);
	}
	return NULL;
}

static void run_all(bool sleeps)
{
	pthread_t threads[THREADS];

	memset(stub_image, 0, sizeof stub_image);
	memset(words, 0, sizeof words);
	runners = calloc(THREADS, sizeof *runners);
	assert_non_null(runners);
	for (unsigned i = 0; i < THREADS; i++) {
		runners[i].thread.log = (struct log *)&runners[i];
		runners[i].sleeps = sleeps && i < 2;
		assert_int_equal(pthread_create(&threads[i], NULL, run, &runners[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* By their true place. */
static int compare(const void *a, const void *b)
{
	const struct performed *const *left = a, *const *right = b;

	return ((*left)->old > (*right)->old) - ((*left)->old < (*right)->old);
}

/* What comes later is not said to come before: since(earlier) >= stamp(later) for no pair. */
static unsigned check_word(unsigned word)
{
	static struct performed *sorted[THREADS * OPERATIONS];
	unsigned count = 0, loose = 0;
	uint64_t highest_since = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned k = 0; k < OPERATIONS; k++) {
			if (runners[i].operations[k].word == word)
				sorted[count++] = &runners[i].operations[k];
		}
	}
	qsort(sorted, count, sizeof *sorted, compare);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(sorted[i]->old, i);
		assert_true(sorted[i]->stamp > highest_since);
		uint64_t since = sorted[i]->loose ? sorted[i]->since : sorted[i]->stamp;
		/* A tight one is at its stamp exactly: no later tight one is at or below it. */
		if (since > highest_since)
			highest_since = since;
		loose += sorted[i]->loose;
	}
	return loose;
}

static void test_true_order(void **state)
{
	(void)state;
	run_all(false);
	for (unsigned i = 0; i < WORDS; i++)
		check_word(i);
	free(runners);
}

/* Those who sleep with a word's place in their hands are loose, and hold nobody up. */
static void test_sleepers(void **state)
{
	unsigned loose = 0;

	(void)state;
	run_all(true);
	for (unsigned i = 0; i < WORDS; i++)
		loose += check_word(i);
	assert_in_range(loose, 1, THREADS * OPERATIONS / 10);
	free(runners);
}

/* A thread that meets nobody tells its log nothing. */
static void test_alone(void **state)
{
	(void)state;
	memset(stub_image, 0, sizeof stub_image);
	runners = calloc(1, sizeof *runners);
	assert_non_null(runners);
	runners[0].thread.log = (struct log *)runners;
	run(&runners[0]);
	assert_int_equal(runners[0].events, 0);
	assert_int_equal(runners[0].thread.clock, OPERATIONS);
	free(runners);
}

/* An operation across two lines has its place in both. */
static void test_across_lines(void **state)
{
	struct runner *runner = calloc(1, sizeof *runner), *other = calloc(1, sizeof *other);
	struct order_hold hold;

	(void)state;
	assert_true(runner && other);
	memset(stub_image, 0, sizeof stub_image);
	runner->thread.log = (struct log *)runner;
	other->thread.log = (struct log *)other;
	other->thread.clock = other->thread.told = 100;
	order_take(&other->thread, &hold, 0x1040, 4);
	order_give(&other->thread, &hold, 0);
	order_take(&runner->thread, &hold, 0x103e, 4);
	order_give(&runner->thread, &hold, 0);
	assert_int_equal(runner->thread.clock, 102);
	order_take(&other->thread, &hold, 0x1000, 8);
	order_give(&other->thread, &hold, 0);
	assert_int_equal(other->thread.clock, 103);
	free(runner);
	free(other);
}

/* System calls: what one thread has done before another's call ends is before that. */
static void test_calls(void **state)
{
	struct runner *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);

	(void)state;
	assert_true(a && b);
	memset(stub_image, 0, sizeof stub_image);
	a->thread.log = (struct log *)a;
	b->thread.log = (struct log *)b;
	order_enter(&a->thread); /* waits, */
	order_enter(&b->thread); /* and is woken */
	order_entered(&b->thread, 0);
	assert_true(b->told && b->event.kind == ORDER_OPERATION && b->event.stamp == 2);
	order_entered(&a->thread, 0);
	assert_false(a->told);
	order_returned(&a->thread, 0);
	assert_true(a->told && a->event.kind == ORDER_RETURN && a->event.stamp == 3);
	/* One that was given up is told of by the next that was not. */
	a->told = false;
	order_enter(&a->thread);
	order_enter(&a->thread);
	order_entered(&a->thread, 0);
	assert_true(a->told && a->event.stamp == 5);
	free(a);
	free(b);
}

static void perform(struct runner *runner)
{
	struct order_hold hold;

	order_take(&runner->thread, &hold, 0x1000, 8);
	order_give(&runner->thread, &hold, 0);
}

/* Locked instructions that are not in the log: the call behind them is told, where others may be ordered by
 * it. */
static void test_call_behind_unlogged(void **state)
{
	struct runner *a = calloc(1, sizeof *a);

	(void)state;
	assert_true(a);
	memset(stub_image, 0, sizeof stub_image);
	a->thread.log = (struct log *)a;
	perform(a);
	order_enter(&a->thread);
	order_entered(&a->thread, 0);
	assert_false(a->told);
	process()->thread_ids = 2;
	perform(a);
	assert_false(a->told);
	order_enter(&a->thread);
	order_entered(&a->thread, 0);
	assert_true(a->told && a->event.kind == ORDER_OPERATION && a->event.stamp == 4);
	/* With nothing in between the next number is right. */
	a->told = false;
	order_returned(&a->thread, 0);
	order_enter(&a->thread);
	order_entered(&a->thread, 0);
	assert_false(a->told);
	assert_int_equal(a->thread.told, 6);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_true_order),
	        cmocka_unit_test(test_sleepers),
	        cmocka_unit_test(test_alone),
	        cmocka_unit_test(test_across_lines),
	        cmocka_unit_test(test_calls),
	        cmocka_unit_test(test_call_behind_unlogged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
