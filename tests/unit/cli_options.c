/* The option parser: every form of an option, and what it says about mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/options.h"

struct values {
	bool stats;
	bool quiet;
	const char *ring;
	const char *output;
	const char *server;
};

static const struct option_spec options[] = {
        {.name = "stats", .type = OPTION_FLAG, .offset = offsetof(struct values, stats), .help = "count"},
        {.name = "quiet", .type = OPTION_FLAG, .offset = offsetof(struct values, quiet), .help = "hush"},
        {.name = "ring",
                .type = OPTION_TEXT,
                .offset = offsetof(struct values, ring),
                .value = "SIZE",
                .help = "size"},
        {.name = "output",
                .letter = 'o',
                .type = OPTION_TEXT,
                .offset = offsetof(struct values, output),
                .value = "FILE",
                .help = "where to"},
        {.name = "server",
                .type = OPTION_PORT,
                .offset = offsetof(struct values, server),
                .value = "[PORT]",
                .help = "whom for"},
        {0},
};

static const struct command command = {
        .name = "test",
        .synopsis = "test [--stats] [--] PROGRAM",
        .description = "What it does.\n",
        .options = options,
};

struct outcome {
	int first;
	const char *file;
	int status;
	struct values values;
	char output[2048]; /* stdout and stderr */
};

/* Parse "test WORDS..." with both output streams caught. */
static struct outcome parse(char **words)
{
	struct outcome outcome = {0};
	char *argv[16] = {"test"};
	int argc = 1;
	FILE *saved_out = stdout, *saved_err = stderr;
	FILE *stream = fmemopen(outcome.output, sizeof(outcome.output), "w");

	while (*words)
		argv[argc++] = *words++;
	stdout = stderr = stream;
	outcome.first = options_parse(&command, argc, argv, &outcome.values, &outcome.status);
	stdout = saved_out;
	stderr = saved_err;
	fclose(stream);
	return outcome;
}

/* The same for a command that takes a recording. */
static struct outcome parse_file(char **words)
{
	struct outcome outcome = {0};
	char *argv[16] = {"test"};
	int argc = 1;
	FILE *saved_out = stdout, *saved_err = stderr;
	FILE *stream = fmemopen(outcome.output, sizeof(outcome.output), "w");

	while (*words)
		argv[argc++] = *words++;
	stdout = stderr = stream;
	outcome.file = options_parse_file(&command, argc, argv, &outcome.values, &outcome.status);
	stdout = saved_out;
	stderr = saved_err;
	fclose(stream);
	return outcome;
}

#define PARSE_FILE(...) parse_file((char *[]){__VA_ARGS__, NULL})
#define PARSE(...)      parse((char *[]){__VA_ARGS__, NULL})

static void flags_and_values(void **state)
{
	(void)state;
	struct outcome outcome = PARSE("--stats", "--ring=4M", "prog");

	assert_int_equal(outcome.first, 3);
	assert_true(outcome.values.stats);
	assert_false(outcome.values.quiet);
	assert_string_equal(outcome.values.ring, "4M");

	outcome = PARSE("--ring", "8M", "prog");
	assert_int_equal(outcome.first, 3);
	assert_string_equal(outcome.values.ring, "8M");

	/* The value is whatever follows, even if it looks like an option; the last one counts. */
	outcome = PARSE("--ring=1=2", "--ring", "--stats");
	assert_int_equal(outcome.first, 4);
	assert_string_equal(outcome.values.ring, "--stats");
	assert_false(outcome.values.stats);

	assert_string_equal(PARSE("--ring=").values.ring, "");
}

static void a_port_is_a_number_or_left_out(void **state)
{
	(void)state;
	struct outcome outcome = PARSE("--server", "2345", "prog");

	assert_int_equal(outcome.first, 3);
	assert_string_equal(outcome.values.server, "2345");
	outcome = PARSE("--server", "23.bug");
	assert_int_equal(outcome.first, 2);
	assert_string_equal(outcome.values.server, "0");
	outcome = PARSE("--server", "--stats");
	assert_true(outcome.values.stats);
	assert_string_equal(outcome.values.server, "0");
	assert_string_equal(PARSE("--server").values.server, "0");
	assert_string_equal(PARSE("--server=x").values.server, "x");
}

static void the_first_word_ends_the_options(void **state)
{
	(void)state;
	assert_int_equal(PARSE("ls", "--stats").first, 1);
	assert_false(PARSE("ls", "--stats").values.stats);
	assert_int_equal(PARSE("-", "--stats").first, 1);
	assert_int_equal(PARSE("", "--stats").first, 1);
	assert_int_equal(PARSE("--stats").first, 2);
}

