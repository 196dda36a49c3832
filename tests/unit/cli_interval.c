/* The value of --interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/interval.h"

static void expect(const char *text, uint64_t instructions, uint64_t nanoseconds)
{
	uint64_t count = 7, time = 9;

	assert_true(interval_parse(text, &count, &time));
	assert_int_equal(count, instructions ? instructions : 7);
	assert_int_equal(time, nanoseconds ? nanoseconds : 9);
}

static void instructions(void **state)
{
	(void)state;
	expect("1", 1, 0);
	expect("1000000", 1000000, 0);
	expect("500K", 500000, 0);
	expect("500k", 500000, 0);
	expect("1.5M", 1500000, 0);
	expect("2G", 2000000000, 0);
	expect("1e9", 1000000000, 0);
}

static void time(void **state)
{
	(void)state;
	expect("300us", 0, 300000);
	expect("500ms", 0, 500000000);
	expect("2s", 0, 2000000000);
	expect("0.5s", 0, 500000000);
	expect("1min", 0, 60000000000);
}

static void neither(void **state)
{
	static const char *const wrong[] = {"", "0", "0s", "-1", "+1", " 1", "1 s", "5q", "5m", "5S", "M",
	        "s", "0x10", "inf", "nan", "1e30", "99999999999999999999", "1..2", ".", "1T", "2ss", "1s2"};
	uint64_t count, nanoseconds;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(interval_parse(wrong[i], &count, &nanoseconds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(instructions),
	        cmocka_unit_test(time),
	        cmocka_unit_test(neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
