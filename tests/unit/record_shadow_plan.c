/* Where shadows go: for any layout the kernel may choose, every thread has a place of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/random.h"
#include "record/shadow_plan.h"

#define LAYOUTS    200
#define SANITIZED  16 /* threads of a program with AddressSanitizer, at least */
#define USER_END   0x7ffffffff000ul
#define HIGH_FIRST 0x555555554000ul /* of executables that can be anywhere */

static const struct range sanitizer[] = {{0x7fff8000, 0x10007fff8000}, {0x600000000000, 0x640000000000}};

/* As the kernel places them: 28 bits of pages for the libraries and the executable, 22 for the stack. */
static void random_plan(struct shadow_plan *plan, struct rng *random, bool high)
{
	uint64_t stack = 0x7fffffffe000ul - rng_next(random) % (1ul << 34);
	uint64_t library = stack - (1ul << 30) - rng_next(random) % (1ul << 40);
	uint64_t low = high ? HIGH_FIRST + (rng_next(random) % (1ul << 40) & ~0xffful) : 0x400000;
	struct maps maps = {0};

	shadow_plan(plan, &maps, library & ~0xffful, stack & ~0xffful, low, low + (1 << 20));
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
		for (unsigned thread = 1; thread < plan.thread_count; thread++) {
			assert_int_equal(plan.distances[thread] & 63, 0);
			check_apart(&plan, thread);
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
		uint64_t stack = 0x7fffffffe000ul - rng_next(&random) % (1ul << 34);
		uint64_t library = stack - (1ul << 30) - rng_next(&random) % (1ul << 37);
		uint64_t low = (library + rng_next(&random) % (1ul << 24)) & ~0xffful;

		shadow_plan(&plan, &maps, library & ~0xffful, stack & ~0xffful, low, low + (1 << 20));
		for (unsigned i = 0; i < plan.window_count; i++) {
			for (unsigned k = 0; k < i; k++)
				assert_false(overlap(plan.windows[i], plan.windows[k]));
		}
		for (unsigned thread = 1; thread < plan.thread_count; thread++)
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
	        cmocka_unit_test(test_room_for_sanitizers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
