/* Work shared out: every stretch exactly once, whoever comes when, and nothing behind a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/schedule.h"

#define COUNT 100

static struct section sections[COUNT];
static const struct section *stretches[COUNT];
static const struct timeline timeline = {.stretches = stretches, .count = COUNT};

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		sections[i] = (struct section){
		        .id = stretch_id((uint32_t)(i / 10), (uint32_t)(i % 10)), .last = i % 7 * 1000000};
		stretches[i] = &sections[i];
	}
	return 0;
}

static void test_all_once(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 8; workers++) {
		struct schedule schedule;
		size_t first, end, expected = 0, takes = 0;
		schedule_init(&schedule, &timeline, workers);
		while (schedule_take(&schedule, &first, &end)) {
			assert_int_equal(first, expected);
			assert_true(end > first && end <= COUNT);
			expected = end;
			takes++;
		}
		assert_int_equal(expected, COUNT);
		assert_int_equal(schedule.left, 0);
		if (workers == 1)
			assert_int_equal(takes, 1);
		else
			assert_true(takes >= 2 * (size_t)workers && takes < COUNT);
		schedule_deinit(&schedule);
	}
}

static void test_failure(void **state)
{
	struct schedule schedule;
	size_t first, end;

	(void)state;
	schedule_init(&schedule, &timeline, 4);
	assert_true(schedule_take(&schedule, &first, &end));
	assert_true(schedule_take(&schedule, &first, &end));
	schedule_fail(&schedule, first + 1);
	assert_false(schedule_is_moot(&schedule, 0));
	assert_false(schedule_is_moot(&schedule, first + 1));
	assert_true(schedule_is_moot(&schedule, first + 2));
	schedule_fail(&schedule, first + 2); /* a later one does not count */
	assert_true(schedule_is_moot(&schedule, first + 2));
	schedule_fail(&schedule, 1);
	assert_true(schedule_is_moot(&schedule, 2));
	assert_false(schedule_take(&schedule, &first, &end));
	schedule_deinit(&schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_all_once),
	        cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
