/* bugnet ls, bugnet rm: the recordings that are here, and those with a name. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/json.h"
#include "cli/recordings.h"
#include "record/control.h"
#include "record/vector.h"
#include "recording/amount.h"
#include "recording/event.h"
#include "recording/meta.h"
#include "recording/names.h"

struct ls_values {
	bool json;
};

static const struct option_spec ls_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct ls_values, json),
                .help = "print one JSON object instead of text",
        },
        {0},
};

/* What a list tells of one. */
struct listed {
	char *path;
	char *program; /* its last part; "?" */
	char end[128];
	uint64_t time; /* ns since 1970 */
	uint64_t size, instructions;
};

struct list {
	VECTOR(struct listed) items;
};

/* ---- reading ---- */

static void describe_end(const struct meta *meta, char *text, size_t size)
{
	const char *kind = meta_text(meta, META_SAVE_KIND), *reason = meta_text(meta, META_SAVE_REASON);
	uint64_t end, status = 0;
	char name[NAME_TEXT_SIZE];

	meta_number(meta, META_END_STATUS, &status);
	if (kind && reason && strcmp(kind, "end") != 0)
		snprintf(text, size, "went on: %s", reason);
	else if (!meta_number(meta, META_END_KIND, &end))
		snprintf(text, size, "%s", reason ? reason : "cut off");
	else if (end == END_KILLED)
		snprintf(text, size, "%s", signal_name((uint32_t)status, name));
	else if (end == END_EXIT || end == END_THREAD_EXIT)
		snprintf(text, size, "exit %u", (unsigned)status & 0xff);
	else if (end == END_EXEC)
		snprintf(text, size, "exec");
	else /* in the words of 'bugnet info' */
		snprintf(text, size, "%s", end_text((uint32_t)end, (int32_t)status, name));
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "?";
}

/* Headers tell everything but the facts: nothing large is decompressed. */
static void add(void *context, const char *path)
{
	struct list *list = context;
	struct listed listed = {0};
	struct reader reader;
	struct meta meta = {0};
	struct stat status;

	if (reader_open(&reader, path))
		return; /* of another kind */
	meta_read(&reader, &meta);
	listed.path = strdup(path);
	listed.program = strdup(base_name(meta_text(&meta, META_PROGRAM)));
	if (!listed.path || !listed.program)
		abort();
	describe_end(&meta, listed.end, sizeof listed.end);
	listed.size = reader.size;
	if (!meta_number(&meta, META_SAVE_TIME, &listed.time) &&
	        !meta_number(&meta, META_START, &listed.time) && stat(path, &status) == 0)
		listed.time = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
	for (size_t i = 0; i < reader.count; i++) {
		if (reader.sections[i].type == SECTION_STRETCH)
			listed.instructions += reader.sections[i].last - reader.sections[i].first;
	}
	meta_deinit(&meta);
	reader_deinit(&reader);
	vector_push(&list->items, listed);
}

static int compare(const void *a, const void *b)
{
	uint64_t left = ((const struct listed *)a)->time, right = ((const struct listed *)b)->time;

	return (left < right) - (left > right);
}

/* ---- printing ---- */

static void print_plain(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static void print_rows(const struct list *list)
{
	char size[AMOUNT_TEXT_SIZE], instructions[AMOUNT_TEXT_SIZE], date[32];

	if (!list->items.count) {
		printf("no recordings here\n");
		return;
	}
	printf("%-19s %10s %14s  %-12s %-20s %s\n", "SAVED", "SIZE", "INSTRUCTIONS", "PROGRAM", "END",
	        "FILE");
	for (uint32_t i = 0; i < list->items.count; i++) {
		const struct listed *listed = &list->items.items[i];
		time_t seconds = (time_t)(listed->time / 1000000000);
		struct tm parts;
		if (!localtime_r(&seconds, &parts) || !strftime(date, sizeof date, "%F %T", &parts))
			strcpy(date, "?");
		printf("%-19s %10s %14s  ", date, size_text(listed->size, size),
		        amount_text(listed->instructions, instructions));
		print_plain(listed->program);
		printf("%*s ", (int)strlen(listed->program) < 12 ? 12 - (int)strlen(listed->program) : 0, "");
		print_plain(listed->end);
		printf("%*s ", (int)strlen(listed->end) < 20 ? 20 - (int)strlen(listed->end) : 0, "");
		print_plain(listed->path);
		putchar('\n');
	}
}

static void print_objects(const struct list *list)
{
	struct json json = {.out = stdout};

	json_open(&json, NULL, '{');
	json_open(&json, "recordings", '[');
	for (uint32_t i = 0; i < list->items.count; i++) {
		const struct listed *listed = &list->items.items[i];
		json_open(&json, NULL, '{');
		json_text(&json, "file", listed->path);
		json_text(&json, "program", listed->program);
		json_text(&json, "end", listed->end);
		json_number(&json, "time_ns", listed->time);
		json_number(&json, "bytes", listed->size);
		json_number(&json, "instructions", listed->instructions);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
}

static int ls_main(int argc, char **argv)
{
	struct ls_values values = {0};
	struct list list = {0};
	int status;
	int first = options_parse(&ls_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if (first < argc) {
		error_print("ls", "'%s' is one word too many; usage: bugnet %s", argv[first],
		        ls_command.synopsis);
		return STATUS_FAILED;
	}
	control_wait_for_savers();
	recordings_each(add, &list);
	qsort(list.items.items, list.items.count, sizeof *list.items.items, compare);
	if (values.json)
		print_objects(&list);
	else
		print_rows(&list);
	for (uint32_t i = 0; i < list.items.count; i++) {
		free(list.items.items[i].path);
		free(list.items.items[i].program);
	}
	vector_free(&list.items);
	return 0;
}

const struct command ls_command = {
        .name = "ls",
        .summary = "list the recordings that there are",
        .synopsis = "ls [--json]",
        .description =
                "List the recordings in the current directory and those in the recordings directory, where\n"
                "'bugnet record --name' puts them, the latest first: when they were saved, how large they "
                "are,\n"
                "how many instructions they hold, and how the program ended.\n",
        .options = ls_options,
        .function = ls_main,
};

/* ---- bugnet rm ---- */

static const struct option_spec rm_options[] = {{0}};

/* Only what is a recording: nobody should lose a file that only looks like one. */
static bool remove_one(const char *word)
{
	char place[PATH_MAX], why[128];
	const char *path = recordings_find(word, place);
	struct reader reader;

	if (reader_open(&reader, path)) {
		error_print("rm", "%s: %s%s", word, recording_error_text(&reader.error, why, sizeof why),
		        recording_next_step(&reader.error));
		return false;
	}
	reader_deinit(&reader);
	if (unlink(path) == 0)
		return true;
	error_print("rm", "%s: %s", path, strerror(errno));
	return false;
}

static int rm_main(int argc, char **argv)
{
	int status;
	int first = options_parse(&rm_command, argc, argv, NULL, &status);

	if (first < 0)
		return status;
	if (first == argc) {
		error_print("rm", "no recording given; usage: bugnet %s", rm_command.synopsis);
		return STATUS_FAILED;
	}
	status = 0;
	for (int i = first; i < argc; i++) {
		if (!remove_one(argv[i]))
			status = STATUS_FAILED;
	}
	return status;
}

const struct command rm_command = {
        .name = "rm",
        .summary = "remove recordings",
        .synopsis = "rm RECORDING...",
        .description = "Remove recordings: files, or names of the recordings directory. Other files are left "
                       "alone.\n",
        .options = rm_options,
        .function = rm_main,
};
