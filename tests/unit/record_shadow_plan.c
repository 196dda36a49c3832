/* Where shadows go: for any layout the kernel may choose, every thread has a place of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../fuzz/random.h"
#include "record/shadow_plan.h"

#define LAYOUTS    200
#define SANITIZED  16 /* threads of a program with AddressSanitizer, at least */
#define USER_END   0x7ffffffff000ul
#define HIGH_FIRST 0x555555554000ul /* of executables that can be anywhere */

static const struct range sanitizer[] = {{0x7fff8000, 0x10007fff8000}, {0x600000000000, 0x640000000000}};

#define FOLD     (1ul << FOLD_BIT)
#define GIGABYTE (1ul << 30)
#define SEGMENT  (GIGABYTE * 3 / 4)

/* As the kernel places them: 28 bits of pages for the libraries and the executable, 22 for the stack. */
static void random_plan(struct shadow_plan *plan, struct rng *random, bool high)
{
	struct shadow_places places = {.stack = 0x7fffffffe000ul - rng_next(random) % (1ul << 34)};
	struct maps maps = {0};

	places.stack &= ~0xffful;
	places.library = (places.stack - (1ul << 30) - rng_next(random) % (1ul << 40)) & ~0xffful;
	places.low = high ? HIGH_FIRST + (rng_next(random) % (1ul << 40) & ~0xffful) : 0x400000;
	places.high = places.low + (1 << 20);
	places.segment_count = 2;
	places.segments[0] = (struct range){places.library - SEGMENT, places.library};
	places.segments[1].start = high ? places.low - SEGMENT : FOLD + GIGABYTE * 15 / 8;
	places.segments[1].end = places.segments[1].start + SEGMENT / 2;
	shadow_plan(plan, &maps, &places);
}

static bool overlap(struct range a, struct range b)
{
	return a.start < b.end && b.start < a.end;
}

static void check_apart(const struct shadow_plan *plan, unsigned thread)
{
	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range own = shadow_range(plan->windows[i], plan->distances[thread]);
		assert_true(own.start < own.end && own.end <= USER_END);
		for (unsigned k = 0; k < plan->window_count; k++) {
			assert_false(overlap(own, plan->windows[k]));
			for (unsigned other = 1; other < thread; other++)
				assert_false(
				        overlap(own, shadow_range(plan->windows[k], plan->distances[other])));
		}
	}
}

static void test_room_for_all(void **state)
{
	struct rng random = rng_stream(1, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		random_plan(&plan, &random, n & 1);
		assert_int_equal(plan.thread_count, MAX_RECORDED_THREADS);
		assert_int_equal(plan.windowed, WINDOWED_THREADS);
		for (unsigned thread = 1; thread < plan.thread_count; thread++)
			assert_int_equal(plan.distances[thread] & 63, 0);
		for (unsigned thread = 1; thread < plan.windowed; thread++)
			check_apart(&plan, thread);
	}
}

struct owned {
	struct range range;
	unsigned thread; /* 0: the program's own windows */
};

static int by_start(const void *a, const void *b)
{
	const struct owned *first = a, *second = b;

	return first->range.start < second->range.start ? -1 : first->range.start > second->range.start;
}

/* What threads that have no windows begin with is in nobody's way. */
static void test_homes_are_apart(void **state)
{
	static struct owned all[MAX_WINDOWS * (WINDOWED_THREADS + 1) + MAX_SEGMENTS * MAX_RECORDED_THREADS];
	struct rng random = rng_stream(4, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		unsigned count = 0;
		random_plan(&plan, &random, n & 1);
		for (unsigned i = 0; i < plan.window_count; i++)
			all[count++] = (struct owned){plan.windows[i], 0};
		for (unsigned thread = 1; thread < plan.thread_count; thread++) {
			bool windowed = thread < plan.windowed;
			const struct range *ranges = windowed ? plan.windows : plan.homes;
			for (unsigned i = 0; i < (windowed ? plan.window_count : plan.home_count); i++)
				all[count++] = (struct owned){
				        shadow_range(ranges[i], plan.distances[thread]), thread};
		}
		qsort(all, count, sizeof *all, by_start);
		for (unsigned i = 1; i < count; i++)
			assert_true(all[i - 1].range.end <= all[i].range.start);
	}
}

/* The first that have no windows can touch memory that is far apart without meeting each other. */
static void test_first_homes_are_far_apart(void **state)
{
	struct rng random = rng_stream(5, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		random_plan(&plan, &random, n & 1);
		for (unsigned a = plan.windowed; a < plan.windowed + 32; a++) {
			for (unsigned b = plan.windowed; b < a; b++) {
				int64_t apart = (int64_t)(plan.distances[a] - plan.distances[b]);
				assert_true((apart < 0 ? -apart : apart) >= 64 * (int64_t)GIGABYTE);
			}
		}
	}
}

/* What can be anywhere and has no interpreter lies among the libraries, and now and then close below the
 * stack. */
static void test_windows_are_apart(void **state)
{
	struct rng random = rng_stream(3, 0);
	struct shadow_plan plan;
	struct maps maps = {0};

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		struct shadow_places places = {.stack = 0x7fffffffe000ul - rng_next(&random) % (1ul << 34)};

		places.stack &= ~0xffful;
		places.library = (places.stack - (1ul << 30) - rng_next(&random) % (1ul << 37)) & ~0xffful;
		places.low = (places.library + rng_next(&random) % (1ul << 24)) & ~0xffful;
		places.high = places.low + (1 << 20);
		places.segment_count = 1;
		places.segments[0] = (struct range){places.library - SEGMENT, places.library};
		shadow_plan(&plan, &maps, &places);
		for (unsigned i = 0; i < plan.window_count; i++) {
			for (unsigned k = 0; k < i; k++)
				assert_false(overlap(plan.windows[i], plan.windows[k]));
		}
		for (unsigned thread = 1; thread < plan.windowed; thread++)
			check_apart(&plan, thread);
	}
}

static void test_room_for_sanitizers(void **state)
{
	struct rng random = rng_stream(2, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		random_plan(&plan, &random, true);
		for (unsigned thread = 1; thread <= SANITIZED; thread++) {
			for (unsigned i = 0; i < plan.window_count; i++) {
				struct range own = shadow_range(plan.windows[i], plan.distances[thread]);
				assert_false(overlap(own, sanitizer[0]));
				assert_false(overlap(own, sanitizer[1]));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_room_for_all),
	        cmocka_unit_test(test_windows_are_apart),
	        cmocka_unit_test(test_homes_are_apart),
	        cmocka_unit_test(test_first_homes_are_far_apart),
	        cmocka_unit_test(test_room_for_sanitizers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
