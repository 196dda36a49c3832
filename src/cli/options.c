#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/recordings.h"
#include "cli/suggest.h"
#include "cli/version.h"

/* Where the help texts begin: at least here, so that the commands' helps look alike. */
#define HELP_COLUMN 18

static const struct option_spec common_options[] = {
        {.name = "help", .help = "print this help and exit"},
        {.name = "version", .help = "print the version and exit"},
        {0},
};

static const struct option_spec *find_option(const struct option_spec *table, const char *name, size_t length)
{
	for (; table->name; table++) {
		if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
			return table;
	}
	return NULL;
}

/* "bugnet run" or "bugnet", for hints. */
static const char *separator(const struct command *command)
{
	return command->name ? " " : "";
}

static const char *name_of(const struct command *command)
{
	return command->name ? command->name : "";
}

static void report_unknown(const struct command *command, const char *word, const char *name, size_t length)
{
	struct suggestion suggestion;
	int shown = name - word + length;

	suggest_init(&suggestion, name, length);
	for (const struct option_spec *option = command->options; option->name; option++)
		suggest_offer(&suggestion, option->name);
	for (const struct option_spec *option = common_options; option->name; option++)
		suggest_offer(&suggestion, option->name);
	if (suggestion.best)
		error_print(command->name, "unknown option '%.*s'; did you mean '--%s'?", shown, word,
		        suggestion.best);
	else
		error_print(command->name, "unknown option '%.*s'; 'bugnet%s%s --help' lists the options",
		        shown, word, separator(command), name_of(command));
}

/* Print the help or version that a common option asks for. */
static void obey_common(const struct command *command, const struct option_spec *option)
{
	if (strcmp(option->name, "help") == 0)
		options_print_help(command, stdout);
	else
		printf("bugnet %s\n", BUGNET_VERSION);
}

/* 4096, 64K, 16M, 2G */
static bool parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMG";
	char *end;

	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return false;
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	*size = number << shift;
	return number && end[unit ? 1 : 0] == '\0' && *size >> shift == number;
}

static bool store(
        const struct command *command, const struct option_spec *option, const char *value, void *values)
{
	char *place = (char *)values + option->offset;

	switch (option->type) {
	case OPTION_FLAG:
		*(bool *)place = true;
		return true;
	case OPTION_LIST:
		if (value && *(const char **)place) {
			char *list;
			if (asprintf(&list, "%s,%s", *(const char **)place, value) < 0)
				abort();
			*(const char **)place = list;
			return true;
		}
		/* fall through */
	case OPTION_TEXT:
	case OPTION_PORT:
		if (value) {
			*(const char **)place = value;
			return true;
		}
		break;
	case OPTION_PATH:
		if (value && *value) {
			*(const char **)place = value;
			return true;
		}
		break;
	case OPTION_SIZE:
	case OPTION_SIZE_OR_NONE:
		if (!value)
			break;
		if (option->type == OPTION_SIZE_OR_NONE && strcmp(value, "0") == 0) {
			*(uint64_t *)(void *)place = 0;
			return true;
		}
		if (parse_size(value, (uint64_t *)(void *)place))
			return true;
		error_print(command->name,
		        "option '--%s': '%s' is no size; give bytes, or a number with K, M or G",
		        option->name, value);
		return false;
	}
	error_print(command->name, "option '--%s' needs a value: --%s %s", option->name, option->name,
	        option->value);
	return false;
}

/* An option as it was written. */
struct written {
	const struct option_spec *option, *common; /* one of them, or none */
	const char *name;                          /* in the word: without dashes and value */
	size_t length;
	const char *value; /* in the same word, or NULL */
};

static const struct option_spec *find_letter(const struct option_spec *table, char letter)
{
	for (; table->name; table++) {
		if (table->letter && table->letter == letter)
			return table;
	}
	return NULL;
}

/* -o value, -ovalue, -h */
static struct written parse_short(const struct command *command, const char *word)
{
	struct written written = {
	        .option = find_letter(command->options, word[1]),
	        .name = word + 1,
	        .length = strcspn(word + 1, "="),
	};

	if (written.option) {
		written.length = 1;
		written.value = word[2] ? word + 2 : NULL;
	} else if (strcmp(word, "-h") == 0) {
		written.common = &common_options[0];
	}
	return written;
}

static struct written parse_long(const struct command *command, const char *word)
{
	struct written written = {.name = word + 2, .length = strcspn(word + 2, "=")};

