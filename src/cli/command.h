/* The subcommands of bugnet. */
#ifndef BUGNET_CLI_COMMAND_H
#define BUGNET_CLI_COMMAND_H

#include "cli/options.h"

struct command {
	const char *name;                  /* NULL: bugnet itself */
	const char *summary;               /* one line for the list of commands */
	const char *synopsis;              /* what follows "bugnet " in the usage line */
	const char *description;           /* paragraphs for --help, ending in a newline */
	const struct option_spec *options; /* ends with an option without a name */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*function)(int argc, char **argv);
};

extern const struct command run_command;
extern const struct command record_command;
extern const struct command replay_command;
extern const struct command debug_command;
extern const struct command info_command;
extern const struct command events_command;
extern const struct command order_command;
extern const struct command races_command;
extern const struct command pack_command;
extern const struct command trim_command;
extern const struct command detach_command;
extern const struct command save_command;
extern const struct command ps_command;
extern const struct command ls_command;
extern const struct command rm_command;
extern const struct command doctor_command;
extern const struct command help_command;
extern const struct command bugnet_command;

/* The subcommand of this name; when there is none, report that and return NULL. */
const struct command *command_find(const char *name);

#endif