static void two_dashes_end_the_options(void **state)
{
	(void)state;
	struct outcome outcome = PARSE("--stats", "--", "--quiet");

	assert_int_equal(outcome.first, 3);
	assert_true(outcome.values.stats);
	assert_false(outcome.values.quiet);
	assert_int_equal(PARSE("--").first, 2);
	assert_int_equal(PARSE("--", "--").first, 2);
}

static void letters(void **state)
{
	(void)state;
	struct outcome outcome = PARSE("-o", "x", "prog");

	assert_int_equal(outcome.first, 3);
	assert_string_equal(outcome.values.output, "x");
	outcome = PARSE("-ox=y", "--stats", "prog");
	assert_int_equal(outcome.first, 3);
	assert_string_equal(outcome.values.output, "x=y");
	assert_string_equal(PARSE("--output=z", "prog").values.output, "z");
}

static void options_around_a_file(void **state)
{
	(void)state;
	struct outcome outcome = PARSE_FILE("a.bug", "-o", "x", "--stats");

	assert_string_equal(outcome.file, "a.bug");
	assert_string_equal(outcome.values.output, "x");
	assert_true(outcome.values.stats);
	outcome = PARSE_FILE("--stats", "--", "--a.bug");
	assert_string_equal(outcome.file, "--a.bug");
	assert_string_equal(PARSE_FILE("-").file, "-");
	outcome = PARSE_FILE("a", "b");
	assert_null(outcome.file);
	assert_int_equal(outcome.status, STATUS_FAILED);
	assert_string_equal(
	        outcome.output, "bugnet test: 'b' is one word too many; give one recording at a time\n");
	outcome = PARSE_FILE("--", "a", "--stats");
	assert_null(outcome.file);
	outcome = PARSE_FILE("--stats");
	assert_null(outcome.file);
	assert_string_equal(outcome.output,
	        "bugnet test: no recording given, and there is none here; usage: bugnet test [--stats] [--] "
	        "PROGRAM\n");
	outcome = PARSE_FILE("a", "--help");
	assert_null(outcome.file);
	assert_int_equal(outcome.status, 0);
}

static void assert_mistake(struct outcome outcome, const char *message)
{
	assert_int_equal(outcome.first, -1);
	assert_int_equal(outcome.status, STATUS_FAILED);
	assert_string_equal(outcome.output, message);
}

static void mistakes(void **state)
{
	(void)state;
	assert_mistake(PARSE("--stat"), "bugnet test: unknown option '--stat'; did you mean '--stats'?\n");
	assert_mistake(
	        PARSE("--sttas=3"), "bugnet test: unknown option '--sttas'; did you mean '--stats'?\n");
	assert_mistake(PARSE("-stats"), "bugnet test: unknown option '-stats'; did you mean '--stats'?\n");
	assert_mistake(PARSE("--vers"), "bugnet test: unknown option '--vers'; did you mean '--version'?\n");
	assert_mistake(PARSE("--elephant"),
	        "bugnet test: unknown option '--elephant'; 'bugnet test --help' lists the options\n");
	assert_mistake(
	        PARSE("-x"), "bugnet test: unknown option '-x'; 'bugnet test --help' lists the options\n");
	assert_mistake(
	        PARSE("--="), "bugnet test: unknown option '--'; 'bugnet test --help' lists the options\n");
	assert_mistake(PARSE("--ring"), "bugnet test: option '--ring' needs a value: --ring SIZE\n");
	assert_mistake(
	        PARSE("--stats=yes"), "bugnet test: option '--stats' takes no value; leave out '=yes'\n");
	assert_mistake(PARSE("--help=x"), "bugnet test: option '--help' takes no value; leave out '=x'\n");
	assert_mistake(PARSE("--\033[2J"),
	        "bugnet test: unknown option '--\\x1b[2J'; 'bugnet test --help' lists the options\n");
}

static void very_long_words(void **state)
{
	(void)state;
	char word[1000] = "--";

	memset(word + 2, 's', sizeof(word) - 3);
	assert_int_equal(PARSE(word).status, STATUS_FAILED);
}

