/* bugnet replay: run a recording again, instruction for instruction. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/gdb.h"
#include "cli/position.h"
#include "cli/shared_options.h"
#include "cli/ticker.h"
#include "replay/replayer.h"

#define STATUS_DIVERGED 1

struct replay_values {
	bool check;
	bool output;
	bool stats;
	struct range_values range;
	const char *jobs;
	struct place_values place;
	const char *at, *server;
	bool batch;
};

static const struct option_spec replay_options[] = {
        {
                .name = "check",
                .type = OPTION_FLAG,
                .offset = offsetof(struct replay_values, check),
                .help = "print what was replayed, how fast, and 'exact' if all is as recorded",
        },
        {
                .name = "output",
                .type = OPTION_FLAG,
                .offset = offsetof(struct replay_values, output),
                .help = "write again what the program wrote to standard output and standard error",
        },
        RANGE_OPTIONS(struct replay_values,
                "begin with the last keyframe at or before this position of each thread",
                "stop at this position of each thread and print its registers", "replay this thread only"),
        {
                .name = "jobs",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, jobs),
                .value = "N",
                .help = "replay so many stretches at once; by default as many as there are processors",
        },
        {
                .name = "stats",
                .type = OPTION_FLAG,
                .offset = offsetof(struct replay_values, stats),
                .help = "print how often what took time was done to stderr at the end",
        },
        {
                .name = "at",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, at),
                .value = "POS",
                .help = "gdb: begin at this position (20K, 1.5M), at N% of the way, at a time (1.5s, -20ms), "
                        "at the "
                        "start or "
                        "the end; default: end",
        },
        {
                .name = "batch",
                .type = OPTION_FLAG,
                .offset = offsetof(struct replay_values, batch),
                .help = "gdb: end when the commands given with -ex and -x have been executed",
        },
        {
                .name = "server",
                .type = OPTION_PORT,
                .offset = offsetof(struct replay_values, server),
                .value = "[PORT]",
                .help = "start no gdb, wait for any on this port of this machine, or on a free one",
        },
        PLACE_OPTIONS(struct replay_values),
        {0},
};

static void print_report(FILE *stream, const struct replay_result *result)
{
	fprintf(stream, "threads       %u\n", result->threads);
	fprintf(stream, "keyframes     %lu\n", result->keyframes);
	fprintf(stream, "instructions  %lu\n", result->instructions);
	fprintf(stream, "seconds       %.3f\n", result->seconds);
	fprintf(stream, "speed         %.0f instructions per second\n",
	        result->seconds > 0 ? (double)result->instructions / result->seconds : 0.0);
	if (result->cut)
		fprintf(stream, "cut off       %lu threads whose logs stop without an end\n", result->cut);
	if (result->skipped)
		fprintf(stream, "skipped       %lu stretches that lean on lost ones\n", result->skipped);
	if (result->outcome == REPLAY_EXACT)
		fprintf(stream, "exact\n");
}

static void print_stats(FILE *stream, const struct feed_counts *counts)
{
	fprintf(stream, "events applied              %lu\n", counts->records);
	fprintf(stream, "counters shared out again   %lu\n", counts->shares);
	fprintf(stream, "blocks executed singly      %lu\n", counts->steps);
	fprintf(stream, "requests for code           %lu\n", counts->requests);
	fprintf(stream, "requests for single blocks  %lu\n", counts->step_requests);
	fprintf(stream, "memory touched first        %lu\n", counts->faults);
}

static void print_warnings(const char *path, const struct replay_result *result)
{
	if (*result->warning)
		error_print("replay", "warning: %s: %s; what comes before is used", path, result->warning);
	if (result->approximates)
		error_print("replay",
		        "warning: %s: this is not the processor it was recorded on, and the program has "
		        "instructions "
		        "(rcpps, rsqrtps, fsin or their kind) whose results differ between processors; if it "
		        "diverges, "
		        "replay it on a processor as 'bugnet info' names it",
		        path);
}

/* Nothing was said of what to do with it. */
static bool is_for_gdb(const struct replay_values *values)
{
	return !values->check && !values->output && !values->stats && !values->jobs && !values->range.from &&
	       !values->range.to && !values->range.thread;
}

