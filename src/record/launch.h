/* Start a program under bugnet. */
#ifndef BUGNET_RECORD_LAUNCH_H
#define BUGNET_RECORD_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct recorder_options;

struct launch_options {
	const char *command; /* of bugnet, for messages */
	const char *path;    /* the file to execute, checked by elf_check */
	char **argv;         /* the program's arguments, argv[0] as the user typed it */
	bool stats;          /* print the engine's counters when the program has ended */
	bool children;       /* follow execve: run the programs it starts translated too */
	bool count;          /* print how many instructions were executed */
	uint64_t cache;      /* bytes of translated code to keep; 0: as much as there is room for */
	const struct recorder_options *record; /* how to record it; NULL: only run it */
	bool debugged;                         /* see struct supervisor_options */
	int debugger;
};

/*
 * Execute the program in this very process, so that its pid, parent and terminal are
 * those the user's shell gave us; the supervisor is a detached helper. Returns only
 * on failure, with the exit status to use, after printing why.
 */
int launch_run(const struct launch_options *options);

#endif
