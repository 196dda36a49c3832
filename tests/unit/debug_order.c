/*
 * The order of all threads on made-up steps: what can be explained is, what cannot is marked, and the check
 * that goes through an order finds what is wrong with it. And races along it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>

#include "debug/descriptors.h"
#include "debug/origins.h"
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

static void exchange_loosely(
        unsigned thread, uint32_t word, uint64_t before, uint64_t after, uint64_t since, uint64_t stamp)
{
	exchange(thread, word, before, after, stamp);
	struct step *operation = &threads[thread].steps.items[threads[thread].steps.count - 2];
	operation->loose = true;
	operation->since = since;
}

/* A loose stamp says since when: within that the values tell who was first, outside of it they do not. */
static void test_loose(void **state)
{
	struct order order;

	(void)state;
	start(3);
	exchange(0, 0, 0, 1, 1);
	exchange(1, 0, 2, 3, 2); /* has what the loose one left */
	exchange(1, 0, 3, 4, 3);
	exchange_loosely(2, 0, 1, 2, 1, 9);
	expect_explained();
	start(3);
	exchange(0, 0, 0, 1, 1);
	exchange(1, 0, 2, 3, 2);
	exchange_loosely(2, 0, 1, 2, 2, 9); /* not before the one with stamp 2 */
	assert_true(unexplained(&order) > 0);
	order_deinit(&order);
	finish();
}

static void call(
        unsigned thread, uint64_t number, uint64_t stamp, uint64_t first, uint64_t second, uint64_t result)
{
	vector_push(&threads[thread].steps, (struct step){.kind = STEP_CALL,
	                                            .address = number,
	                                            .word = NO_WORD,
	                                            .stamp = stamp,
	                                            .arguments = {first, second},
	                                            .before = result});
}

/* Memory is what the last call before made it. */
static void test_origins(void **state)
{
	(void)state;
	start(2);
	call(0, SYS_brk, 1, 0, 0, 0x5000);
	call(0, SYS_brk, 2, 0x9000, 0, 0x9000);
	call(0, SYS_mmap, 3, 0, 0x4000, 0x20000);
	call(1, SYS_mmap, 7, 0, 0x1000, 0x21000);
	assert_int_equal(origin_find(&accesses, 0x8fff, 9).kind, ORIGIN_HEAP);
	assert_int_equal(origin_find(&accesses, 0x9000, 9).kind, ORIGIN_UNKNOWN);
	assert_int_equal(origin_find(&accesses, 0x21008, 2).kind, ORIGIN_UNKNOWN);
	struct origin early = origin_find(&accesses, 0x21008, 5), late = origin_find(&accesses, 0x21008, 9);
	assert_int_equal(early.kind, ORIGIN_MAPPED);
	assert_int_equal(early.start, 0x20000);
	assert_int_equal(early.thread, 0);
	assert_int_equal(late.start, 0x21000);
	assert_int_equal(late.thread, 1);
	threads[1].cleared = 0x21ff0;
	assert_int_equal(origin_find(&accesses, 0x21008, 9).kind, ORIGIN_STACK);
	threads[1].cleared = 0;
	finish();
}

static void follow(
        struct descriptors *descriptors, uint64_t number, uint64_t first, uint64_t result, const int pair[2])
{
	descriptors_follow(descriptors,
	        &(struct step){.kind = STEP_RETURN,
	                .address = number,
	                .before = result,
	                .arguments = {first, 0, pair ? (uint64_t)pair[0] : 0, pair ? (uint64_t)pair[1] : 0},
	                .pair = pair != NULL});
}

static void test_descriptors(void **state)
{
	struct descriptors descriptors = {0};

	(void)state;
	follow(&descriptors, SYS_pipe2, 0, 0, (int[]){3, 4});
	follow(&descriptors, SYS_eventfd2, 0, 5, NULL);
	follow(&descriptors, SYS_dup, 4, 9, NULL);
	uint32_t pipe = descriptors_channel(&descriptors, 3), event = descriptors_channel(&descriptors, 5);
	assert_int_not_equal(pipe, DESCRIPTOR_OTHER);
	assert_int_not_equal(event, DESCRIPTOR_OTHER);
	assert_int_not_equal(pipe, event);
	assert_int_equal(descriptors_channel(&descriptors, 4), pipe);
	assert_int_equal(descriptors_channel(&descriptors, 9), pipe);
	assert_int_equal(descriptors_channel(&descriptors, 7), DESCRIPTOR_OTHER);
	follow(&descriptors, SYS_close, 4, 0, NULL);
	assert_int_equal(descriptors_channel(&descriptors, 4), DESCRIPTOR_OTHER);
	/* two descriptors that could not be read: nothing is known of them */
	follow(&descriptors, SYS_pipe, 0, 0, NULL);
	assert_int_equal(descriptors_channel(&descriptors, 4), DESCRIPTOR_OTHER);
	descriptors_deinit(&descriptors);
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
	        cmocka_unit_test(test_loose),
	        cmocka_unit_test(test_origins),
	        cmocka_unit_test(test_descriptors),
	        cmocka_unit_test(test_races),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