	written.option = find_option(command->options, written.name, written.length);
	written.common = find_option(common_options, written.name, written.length);
	written.value = written.name[written.length] ? written.name + written.length + 1 : NULL;
	return written;
}

static bool is_number(const char *word)
{
	return *word && word[strspn(word, "0123456789")] == '\0';
}

int options_parse(const struct command *command, int argc, char **argv, void *values, int *status)
{
	*status = STATUS_FAILED;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool is_long = word[0] == '-' && word[1] == '-';

		if (word[0] != '-' || word[1] == '\0')
			return i;
		if (is_long && word[2] == '\0')
			return i + 1;
		struct written written = is_long ? parse_long(command, word) : parse_short(command, word);
		if (!written.option && !written.common) {
			report_unknown(command, word, written.name, written.length);
			return -1;
		}
		if (written.value && (written.common || written.option->type == OPTION_FLAG)) {
			error_print(command->name, "option '%.*s' takes no value; leave out '%s'",
			        (int)(written.name + written.length - word), word,
			        word + (written.name + written.length - word));
			return -1;
		}
		if (written.common) {
			obey_common(command, written.common);
			*status = 0;
			return -1;
		}
		if (!written.value && written.option->type == OPTION_PORT)
			written.value = i + 1 < argc && is_number(argv[i + 1]) ? argv[++i] : "0";
		else if (!written.value && written.option->type != OPTION_FLAG && i + 1 < argc)
			written.value = argv[++i];
		if (!store(command, written.option, written.value, values))
			return -1;
	}
	return argc;
}

/* Without a name the latest is meant; which that is, is said. */
static const char *latest_recording(const struct command *command)
{
	static char path[PATH_MAX];

	if (recordings_latest(path)) {
		fprintf(stderr, "bugnet %s: the latest recording is %s\n", command->name, path);
		return path;
	}
	error_print(command->name, "no recording given, and there is none here; usage: bugnet %s",
	        command->synopsis);
	return NULL;
}

const char *options_parse_file_and_rest(
        const struct command *command, int argc, char **argv, void *values, char ***rest, int *status)
{
	const char *file = NULL;

	if (rest)
		*rest = argv + argc;
	for (bool options_over = false; argc > 1;) {
		int first = options_over ? 1 : options_parse(command, argc, argv, values, status);
		if (first < 0)
			return NULL;
		if (file && rest && strcmp(argv[first - 1], "--") == 0) {
			*rest = argv + first;
			break;
		}
		if (first == argc)
			break;
		options_over |= strcmp(argv[first - 1], "--") == 0;
		/* "-- -ex bt": of the latest one. */
		if (!file && rest && options_over && argv[first][0] == '-') {
			*rest = argv + first;
			break;
		}
		*status = STATUS_FAILED;
		if (file) {
			error_print(command->name, "'%s' is one word too many; give one recording at a time",
			        argv[first]);
			return NULL;
		}
		file = argv[first];
		argc -= first;
		argv += first;
	}
	*status = STATUS_FAILED;
	if (!file)
		return latest_recording(command);
	if (!*file) {
		error_print(command->name,
		        "the recording's name is empty; give a file that 'bugnet record' made");
		return NULL;
	}
	static char found[PATH_MAX];
	return recordings_find(file, found);
}

const char *options_parse_file(
        const struct command *command, int argc, char **argv, void *values, int *status)
{
	return options_parse_file_and_rest(command, argc, argv, values, NULL, status);
}

/* "  -n, --name VALUE", as far as there is room; returns the width it takes. */
static int option_text(const struct option_spec *option, char *text, size_t size)
{
	char letter[8] = "";

	if (option->letter)
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	return snprintf(text, size, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
	        option->value ? option->value : "");
}

static int help_column(const struct option_spec *option)
{
	int column = HELP_COLUMN;

	for (; option->name; option++) {
		int width = option_text(option, NULL, 0);
		if (column < width + 2)
			column = width + 2;
	}
	return column;
}

static void print_options(const struct option_spec *option, int column, FILE *stream)
{
	char text[80];

	for (; option->name; option++) {
		option_text(option, text, sizeof text);
		fprintf(stream, "%-*s%s\n", column, text, option->help);
	}
}

void options_print_help(const struct command *command, FILE *stream)
{
	int column = help_column(command->options);

	fprintf(stream, "Usage: bugnet %s\n\n%s\nOptions:\n", command->synopsis, command->description);
	print_options(command->options, column, stream);
	print_options(common_options, column, stream);
}