static void help_and_version(void **state)
{
	(void)state;
	struct outcome outcome = PARSE("--help");

	assert_int_equal(outcome.first, -1);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.output, "Usage: bugnet test [--stats] [--] PROGRAM\n"
	                                    "\n"
	                                    "What it does.\n"
	                                    "\n"
	                                    "Options:\n"
	                                    "  --stats            count\n"
	                                    "  --quiet            hush\n"
	                                    "  --ring SIZE        size\n"
	                                    "  -o, --output FILE  where to\n"
	                                    "  --server [PORT]    whom for\n"
	                                    "  --help             print this help and exit\n"
	                                    "  --version          print the version and exit\n");
	assert_string_equal(PARSE("-h").output, outcome.output);

	outcome = PARSE("--version");
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.output, "bugnet 0.1.0\n");
}

static struct outcome call(const struct command *called, char **words)
{
	struct outcome outcome = {0};
	char *argv[16] = {"bugnet"};
	int argc = 1;
	FILE *saved_out = stdout, *saved_err = stderr;
	FILE *stream = fmemopen(outcome.output, sizeof(outcome.output), "w");

	while (*words)
		argv[argc++] = *words++;
	stdout = stderr = stream;
	outcome.status = called->function(argc, argv);
	stdout = saved_out;
	stderr = saved_err;
	fclose(stream);
	return outcome;
}

#define BUGNET(...) call(&bugnet_command, (char *[]){__VA_ARGS__})

static void subcommands(void **state)
{
	(void)state;
	struct outcome outcome = BUGNET(NULL);

	assert_int_equal(outcome.status, STATUS_FAILED);
	assert_non_null(strstr(outcome.output, "Usage: bugnet COMMAND"));
	assert_non_null(strstr(outcome.output, "\n  doctor "));
	assert_string_equal(BUGNET("help", NULL).output, outcome.output);
	assert_string_equal(BUGNET("--help", NULL).output, outcome.output);
	assert_int_equal(BUGNET("--help", NULL).status, 0);
	assert_string_equal(BUGNET("--version", NULL).output, "bugnet 0.1.0\n");
	assert_string_equal(BUGNET("run", "--version", NULL).output, "bugnet 0.1.0\n");
	assert_string_equal(BUGNET("help", "run", NULL).output, BUGNET("run", "--help", NULL).output);

	outcome = BUGNET("rnu", "ls", NULL);
	assert_int_equal(outcome.status, STATUS_FAILED);
	assert_string_equal(outcome.output, "bugnet: unknown command 'rnu'; did you mean 'run'?\n");
	assert_string_equal(BUGNET("help", "doc", NULL).output,
	        "bugnet: unknown command 'doc'; did you mean 'doctor'?\n");
	assert_string_equal(BUGNET("xyzzy", NULL).output,
	        "bugnet: unknown command 'xyzzy'; 'bugnet help' lists the commands\n");
	assert_string_equal(BUGNET("--verison", NULL).output,
	        "bugnet: unknown option '--verison'; did you mean '--version'?\n");
	assert_int_equal(BUGNET("help", "run", "doctor", NULL).status, STATUS_FAILED);
	assert_int_equal(BUGNET("run", NULL).status, STATUS_FAILED);
	assert_int_equal(BUGNET("doctor", "x", NULL).status, STATUS_FAILED);
}

static void programs_that_cannot_run(void **state)
{
	(void)state;
	assert_int_equal(BUGNET("run", "no-such-program-here", NULL).status, STATUS_NOT_FOUND);
	assert_int_equal(BUGNET("run", "--", "./no/such/program", NULL).status, STATUS_NOT_FOUND);
	assert_int_equal(BUGNET("run", "", NULL).status, STATUS_NOT_FOUND);
	assert_int_equal(BUGNET("run", "/etc/passwd", NULL).status, STATUS_CANNOT_RUN);
	assert_int_equal(BUGNET("run", "/", NULL).status, STATUS_CANNOT_RUN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(flags_and_values),
	        cmocka_unit_test(a_port_is_a_number_or_left_out),
	        cmocka_unit_test(the_first_word_ends_the_options),
	        cmocka_unit_test(two_dashes_end_the_options),
	        cmocka_unit_test(letters),
	        cmocka_unit_test(options_around_a_file),
	        cmocka_unit_test(mistakes),
	        cmocka_unit_test(very_long_words),
	        cmocka_unit_test(help_and_version),
	        cmocka_unit_test(subcommands),
	        cmocka_unit_test(programs_that_cannot_run),
	};

	/* Where nobody has recordings. */
	char place[] = "/tmp/bugnet-options-XXXXXX";
	if (!mkdtemp(place) || chdir(place))
		return 1;
	setenv("XDG_DATA_HOME", place, 1);
	setenv("XDG_RUNTIME_DIR", place, 1);
	rmdir(place);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
