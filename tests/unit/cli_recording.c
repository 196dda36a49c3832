/* What the commands that read recordings share: positions, quoting, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/json.h"
#include "cli/position.h"
#include "cli/recording.h"
#include "cli/shared_options.h"

static bool parse(const char *from, const char *to, const char *thread, struct position_range *range)
{
	char message[512];
	FILE *saved = stderr;

	stderr = fmemopen(message, sizeof message, "w");
	bool good = position_range_parse("test", &(struct range_values){from, to, thread}, range);
	fclose(stderr);
	stderr = saved;
	return good;
}

static void positions(void **state)
{
	struct position_range range;

	(void)state;
	assert_true(parse(NULL, NULL, NULL, &range));
	assert_int_equal(range.thread, POSITION_ANY_THREAD);
	assert_int_equal(range.from, 0);
	assert_true(range.to == UINT64_MAX);
	assert_true(parse("5", "18446744073709551615", "2", &range));
	assert_int_equal(range.thread, 2);
	assert_int_equal(range.from, 5);
	assert_true(range.to == UINT64_MAX);
	assert_true(parse("4", "4", "0", &range));
	assert_int_equal(range.to, 4);
	assert_true(parse("7K", "20.5M", NULL, &range));
	assert_int_equal(range.from, 7000);
	assert_int_equal(range.to, 20500000);
}

static void wrong_positions(void **state)
{
	static const char *const wrong[] = {
	        "", "x", "-1", "+1", " 1", "1 ", "1:2", "18446744073709551616", "1s", "0x10"};
	struct position_range range;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(parse(wrong[i], NULL, NULL, &range));
		assert_false(parse(NULL, wrong[i], NULL, &range));
		assert_false(parse(NULL, NULL, wrong[i], &range));
	}
	assert_false(parse(NULL, NULL, "4294967295", &range));
	assert_false(parse(NULL, NULL, "1K", &range));
	assert_false(parse("9", "5", NULL, &range));
}

static void expect_quoted(const char *text, const char *expected)
{
	char *quoted = recording_quoted(text);

	assert_string_equal(quoted, expected);
	free(quoted);
}

static void quoting(void **state)
{
	(void)state;
	expect_quoted("/usr/bin/x", "/usr/bin/x");
	expect_quoted("", "''");
	expect_quoted("a b", "'a b'");
	expect_quoted("it's", "'it'\\''s'");
	expect_quoted("\033[2J", "$'\\x1b[2J'");
	expect_quoted("a\n'\\", "$'a\\x0a\\'\\\\'");
	expect_quoted("\303\244", "\303\244");
}

static void json(void **state)
{
	char *text = NULL;
	size_t size;
	struct json json = {.out = open_memstream(&text, &size)};

	(void)state;
	json_open(&json, NULL, '{');
	json_text(&json, "a\"", "b\\\n\351");
	json_open(&json, "list", '[');
	json_number(&json, NULL, UINT64_MAX);
	json_signed(&json, NULL, -5);
	json_close(&json, ']');
	json_open(&json, "none", '[');
	json_close(&json, ']');
	json_text(&json, "null", NULL);
	json_real(&json, "real", 0.125);
	json_bool(&json, "bool", true);
	json_hex(&json, "hex", 0x7f00);
	json_close(&json, '}');
	fclose(json.out);
	assert_string_equal(text, "{\n"
	                          "  \"a\\\"\": \"b\\\\\\u000a\\u00e9\",\n"
	                          "  \"list\": [\n"
	                          "    18446744073709551615,\n"
	                          "    -5\n"
	                          "  ],\n"
	                          "  \"none\": [],\n"
	                          "  \"null\": null,\n"
	                          "  \"real\": 0.125,\n"
	                          "  \"bool\": true,\n"
	                          "  \"hex\": \"0x7f00\"\n"
	                          "}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(positions),
	        cmocka_unit_test(wrong_positions),
	        cmocka_unit_test(quoting),
	        cmocka_unit_test(json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
