/* bugnet ps: what is being recorded. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/json.h"
#include "cli/running.h"
#include "record/control.h"
#include "recording/amount.h"

struct ps_values {
	bool json;
};

static const struct option_spec ps_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct ps_values, json),
                .help = "print one JSON object instead of text",
        },
        {0},
};

static void print_row(void *context, const struct running *running)
{
	char age[AMOUNT_TEXT_SIZE], used[AMOUNT_TEXT_SIZE], ring[AMOUNT_TEXT_SIZE], window[AMOUNT_TEXT_SIZE],
	        kept[AMOUNT_TEXT_SIZE], use[2 * AMOUNT_TEXT_SIZE];
	bool *any = context;

	if (!*any)
		printf("%8s %7s  %-10s %-20s %-12s %-14s %-8s %s\n", "PID", "THREADS", "SINCE", "RING",
		        "WINDOW", "INSTRUCTIONS", "SLOWDOWN", "PROGRAM");
	*any = true;
	snprintf(use, sizeof use, "%s of %s", size_text(running->used, used), size_text(running->ring, ring));
	char slowdown[16] = "-";
	if (running->slowdown > 0)
		snprintf(slowdown, sizeof slowdown, "~%.1f", running->slowdown);
	printf("%8d %7u  %-10s %-20s %-12s %-14s %-8s ", running->pid, running->threads,
	        duration_text(running->age, age), running->ring ? use : "all, to disk",
	        running->window ? duration_text(running->window, window) : "-",
	        running->ring ? amount_text(running->instructions, kept) : "-", slowdown);
	for (const char *c = running->program; *c; c++)
		putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
	putchar('\n');
}

static void print_object(void *context, const struct running *running)
{
	struct json *json = context;

	json_open(json, NULL, '{');
	json_number(json, "pid", (uint64_t)running->pid);
	json_text(json, "program", running->program);
	json_number(json, "threads", running->threads);
	json_number(json, "age_ns", running->age);
	json_number(json, "ring", running->ring);
	json_number(json, "used", running->used);
	json_number(json, "instructions", running->instructions);
	json_number(json, "window_ns", running->window);
	json_number(json, "dropped_instructions", running->dropped);
	json_number(json, "code_pieces", running->pieces);
	json_number(json, "slowdown_percent", (uint64_t)(running->slowdown * 100 + 0.5));
	json_number(json, "memory", running->memory);
	json_number(json, "interval", running->interval);
	json_close(json, '}');
}

/* What one does not tell is missing in the list. */
static int end(pid_t silent)
{
	fflush(stdout);
	bool others = running_tell_others("ps");
	if (silent)
		error_print("ps", CONTROL_SILENT, silent, silent, silent);
	return silent || others ? STATUS_FAILED : 0;
}

static int ps_main(int argc, char **argv)
{
	struct ps_values values = {0};
	struct json json = {.out = stdout};
	int status;
	int first = options_parse(&ps_command, argc, argv, &values, &status);
	bool any = false;
	pid_t silent;

	if (first < 0)
		return status;
	if (first < argc) {
		error_print("ps", "'%s' is one word too many; usage: bugnet %s", argv[first],
		        ps_command.synopsis);
		return STATUS_FAILED;
	}
	if (!values.json) {
		running_each(print_row, &any, &silent);
		if (!any && !silent)
			printf("nothing is being recorded\n");
		return end(silent);
	}
	json_open(&json, NULL, '{');
	json_open(&json, "recorded", '[');
	running_each(print_object, &json, &silent);
	json_close(&json, ']');
	json_close(&json, '}');
	return end(silent);
}

const struct command ps_command = {
        .name = "ps",
        .summary = "list the programs that are being recorded",
        .synopsis = "ps [--json]",
        .description =
                "List the processes of this user that are being recorded: since when, how much of the "
                "ring is\n"
                "used, how far back it reaches, in time and in instructions of all threads, and how many "
                "times\n"
                "slower the program is for it, as an estimate. As root, those of all users.\n"
                "\n"
                "Exit status: 0; or 125 when a recorder does not answer, or may not be asked since another\n"
                "user, such as root, records a process of this one; it is named, and all others are "
                "listed.\n",
        .options = ps_options,
        .function = ps_main,
};
