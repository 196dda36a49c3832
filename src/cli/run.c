/* bugnet run: run a program wholly from the code cache. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/program.h"
#include "record/launch.h"

struct run_values {
	bool stats;
	bool children;
	bool count;
	uint64_t cache;
};

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

static int run_main(int argc, char **argv)
{
	struct run_values values = {0};
	char path[PATH_MAX];
	int status;
	int first = options_parse(&run_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if (first == argc) {
		error_print("run", "no program given; usage: bugnet %s", run_command.synopsis);
		return STATUS_FAILED;
	}
	if (!program_cache_check("run", values.cache))
		return STATUS_FAILED;
	if (!program_check("run", argv + first, "", path, &status))
		return status;
	return launch_run(&(struct launch_options){
	        .command = "run",
	        .path = path,
	        .argv = argv + first,
	        .stats = values.stats,
	        .children = values.children,
	        .count = values.count,
	        .cache = values.cache,
	});
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
