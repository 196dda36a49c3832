/* Finding a program in PATH, compared with what execvp does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/resolve.h"

static char directory[] = "/tmp/bugnet-resolve-XXXXXX";
static char path[PATH_MAX];

static void make_file(const char *name, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	mkdir("a", 0700);
	mkdir("b", 0700);
	mkdir("a/dir", 0700);
	make_file("here", 0755);
	make_file("a/plain", 0644);
	make_file("b/plain", 0644);
	make_file("a/both", 0644);
	make_file("b/both", 0755);
	make_file("b/dir", 0755);
	return 0;
}

static int tear_down(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return chdir("/") || system(command);
}

static int resolve(const char *directories, const char *name)
{
	if (directories)
		setenv("PATH", directories, 1);
	else
		unsetenv("PATH");
	path[0] = '\0';
	return resolve_program(name, path, sizeof(path));
}

static void a_slash_means_no_search(void **state)
{
	(void)state;
	assert_int_equal(resolve("a:b", "b/both"), 0);
	assert_string_equal(path, "b/both");
	assert_int_equal(resolve("a:b", "./nothing"), 0);
	assert_string_equal(path, "./nothing");
}

static void files_that_may_not_be_executed_are_skipped(void **state)
{
	(void)state;
	assert_int_equal(resolve("a:b", "both"), 0);
	assert_string_equal(path, "b/both");
	assert_int_equal(resolve("a:b", "dir"), 0);
	assert_string_equal(path, "b/dir");
}

static void refusal_is_remembered(void **state)
{
	(void)state;
	assert_int_equal(resolve("a:b:nowhere", "plain"), EACCES);
	assert_string_equal(path, "a/plain");
}

static void unsearchable_directories_hold_nothing(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip(); /* root may search everything */
	assert_int_equal(mkdir("locked", 0), 0);
	assert_int_equal(resolve("locked", "here"), ENOENT);
}

static void empty_elements_are_the_current_directory(void **state)
{
	(void)state;
	assert_int_equal(resolve("a::b", "here"), 0);
	assert_string_equal(path, "here");
	assert_int_equal(resolve("", "here"), 0);
	assert_int_equal(resolve("a:", "here"), 0);
	assert_int_equal(resolve("a", "here"), ENOENT);
}

static void not_found(void **state)
{
	char name[PATH_MAX + 10];

	(void)state;
	assert_int_equal(resolve("a:b:/no/such:a/plain", "nothing"), ENOENT);
	assert_int_equal(resolve("a:b", ""), ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(resolve("a:b", name), ENAMETOOLONG);
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(resolve("a:b", name), ENAMETOOLONG);
}

static void without_path_the_standard_directories(void **state)
{
	(void)state;
	assert_int_equal(resolve(NULL, "sh"), 0);
	assert_string_equal(path, "/bin/sh");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_slash_means_no_search),
	        cmocka_unit_test(files_that_may_not_be_executed_are_skipped),
	        cmocka_unit_test(refusal_is_remembered),
	        cmocka_unit_test(unsearchable_directories_hold_nothing),
	        cmocka_unit_test(empty_elements_are_the_current_directory),
	        cmocka_unit_test(not_found),
	        cmocka_unit_test(without_path_the_standard_directories),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
