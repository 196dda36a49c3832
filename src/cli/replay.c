/* bugnet replay: run a recording again, instruction for instruction. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/position.h"
#include "cli/shared_options.h"
#include "replay/replayer.h"

#define STATUS_DIVERGED 1

struct replay_values {
	bool check;
	bool output;
	bool stats;
	struct range_values range;
	const char *jobs;
	struct place_values place;
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

static int replay_main(int argc, char **argv)
{
	struct replay_values values = {0};
	struct position_range range;
	struct replay_result result;
	uint64_t jobs = 0;
	int status;
	const char *file = options_parse_file(&replay_command, argc, argv, &values, &status);

	if (!file)
		return status;
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
	        .show = !values.check && !values.output};
	replay(&options, &result);
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
        .summary = "run a recording again, exactly as it was",
        .synopsis = "replay [--check] [--output] [--from POS] [--to POS] [--thread ID] [--jobs N] "
                    "[--stats] [--sysroot DIR] [--binary PATH] [--] FILE",
        .description =
                "Replay the recording FILE: every thread from every keyframe, with nothing of the world it\n"
                "was recorded in but the code of the program and its libraries. Its registers are compared\n"
                "with what was recorded at keyframes, system calls and the end.\n"
                "\n"
                "Exit status: 0 when all is as recorded, 1 when it is not, 125 when it cannot be replayed.\n",
        .options = replay_options,
        .function = replay_main,
};
