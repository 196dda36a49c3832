/* bugnet run: run a program wholly from the code cache. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/resolve.h"
#include "record/elf_check.h"
#include "record/launch.h"

struct run_values {
	bool stats;
	bool children;
	bool count;
	uint64_t cache;
};

#define CACHE_MIN (256ul << 10)
#define CACHE_MAX (128ul << 20)

static const struct option_spec run_options[] = {
        {
                .name = "stats",
                .type = OPTION_FLAG,
                .offset = offsetof(struct run_values, stats),
                .help = "print regions, blocks, links, cache size, requests and times to stderr at the end",
        },
        {
                .name = "children",
                .type = OPTION_FLAG,
                .offset = offsetof(struct run_values, children),
                .help = "run the programs that PROGRAM executes translated too, not natively",
        },
        {
                .name = "count",
                .type = OPTION_FLAG,
                .offset = offsetof(struct run_values, count),
                .help = "count the instructions that PROGRAM executes and print their number to stderr",
        },
        {
                .name = "cache",
                .type = OPTION_SIZE,
                .offset = offsetof(struct run_values, cache),
                .value = "SIZE",
                .help = "how much translated code to keep, 256K to 128M (128M); when it is full it is begun "
                        "anew",
        },
        {0},
};

static int report_unresolved(const char *name, int error)
{
	char here[PATH_MAX];

	if (error != ENOENT) {
		error_print("run", "%s: %s; give the program's path", name, strerror(error));
		return STATUS_CANNOT_RUN;
	}
	snprintf(here, sizeof(here), "./%s", name);
	if (*name == '\0')
		error_print("run", "the program's name is empty; give its name or path");
	else if (access(here, F_OK) == 0)
		error_print(
		        "run", "%s: not found in PATH; for the file in this directory say '%s'", name, here);
	else
		error_print(
		        "run", "%s: not found in PATH; check the spelling or give the program's path", name);
	return STATUS_NOT_FOUND;
}

/* Programs we must not translate still run, as they would without us. */
static int run_natively(const char *path, char **argv, const char *reason)
{
	error_print("run", "note: %s", reason);
	execv(path, argv);
	error_print("run", "%s: cannot execute: %s", path, strerror(errno));
	return STATUS_CANNOT_RUN;
}

static int run_main(int argc, char **argv)
{
	struct run_values values = {0};
	struct elf_report report;
	char path[PATH_MAX];
	int status;
	int first = options_parse(&run_command, argc, argv, &values, &status);
	int error;

	if (first < 0)
		return status;
	if (first == argc) {
		error_print("run", "no program given; usage: bugnet %s", run_command.synopsis);
		return STATUS_FAILED;
	}
	if (values.cache && (values.cache < CACHE_MIN || values.cache > CACHE_MAX)) {
		error_print("run", "a cache of %lu bytes is not possible; give a size from 256K to 128M",
		        values.cache);
		return STATUS_FAILED;
	}
	error = resolve_program(argv[first], path, sizeof(path));
	if (error && error != EACCES)
		return report_unresolved(argv[first], error);

	switch (elf_check(path, &report)) {
	case ELF_RUNS:
		return launch_run(&(struct launch_options){
		        .path = path,
		        .argv = argv + first,
		        .stats = values.stats,
		        .children = values.children,
		        .count = values.count,
		        .cache = values.cache,
		});
	case ELF_PRIVILEGED:
	case ELF_UNREADABLE:
		return run_natively(path, argv + first, report.message);
	case ELF_NOT_FOUND:
		error_print("run", "%s", report.message);
		return STATUS_NOT_FOUND;
	case ELF_LIMIT:
		error_print("run", "%s", report.message);
		return STATUS_FAILED;
	default:
		error_print("run", "%s", report.message);
		return STATUS_CANNOT_RUN;
	}
}

const struct command run_command = {
        .name = "run",
        .summary = "run a program wholly from translated code",
        .synopsis = "run [--stats] [--children] [--count] [--cache SIZE] [--] PROGRAM [ARGUMENT...]",
        .description =
                "Run PROGRAM, found as the shell finds it, from bugnet's code cache. Output, exit status,\n"
                "signals and terminal are the program's own.\n"
                "\n"
                "Exit status: the program's; or 125 when bugnet itself fails, 126 when the program cannot\n"
                "be run, 127 when it is not found.\n",
        .options = run_options,
        .function = run_main,
};
