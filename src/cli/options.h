/*
 * The one option parser of all subcommands.
 *
 * A subcommand describes its options in a table; parsing and --help both come from
 * it. Options are long: --name, --name=value, --name value; some have a letter too: -o
 * value, -ovalue. `--` and the first word that is no option end them, so that `bugnet run
 * ls -l` needs no `--`. Every subcommand has --help (and -h) and --version without
 * listing them.
 */
#ifndef BUGNET_CLI_OPTIONS_H
#define BUGNET_CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

struct command;

enum option_type {
	OPTION_FLAG,         /* bool, set to true */
	OPTION_TEXT,         /* const char *, set to the value, which stays in argv */
	OPTION_LIST,         /* the same; given more than once, all values with commas between them */
	OPTION_PATH,         /* as OPTION_TEXT, and it is not empty */
	OPTION_SIZE,         /* uint64_t: bytes, with K, M or G */
	OPTION_SIZE_OR_NONE, /* the same, or 0 */
	OPTION_PORT,         /* const char *: the next word if that is a number, else "0" */
};

struct option_spec {
	const char *name; /* without the dashes; NULL ends the table */
	enum option_type type;
	size_t offset;     /* of the variable in the subcommand's struct of values */
	const char *value; /* other than OPTION_FLAG: what the value is called in --help */
	const char *help;
	char letter; /* of the short form, or 0 */
};

/*
 * Parse argv from argv[1] on into `values`. Returns the index of the first word after
 * the options (argc when there is none), or -1 when the command is over: --help or
 * --version was printed or a mistake was reported. *status is then the exit status.
 */
int options_parse(const struct command *command, int argc, char **argv, void *values, int *status);

/*
 * The same for subcommands that take one recording: options may come behind it too.
 * Returns the recording's path, or NULL when the command is over.
 */
const char *options_parse_file(
        const struct command *command, int argc, char **argv, void *values, int *status);
/* The same, and `--` behind the recording ends them: *rest are the words behind it, up to a NULL. */
const char *options_parse_file_and_rest(
        const struct command *command, int argc, char **argv, void *values, char ***rest, int *status);

void options_print_help(const struct command *command, FILE *stream);

#endif
