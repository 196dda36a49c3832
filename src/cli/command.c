/*
 * bugnet itself: the table of subcommands, and the command line up to the
 * subcommand's name.
 */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/error.h"
#include "cli/suggest.h"

static const struct command *const commands[] = {
        &run_command,
        &record_command,
        &replay_command,
        &debug_command,
        &info_command,
        &events_command,
        &order_command,
        &races_command,
        &pack_command,
        &trim_command,
        &save_command,
        &detach_command,
        &ps_command,
        &ls_command,
        &rm_command,
        &doctor_command,
        &help_command,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct command *command_find(const char *name)
{
	struct suggestion suggestion;

	suggest_init(&suggestion, name, strlen(name));
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
		suggest_offer(&suggestion, commands[i]->name);
	}
	if (suggestion.best)
		error_print(NULL, "unknown command '%s'; did you mean '%s'?", name, suggestion.best);
	else
		error_print(NULL, "unknown command '%s'; 'bugnet help' lists the commands", name);
	return NULL;
}

static void print_overview(FILE *stream)
{
	options_print_help(&bugnet_command, stream);
	fprintf(stream, "\nCommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(stream, "\n'bugnet help COMMAND' tells more about a command.\n");
}

static int help_main(int argc, char **argv)
{
	const struct command *command;
	int status;
	int first = options_parse(&help_command, argc, argv, NULL, &status);

	if (first < 0)
		return status;
	if (first == argc) {
		print_overview(stdout);
		return 0;
	}
	if (first + 1 < argc) {
		error_print("help", "'%s' is one word too many; give one command at a time", argv[first + 1]);
		return STATUS_FAILED;
	}
	command = command_find(argv[first]);
	if (!command)
		return STATUS_FAILED;
	options_print_help(command, stdout);
	return 0;
}

static const struct option_spec no_options[] = {{0}};

const struct command help_command = {
        .name = "help",
        .summary = "tell how to use bugnet or one of its commands",
        .synopsis = "help [COMMAND]",
        .description = "Print what COMMAND does and its options; without COMMAND, list the commands.\n",
        .options = no_options,
        .function = help_main,
};

static int bugnet_main(int argc, char **argv)
{
	const struct command *command;
	int status;
	int first;

	/* bugnet's own --help is the overview, not only the options. */
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_overview(stdout);
		return 0;
	}
	first = options_parse(&bugnet_command, argc, argv, NULL, &status);
	if (first < 0)
		return status;
	if (first >= argc) {
		print_overview(stderr);
		return STATUS_FAILED;
	}
	command = command_find(argv[first]);
	return command ? command->function(argc - first, argv + first) : STATUS_FAILED;
}

const struct command bugnet_command = {
        .synopsis = "COMMAND [OPTION...] [ARGUMENT...]",
        .description = "bugnet is a flight recorder and time-travel debugger for Linux x86-64 programs.\n",
        .options = no_options,
        .function = bugnet_main,
};
