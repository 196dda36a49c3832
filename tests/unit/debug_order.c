/*
 * The order of all threads on made-up steps: what can be explained is, what cannot is marked, and the check
 * that goes through an order finds what is wrong with it. And races along it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "debug/races.h"

#define THREADS 3

static struct accesses accesses;
static struct accessing_thread threads[THREADS];
static uint64_t initial[8];

static void start(unsigned count)
{
	accesses = (struct accesses){.threads = threads, .thread_count = count, .initial = initial};
	for (unsigned i = 0; i < 8; i++)
		vector_push(&accesses.words, 0x1000 + 8 * i);
	vector_push(&accesses.lines, 0x1000);
	for (unsigned i = 0; i < count; i++) {
		threads[i] = (struct accessing_thread){.id = i, .maker = NO_THREAD};
		vector_push(&threads[i].steps, (struct step){.kind = STEP_START, .word = NO_WORD});
	}
}

static void finish(void)
{
	for (unsigned i = 0; i < accesses.thread_count; i++)
		vector_free(&threads[i].steps);
	vector_free(&accesses.words);
	vector_free(&accesses.lines);
}

static void access(unsigned thread, uint32_t word, uint8_t reads, uint64_t before, uint8_t writes,
        uint64_t after, bool locked)
{
	uint32_t count = threads[thread].steps.count;

	vector_push(&threads[thread].steps, (struct step){.kind = STEP_ACCESS,
	                                            .position = count,
	                                            .pc = 0x100 * (thread + 1) + count,
	                                            .address = 0x1000 + 8 * word,
	                                            .word = word,
	                                            .reads = reads,
	                                            .writes = writes,
	                                            .before = before,
	                                            .after = writes ? after : before,
	                                            .locked = locked});
}

static void load(unsigned thread, uint32_t word, uint64_t value)
{
	access(thread, word, 0xff, value, 0, 0, false);
}

static void store(unsigned thread, uint32_t word, uint64_t value)
{
	access(thread, word, 0, 0, 0xff, value, false);
}

static void exchange(unsigned thread, uint32_t word, uint64_t before, uint64_t after, uint64_t stamp)
{
	vector_push(&threads[thread].steps,
	        (struct step){.kind = STEP_OPERATION, .word = 0, .stamp = stamp, .since = stamp - 1});
	access(thread, word, 0xff, before, 0xff, after, true);
}

/* How many loads are unordered or from outside, in an order that is verified. */
static unsigned unexplained(struct order *order)
{
	char why[256] = "";

	assert_true(order_find(order, &accesses, why, sizeof why));
	if (!order_verify(order, &accesses, why, sizeof why))
		fail_msg("%s", why);
	return (unsigned)(order->sources[SOURCE_OUTSIDE] + order->sources[SOURCE_UNORDERED]);
}

static void expect_explained(void)
{
	struct order order;

	assert_int_equal(unexplained(&order), 0);
	order_deinit(&order);
	finish();
}

/* Values alone put the second thread's load between the first one's stores. */
static void test_values(void **state)
{
	(void)state;
	start(2);
	store(0, 0, 1);
	store(0, 0, 2);
	store(0, 0, 3);
	load(1, 0, 2);
	load(1, 0, 3);
	expect_explained();
}

/* Both loads have what was there before both stores: as a processor with store buffers does. */
static void test_store_buffer(void **state)
{
	(void)state;
	start(2);
	store(0, 0, 1);
	load(0, 1, 0);
	store(1, 1, 1);
	load(1, 0, 0);
	expect_explained();
}

/* The same with a locked instruction between is impossible: one of the loads cannot be explained, and no
 * stamp gives way. */
static void test_no_store_buffer(void **state)
{
	struct order order;

	(void)state;
	start(2);
	store(0, 0, 1);
	exchange(0, 2, 0, 1, 1);
	load(0, 1, 0);
	store(1, 1, 1);
	exchange(1, 2, 1, 2, 2);
	load(1, 0, 0);
	assert_true(unexplained(&order) > 0);
	order_deinit(&order);
	finish();
}

