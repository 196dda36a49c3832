/* Options that several subcommands have, and what they mean to all of them. */
#ifndef BUGNET_CLI_SHARED_OPTIONS_H
#define BUGNET_CLI_SHARED_OPTIONS_H

#include <stddef.h>

#include "cli/options.h"

/* Which part of a recording; see position.h. */
struct range_values {
	const char *from, *to, *thread;
};

/* `of` has a struct range_values `range`; the texts end the sentence of what is done with a position. */
#define RANGE_OPTIONS(of, from_help, to_help, thread_help)                                                   \
	{.name = "from",                                                                                     \
	        .type = OPTION_TEXT,                                                                         \
	        .offset = offsetof(of, range.from),                                                          \
	        .value = "POS",                                                                              \
	        .help = from_help},                                                                          \
	        {.name = "to",                                                                               \
	                .type = OPTION_TEXT,                                                                 \
	                .offset = offsetof(of, range.to),                                                    \
	                .value = "POS",                                                                      \
	                .help = to_help},                                                                    \
	{                                                                                                    \
		.name = "thread", .type = OPTION_TEXT, .offset = offsetof(of, range.thread), .value = "ID",  \
		.help = thread_help                                                                          \
	}

/* Where the files of the recorded program are; for whoever replays. */
struct place_values {
	const char *sysroot, *binary;
};

/* `of` has a struct place_values `place`. */
#define PLACE_OPTIONS(of)                                                                                    \
	{.name = "sysroot",                                                                                  \
	        .type = OPTION_PATH,                                                                         \
	        .offset = offsetof(of, place.sysroot),                                                       \
	        .value = "DIR",                                                                              \
	        .help = "look for the recorded program's files in here"},                                    \
	{                                                                                                    \
		.name = "binary", .type = OPTION_PATH, .offset = offsetof(of, place.binary),                 \
		.value = "PATH", .help = "take this file for the recorded program itself"                    \
	}

#endif
