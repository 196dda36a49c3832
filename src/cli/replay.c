/* bugnet replay: run a recording again, instruction for instruction. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/error.h"
#include "replay/replayer.h"

#define STATUS_DIVERGED 1

struct replay_values {
	bool check;
	bool output;
	const char *from, *to, *thread, *jobs;
	const char *sysroot, *binary;
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
        {
                .name = "from",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, from),
                .value = "POS",
                .help = "begin with the last keyframe at or before this position of each thread",
        },
        {
                .name = "to",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, to),
                .value = "POS",
                .help = "stop at this position of each thread and print its registers",
        },
        {
                .name = "thread",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, thread),
                .value = "ID",
                .help = "replay this thread only",
        },
        {
                .name = "jobs",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, jobs),
                .value = "N",
                .help = "replay so many stretches at once; by default as many as there are processors",
        },
        {
                .name = "sysroot",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, sysroot),
                .value = "DIR",
                .help = "look for the recorded program's files in here",
        },
        {
                .name = "binary",
                .type = OPTION_TEXT,
                .offset = offsetof(struct replay_values, binary),
                .value = "PATH",
                .help = "take this file for the recorded program itself",
        },
        {0},
};

/* What is not given stays as it is. */
static bool parse_number(const char *option, const char *text, uint64_t *number)
{
	char *end;

	if (!text)
		return true;
	errno = 0;
	unsigned long value = strtoul(text, &end, 0);
	if (errno || end == text || *end || *text == '-') {
		error_print("replay", "option '--%s': '%s' is no number", option, text);
		return false;
	}
	*number = value;
	return true;
}

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

static int replay_main(int argc, char **argv)
{
	struct replay_values values = {0};
	struct replay_options options = {.to = UINT64_MAX};
	struct replay_result result;
	uint64_t thread = UINT32_MAX, jobs = 0;
	int status;
	int first = options_parse(&replay_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if (first + 1 != argc) {
		error_print("replay",
		        first == argc ? "no recording given; usage: bugnet %s"
		                      : "give one recording at a time; usage: bugnet %s",
		        replay_command.synopsis);
		return STATUS_FAILED;
	}
	if (!parse_number("from", values.from, &options.from) ||
	        !parse_number("to", values.to, &options.to) ||
	        !parse_number("thread", values.thread, &thread) || !parse_number("jobs", values.jobs, &jobs))
		return STATUS_FAILED;
	if (values.jobs && (jobs == 0 || jobs > REPLAY_SESSIONS_MAXIMUM)) {
		error_print("replay", "option '--jobs': '%s' is not between 1 and %u", values.jobs,
		        REPLAY_SESSIONS_MAXIMUM);
		return STATUS_FAILED;
	}
	options.path = argv[first];
	options.sysroot = values.sysroot;
	options.binary = values.binary;
	options.output = values.output;
	options.sessions = (unsigned)jobs;
	options.show = !values.check && !values.output;
	options.thread = thread < UINT32_MAX ? (uint32_t)thread : UINT32_MAX;
	replay(&options, &result);
	if (*result.warning)
		error_print(
		        "replay", "warning: %s: %s; what comes before is used", options.path, result.warning);
	if (result.approximates)
		error_print("replay",
		        "warning: %s: this is not the processor it was recorded on, and the program has "
		        "instructions "
		        "(rcpps, rsqrtps, fsin or their kind) whose results differ between processors; if it "
		        "diverges, "
		        "replay it on a processor as 'bugnet info' names it",
		        options.path);
	if (result.outcome == REPLAY_FAILED) {
		error_print("replay", "%s: %s", options.path, result.message);
		return STATUS_FAILED;
	}
	if (values.check)
		print_report(values.output ? stderr : stdout, &result);
	if (result.outcome == REPLAY_EXACT)
		return 0;
	fflush(stdout);
	error_print("replay", "%s: %s", options.path, result.message);
	return STATUS_DIVERGED;
}

const struct command replay_command = {
        .name = "replay",
        .summary = "run a recording again, exactly as it was",
        .synopsis = "replay [--check] [--output] [--from POS] [--to POS] [--thread ID] [--jobs N] "
                    "[--sysroot DIR] [--binary PATH] [--] FILE",
        .description =
                "Replay the recording FILE: every thread from every keyframe, with nothing of the world it\n"
                "was recorded in but the code of the program and its libraries. Its registers are compared\n"
                "with what was recorded at keyframes, system calls and the end.\n"
                "\n"
                "Exit status: 0 when all is as recorded, 1 when it is not, 125 when it cannot be replayed.\n",
        .options = replay_options,
        .function = replay_main,
};