static bool gdb_options_fit(const struct replay_values *values, char **rest)
{
	const char *name = values->at       ? "--at"
	                   : values->server ? "--server"
	                   : values->batch  ? "--batch"
	                                    : *rest;

	if (!name || is_for_gdb(values))
		return true;
	error_print("replay",
	        "'%s' is for gdb, which is not started with --check, --output, --stats, --jobs, --from, --to "
	        "or "
	        "--thread; leave one of them out",
	        name);
	return false;
}

static int replay_main(int argc, char **argv)
{
	char **rest;
	struct replay_values values = {0};
	struct position_range range;
	struct replay_result result;
	uint64_t jobs = 0;
	struct ticker ticker = {.command = "replay", .doing = "checking", .unit = TICKER_INSTRUCTIONS};
	int status;
	const char *file = options_parse_file_and_rest(&replay_command, argc, argv, &values, &rest, &status);

	if (!file)
		return status;
	if (!gdb_options_fit(&values, rest))
		return STATUS_FAILED;
	if (is_for_gdb(&values)) {
		const struct gdb_options options = {.command = "replay",
		        .path = file,
		        .sysroot = values.place.sysroot,
		        .binary = values.place.binary,
		        .at = values.at,
		        .server = values.server,
		        .batch = values.batch,
		        .arguments = rest};
		return gdb_debug(&options);
	}
	if (!position_range_parse("replay", &values.range, &range) ||
	        !number_parse("replay", "jobs", values.jobs, 1, REPLAY_SESSIONS_MAXIMUM, &jobs))
		return STATUS_FAILED;
	const struct replay_options options = {.path = file,
	        .sysroot = values.place.sysroot,
	        .binary = values.place.binary,
	        .from = range.from,
	        .to = range.to,
	        .thread = range.thread,
	        .sessions = (unsigned)jobs,
	        .output = values.output,
	        .progress = &ticker.progress,
	        .show = !values.check && !values.output};
	if (values.check && !values.output)
		ticker_begin(&ticker);
	replay(&options, &result);
	ticker_end(&ticker);
	print_warnings(file, &result);
	if (result.outcome == REPLAY_FAILED) {
		error_print("replay", "%s: %s", file, result.message);
		return STATUS_FAILED;
	}
	if (values.stats)
		print_stats(stderr, &result.counts);
	if (values.check)
		print_report(values.output ? stderr : stdout, &result);
	if (result.outcome == REPLAY_EXACT)
		return 0;
	fflush(stdout);
	error_print("replay", "%s: %s", file, result.message);
	return STATUS_DIVERGED;
}

const struct command replay_command = {
        .name = "replay",
        .summary = "debug a recording in gdb, or run it again, exactly as it was",
        .synopsis =
                "replay [--at POS] [--batch | --server [PORT]] [--check] [--output] [--from POS] [--to POS] "
                "[--thread ID] [--jobs N] [--stats] [--sysroot DIR] [--binary PATH] [--] [FILE] [-- "
                "GDB-ARGUMENT...]",
        .description =
                "Open the recording FILE, or the latest one here, in gdb, at its end, where the program "
                "died.\n"
                "gdb's commands work on it forwards and backwards (reverse-step, reverse-next,\n"
                "reverse-continue, reverse-finish); 'help bugnet' in gdb lists what is added to them. Words\n"
                "behind a '--' that comes behind FILE, or before a word with a '-', are gdb's arguments.\n"
                "\n"
                "With --check, --output, --stats, --jobs, --from, --to or --thread there is no gdb: every "
                "thread\n"
                "is replayed from every keyframe, with nothing of the world it was recorded in but the code\n"
                "of the program and its libraries. Its registers are compared with what was recorded at\n"
                "keyframes, system calls and the end.\n"
                "\n"
                "Exit status: 0 when all is as recorded, 1 when it is not, 125 when it cannot be replayed; "
                "with\n"
                "gdb, gdb's.\n",
        .options = replay_options,
        .function = replay_main,
};
