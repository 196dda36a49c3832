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

#define MEGABYTE (1ul << 20)
#define SEGMENT  (512 * MEGABYTE)

static const struct shadow_reach wide = {.libraries = 65536 * MEGABYTE,
        .libraries_up = 8192 * MEGABYTE,
        .stack = 8192 * MEGABYTE,
        .heap = 32768 * MEGABYTE};
static const struct shadow_reach narrow = {.libraries = 64 * MEGABYTE,
        .libraries_up = 16 * MEGABYTE,
        .stack = 8 * MEGABYTE,
        .heap = 32 * MEGABYTE};

/* With segments where they are put: below the libraries, and below the executable. */
static void plan_for(struct shadow_plan *plan, uint64_t library, uint64_t stack, uint64_t low,
        const struct shadow_reach *reach)
{
	uint64_t fold = low < 1ul << FOLD_BIT ? 1ul << FOLD_BIT : 0, near = (low | fold) - SEGMENT;
	struct shadow_places places = {.library = library,
	        .stack = stack,
	        .executable = {low, low + MEGABYTE},
	        .segments = {{library - SEGMENT, library},
	                {near - 16 * MEGABYTE, near + SEGMENT - 16 * MEGABYTE}},
	        .segment_count = 2};
	struct maps maps = {0};

	shadow_plan(plan, &maps, &places, reach, MAX_RECORDED_THREADS);
}

/* As the kernel places them: 28 bits of pages for the libraries and the executable, 22 for the stack. */
static void random_plan(
        struct shadow_plan *plan, struct rng *random, bool high, const struct shadow_reach *reach)
{
	uint64_t stack = 0x7fffffffe000ul - rng_next(random) % (1ul << 34);
	uint64_t library = stack - (1ul << 30) - rng_next(random) % (1ul << 40);
	uint64_t low = high ? HIGH_FIRST + (rng_next(random) % (1ul << 40) & ~0xffful) : 0x400000;

	plan_for(plan, library & ~0xffful, stack & ~0xffful, low, reach);
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

/* Memory and shadow at a round distance would push each other out of the processor's first cache. */
static bool is_round(uint64_t distance)
{
	uint64_t rest = distance % (1ul << 28);

	return rest < 1ul << 22 || rest > (1ul << 28) - (1ul << 22);
}

static void test_room_for_all(void **state)
{
	struct rng random = rng_stream(1, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		random_plan(&plan, &random, n & 1, n & 2 ? &wide : &narrow);
		assert_int_equal(plan.thread_count, MAX_RECORDED_THREADS);
		assert_int_equal(plan.windowed, WINDOWED_THREADS);
		for (unsigned thread = 1; thread < plan.thread_count; thread++) {
			assert_int_equal(plan.distances[thread] & 63, 0);
			assert_false(is_round(plan.distances[thread]));
		}
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
		random_plan(&plan, &random, n & 1, n & 2 ? &wide : &narrow);
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
		random_plan(&plan, &random, n & 1, n & 2 ? &wide : &narrow);
		for (unsigned a = plan.windowed; a < plan.windowed + 32; a++) {
			for (unsigned b = plan.windowed; b < a; b++) {
				int64_t apart = (int64_t)(plan.distances[a] - plan.distances[b]);
				assert_true((apart < 0 ? -apart : apart) >= 64 * (int64_t)(1ul << 30));
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

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		uint64_t stack = 0x7fffffffe000ul - rng_next(&random) % (1ul << 34);
		uint64_t library = stack - (1ul << 30) - rng_next(&random) % (1ul << 37);
		uint64_t low = (library + rng_next(&random) % (1ul << 24)) & ~0xffful;

		plan_for(&plan, library & ~0xffful, stack & ~0xffful, low, n & 1 ? &wide : &narrow);
		for (unsigned i = 0; i < plan.window_count; i++) {
			for (unsigned k = 0; k < i; k++)
				assert_false(overlap(plan.windows[i], plan.windows[k]));
		}
		for (unsigned thread = 1; thread < plan.windowed; thread++)
			check_apart(&plan, thread);
	}
}

static bool covers(const struct shadow_plan *plan, uint64_t address)
{
	for (unsigned i = 0; i < plan->window_count; i++) {
		if (address >= plan->windows[i].start && address < plan->windows[i].end)
			return true;
	}
	return false;
}

/* However little room there is, what is there has a shadow, and so have our own segments. */
static void test_narrow(void **state)
{
	uint64_t library = 0x7f5516244000, stack = 0x7ffd59c26000, low = 0x560949620000;
	struct shadow_plan plan;

	(void)state;
	plan_for(&plan, library, stack, low, &narrow);
	assert_true(covers(&plan, library) && covers(&plan, library - SEGMENT));
	assert_true(covers(&plan, stack) && covers(&plan, low) && covers(&plan, low - SEGMENT));
	assert_true(shadow_plan_bytes(&plan) < 3 * SEGMENT);
	plan_for(&plan, library, stack, low, &wide);
	assert_true(shadow_plan_bytes(&plan) > 100 * (1ul << 30));
}

static void test_room_for_sanitizers(void **state)
{
	struct rng random = rng_stream(2, 0);
	struct shadow_plan plan;

	(void)state;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		random_plan(&plan, &random, true, &wide);
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
	        cmocka_unit_test(test_narrow),
	        cmocka_unit_test(test_homes_are_apart),
	        cmocka_unit_test(test_first_homes_are_far_apart),
	        cmocka_unit_test(test_room_for_sanitizers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
