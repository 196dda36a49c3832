/* bugnet info: what is in a recording. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/summary.h"
#include "cli/recording.h"
#include "cli/shared_options.h"
#include "replay/replayer.h"

struct info_values {
	bool json, loads;
	struct place_values place;
};

static const struct option_spec info_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct info_values, json),
                .help = "print one JSON object instead of text",
        },
        {
                .name = "loads",
                .type = OPTION_FLAG,
                .offset = offsetof(struct info_values, loads),
                .help = "count the instructions that load, too, by replaying the recording",
        },
        PLACE_OPTIONS(struct info_values),
        {0},
};

/* Nothing counts them while recording: it would cost time. */
static void count_loads(struct summary *summary, const struct info_values *values)
{
	struct recording *recording = summary->recording;
	const struct replay_options options = {.path = recording->path,
	        .sysroot = values->place.sysroot,
	        .binary = values->place.binary,
	        .to = UINT64_MAX,
	        .thread = UINT32_MAX,
	        .loads = true};
	struct replay_result result;

	replay(&options, &result);
	summary->has_loads = result.outcome == REPLAY_EXACT;
	summary->loads = result.loads;
	if (!summary->has_loads)
		recording_warn(recording, "loads are not counted: %s", result.message);
}

static int info_main(int argc, char **argv)
{
	struct info_values values = {0};
	struct recording recording;
	struct summary summary;
	int status;
	const char *file = options_parse_file(&info_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (!recording_open(&recording, "info", file))
		return STATUS_FAILED;
	summary_init(&summary, &recording);
	if (values.loads)
		count_loads(&summary, &values);
	if (values.json)
		summary_print_json(&summary, stdout);
	else
		summary_print(&summary, stdout);
	summary_deinit(&summary);
	recording_close(&recording);
	return 0;
}

const struct command info_command = {
        .name = "info",
        .summary = "tell what is in a recording",
        .synopsis = "info [--json] [--loads] [--sysroot DIR] [--binary PATH] FILE",
        .description =
                "Tell what is in the recording FILE: the program and its arguments, the machine, how it\n"
                "ended and where, threads, keyframes, files, system calls, and how large it all is.\n"
                "\n"
                "Exit status: 0, or 125 when the file cannot be read.\n",
        .options = info_options,
        .function = info_main,
};