/* Stamps order what values leave open: who has the lock first. */
static void test_stamps(void **state)
{
	struct order order;
	bool second_began = false;

	(void)state;
	start(2);
	exchange(0, 0, 0, 1, 3);
	exchange(0, 0, 1, 0, 4);
	exchange(1, 0, 0, 1, 1);
	exchange(1, 0, 1, 0, 2);
	assert_int_equal(unexplained(&order), 0);
	for (uint32_t i = 0; i < order.events.count; i++) {
		const struct order_event *event = &order.events.items[i];
		if (event->thread == 1 && event->step == 4)
			second_began = true;
		if (event->thread == 0 && event->step > 0)
			assert_true(second_began);
	}
	order_deinit(&order);
	finish();
}

/* Of two stores the one whose value is loaded later was the last. */
static void test_two_stores(void **state)
{
	(void)state;
	start(3);
	store(0, 0, 1);
	store(1, 0, 2);
	load(2, 0, 1);
	load(2, 0, 1);
	expect_explained();
}

static void test_outside(void **state)
{
	struct order order;

	(void)state;
	start(2);
	store(0, 0, 1);
	load(1, 0, 1);
	load(1, 0, 77);
	load(1, 0, 77);
	assert_int_equal(unexplained(&order), 2);
	assert_int_equal(order.sources[SOURCE_UNORDERED], 0);
	order_deinit(&order);
	finish();
}

/* The check does not believe an order in which two events are exchanged. */
static void test_check(void **state)
{
	struct order order;
	char why[256];
	unsigned refused = 0;

	(void)state;
	start(2);
	store(0, 0, 1);
	exchange(0, 1, 0, 1, 1);
	load(1, 0, 1);
	exchange(1, 1, 1, 2, 2);
	load(1, 0, 1);
	assert_int_equal(unexplained(&order), 0);
	for (uint32_t i = 0; i + 1 < order.events.count; i++) {
		struct order_event first = order.events.items[i], second = order.events.items[i + 1];
		if (first.step == 0 || second.step == 0)
			continue; /* the start of a thread may be anywhere before the rest */
		order.events.items[i] = second;
		order.events.items[i + 1] = first;
		refused += !order_verify(&order, &accesses, why, sizeof why);
		order.events.items[i] = first;
		order.events.items[i + 1] = second;
	}
	assert_true(refused >= 5);
	order.events.count--;
	assert_false(order_verify(&order, &accesses, why, sizeof why));
	order_deinit(&order);
	finish();
}

static uint32_t count_races(bool *saw)
{
	struct order order;
	struct races races;

	unexplained(&order);
	races_find(&races, &accesses, &order, NULL, NULL);
	uint32_t count = races.races.count;
	if (saw && count)
		*saw = races.races.items[0].saw;
	races_deinit(&races);
	order_deinit(&order);
	finish();
	return count;
}

static void test_races(void **state)
{
	bool saw = false;

	(void)state;
	/* plain accesses */
	start(2);
	store(0, 0, 5);
	load(1, 0, 5);
	assert_int_equal(count_races(&saw), 1);
	assert_true(saw);
	/* released by a plain store to a word that is taken by a locked instruction */
	start(2);
	exchange(0, 1, 0, 1, 1);
	store(0, 0, 5);
	store(0, 1, 0);
	exchange(1, 1, 0, 1, 2);
	load(1, 0, 5);
	assert_int_equal(count_races(NULL), 0);
	/* different bytes of a word */
	start(2);
	access(0, 0, 0, 0, 0x0f, 1, false);
	access(1, 0, 0, 0, 0xf0, 2ul << 32, false);
	assert_int_equal(count_races(NULL), 0);
	/* loads alone */
	start(2);
	load(0, 0, 0);
	load(1, 0, 0);
	assert_int_equal(count_races(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_values),
	        cmocka_unit_test(test_store_buffer),
	        cmocka_unit_test(test_no_store_buffer),
	        cmocka_unit_test(test_stamps),
	        cmocka_unit_test(test_two_stores),
	        cmocka_unit_test(test_outside),
	        cmocka_unit_test(test_check),
	        cmocka_unit_test(test_races),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
