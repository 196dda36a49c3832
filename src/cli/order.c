/* bugnet order: one order of what all threads did. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/json.h"
#include "cli/shared_options.h"
#include "debug/order.h"

#define STATUS_WRONG 1

struct order_values {
	bool json;
	struct place_values place;
};

static const struct option_spec order_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct order_values, json),
                .help = "print one JSON object instead of text",
        },
        PLACE_OPTIONS(struct order_values),
        {0},
};

static const char *const source_names[] = {"none", "initial", "own", "other", "outside", "unordered"};

/* What one thread does until another one goes on. */
struct run {
	uint32_t thread;
	uint64_t first, last; /* positions */
	uint64_t loads, stores, operations, others, unordered;
};

static void add_to_run(struct run *run, const struct order_event *event, const struct step *step)
{
	run->last = step->position;
	run->loads += step->kind == STEP_ACCESS && step->reads;
	run->stores += step->kind == STEP_ACCESS && step->writes;
	run->operations += step->kind == STEP_OPERATION || step->kind == STEP_CALL;
	run->others += event->source == SOURCE_OTHER;
	run->unordered += event->source == SOURCE_UNORDERED;
}

static void print_run(const struct run *run, struct json *json)
{
	if (!json) {
		printf("%6u %12lu %12lu %8lu %8lu %8lu %8lu", run->thread, run->first, run->last,
		        run->operations, run->stores, run->loads, run->others);
		if (run->unordered)
			printf("  %lu unordered", run->unordered);
		printf("\n");
		return;
	}
	json_open(json, NULL, '{');
	json_number(json, "thread", run->thread);
	json_number(json, "first", run->first);
	json_number(json, "last", run->last);
	json_number(json, "operations", run->operations);
	json_number(json, "stores", run->stores);
	json_number(json, "loads", run->loads);
	json_number(json, "loads_from_others", run->others);
	json_number(json, "unordered", run->unordered);
	json_close(json, '}');
}

static void print_runs(const struct order *order, const struct accesses *accesses, struct json *json)
{
	struct run run = {0};
	bool any = false;

	for (uint32_t i = 0; i < order->events.count; i++) {
		const struct order_event *event = &order->events.items[i];
		const struct accessing_thread *thread = &accesses->threads[event->thread];
		const struct step *step = &thread->steps.items[event->step];
		if (event->visible)
			continue;
		if (!any || run.thread != thread->id) {
			if (any)
				print_run(&run, json);
			run = (struct run){.thread = thread->id, .first = step->position};
			any = true;
		}
		add_to_run(&run, event, step);
	}
	if (any)
		print_run(&run, json);
}

static void print_text(const struct order *order, const struct accesses *accesses)
{
	printf("threads       %u\n", accesses->thread_count);
	printf("shared words  %u\n", accesses->words.count);
	for (unsigned i = SOURCE_INITIAL; i <= SOURCE_UNORDERED; i++)
		printf("loads         %lu %s\n", order->sources[i], source_names[i]);
	printf("\nthread        first         last      ops   stores    loads   others\n");
	print_runs(order, accesses, NULL);
	printf("verified\n");
}

static void print_json(const struct order *order, const struct accesses *accesses)
{
	struct json json = {.out = stdout};

	json_open(&json, NULL, '{');
	json_number(&json, "threads", accesses->thread_count);
	json_number(&json, "shared_words", accesses->words.count);
	json_open(&json, "loads", '{');
	for (unsigned i = SOURCE_INITIAL; i <= SOURCE_UNORDERED; i++)
		json_number(&json, source_names[i], order->sources[i]);
	json_close(&json, '}');
	json_open(&json, "order", '[');
	print_runs(order, accesses, &json);
	json_close(&json, ']');
	json_bool(&json, "verified", true);
	json_close(&json, '}');
}

static int order_recording(const struct order_values *values, const char *path)
{
	struct recorded recorded;
	struct accesses accesses = {0};
	struct order order = {0};
	char why[1024];
	int status = STATUS_FAILED;

	if (recorded_open(&recorded, path, values->place.sysroot, values->place.binary, why, sizeof why) &&
	        accesses_collect(&accesses, &recorded, NULL, why, sizeof why)) {
		status = STATUS_WRONG;
		if (order_find(&order, &accesses, why, sizeof why) &&
		        order_verify(&order, &accesses, why, sizeof why))
			status = 0;
	}
	if (status)
		error_print("order", "%s: %s", path, why);
	else if (values->json)
		print_json(&order, &accesses);
	else
		print_text(&order, &accesses);
	order_deinit(&order);
	accesses_deinit(&accesses);
	recorded_close(&recorded);
	return status;
}

static int order_main(int argc, char **argv)
{
	struct order_values values = {0};
	int status;
	const char *file = options_parse_file(&order_command, argc, argv, &values, &status);

	return file ? order_recording(&values, file) : status;
}

const struct command order_command = {
        .name = "order",
        .summary = "tell in which order threads did what they did",
        .synopsis = "order [--json] [--sysroot DIR] [--binary PATH] [--] FILE",
        .description =
                "Work out one order of all that the threads of the recording FILE did to the memory that\n"
                "they share: one that respects every stamp, and in which every loaded value is that of the\n"
                "last store before it. It is checked, and printed as runs of one thread after another.\n"
                "\n"
                "Exit status: 0, 1 when there is no such order, 125 when it cannot be replayed.\n",
        .options = order_options,
        .function = order_main,
};
