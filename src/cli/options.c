#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/suggest.h"
#include "cli/version.h"

/* Where the help texts begin: behind the longest "  --name VALUE". */
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
	case OPTION_TEXT:
		if (value) {
			*(const char **)place = value;
			return true;
		}
		break;
	case OPTION_SIZE:
		if (!value)
			break;
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

int options_parse(const struct command *command, int argc, char **argv, void *values, int *status)
{
	*status = STATUS_FAILED;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool is_long = word[0] == '-' && word[1] == '-';
		const char *name = word + (is_long ? 2 : 1);
		size_t length = word[0] ? strcspn(name, "=") : 0;
		const char *value = word[0] && name[length] ? name + length + 1 : NULL;
		const struct option_spec *common, *option;

		if (word[0] != '-' || word[1] == '\0')
			return i;
		if (is_long && word[2] == '\0')
			return i + 1;
		option = is_long ? find_option(command->options, name, length) : NULL;
		common = is_long ? find_option(common_options, name, length) : NULL;
		if (strcmp(word, "-h") == 0)
			common = &common_options[0];
		if (!option && !common) {
			report_unknown(command, word, name, length);
			return -1;
		}
		if (value && (common || option->type == OPTION_FLAG)) {
			error_print(command->name, "option '--%.*s' takes no value; leave out '=%s'",
			        (int)length, name, value);
			return -1;
		}
		if (common) {
			obey_common(command, common);
			*status = 0;
			return -1;
		}
		if (!value && option->type != OPTION_FLAG && i + 1 < argc)
			value = argv[++i];
		if (!store(command, option, value, values))
			return -1;
	}
	return argc;
}

static void print_options(const struct option_spec *option, FILE *stream)
{
	for (; option->name; option++) {
		int width = fprintf(stream, "  --%s%s%s", option->name, option->value ? " " : "",
		        option->value ? option->value : "");

		fprintf(stream, "%*s%s\n", width < HELP_COLUMN ? HELP_COLUMN - width : 1, "", option->help);
	}
}

void options_print_help(const struct command *command, FILE *stream)
{
	fprintf(stream, "Usage: bugnet %s\n\n%s\nOptions:\n", command->synopsis, command->description);
	print_options(command->options, stream);
	print_options(common_options, stream);
}
