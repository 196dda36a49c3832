/* bugnet doctor: both forms of output say the same, and limits that are too low are noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/checks.h"
#include "cli/command.h"

static char output[32768];

static int doctor(char *option)
{
	char *argv[] = {"doctor", option, NULL};
	FILE *saved = stdout;
	FILE *stream = fmemopen(output, sizeof(output), "w");
	int status;

	stdout = stream;
	status = doctor_command.function(option ? 2 : 1, argv);
	stdout = saved;
	fclose(stream);
	return status;
}

static int count(const char *text, const char *part)
{
	int found = 0;

	while ((text = strstr(text, part))) {
		found++;
		text++;
	}
	return found;
}

static void text_and_json_agree(void **state)
{
	(void)state;
	int status = doctor(NULL);
	int lines = count(output, "\n");

	assert_true(status == 0 || status == 1);
	assert_int_equal(status, count(output, "FAIL ") > 0);
	assert_true(lines > 20);
	assert_int_equal(doctor("--json"), status);
	assert_int_equal(count(output, "\"name\": "), lines);
	assert_int_equal(count(output, "\"result\": "), lines);
	assert_non_null(strstr(output, status == 0 ? "\"ok\": true" : "\"ok\": false"));
}

/* Lower the soft limit while a check looks. */
static struct finding with_limit(int resource, rlim_t value, void (*check)(struct finding *finding))
{
	struct finding finding = {0};
	struct rlimit saved, lowered;

	assert_int_equal(getrlimit(resource, &saved), 0);
	lowered = saved;
	lowered.rlim_cur = value;
	assert_int_equal(setrlimit(resource, &lowered), 0);
	check(&finding);
	assert_int_equal(setrlimit(resource, &saved), 0);
	return finding;
}

static void low_limits(void **state)
{
	(void)state;
	struct finding finding = with_limit(RLIMIT_AS, 1ul << 29, check_address_space);

	assert_int_equal(finding.result, CHECK_FAIL);
	assert_string_equal(finding.what, "limited to 512 MB");
	assert_non_null(strstr(finding.mend, "ulimit -v unlimited"));
	assert_int_equal(with_limit(RLIMIT_AS, 1ul << 33, check_address_space).result, CHECK_OK);
	assert_int_equal(with_limit(RLIMIT_FSIZE, 1 << 20, check_file_size).result, CHECK_FAIL);
	assert_int_equal(with_limit(RLIMIT_NOFILE, 20, check_open_files).result, CHECK_WARN);
	assert_int_equal(with_limit(RLIMIT_NPROC, 20, check_processes).result, CHECK_WARN);
}

static void gdb_missing(void **state)
{
	struct finding finding = {0};

	(void)state;
	setenv("PATH", "/no/such/directory", 1);
	check_gdb(&finding);
	assert_int_equal(finding.result, CHECK_WARN);
	assert_non_null(strstr(finding.mend, "install gdb"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(text_and_json_agree),
	        cmocka_unit_test(low_limits),
	        cmocka_unit_test(gdb_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
