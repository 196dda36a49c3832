/* bugnet events: the system calls and signals of a recording, as strace would list them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/listing.h"
#include "cli/recording.h"
#include "cli/shared_options.h"
#include "replay/replayer.h"

struct events_values {
	const char *calls;
	struct range_values range;
	struct place_values place;
	bool json, no_replay;
};

static const struct option_spec events_options[] = {
        {
                .name = "calls",
                .letter = 'e',
                .type = OPTION_TEXT,
                .offset = offsetof(struct events_values, calls),
                .value = "NAMES",
                .help = "list these system calls only: openat,close or %file; !NAMES: all others",
        },
        RANGE_OPTIONS(struct events_values, "begin at this position of each thread",
                "end at this position of each thread", "list this thread only"),
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct events_values, json),
                .help = "print one JSON object instead of text",
        },
        {
                .name = "no-replay",
                .type = OPTION_FLAG,
                .offset = offsetof(struct events_values, no_replay),
                .help = "read the log only: faster, with addresses in place of texts and structures",
        },
        PLACE_OPTIONS(struct events_values),
        {0},
};

/* What is under way: threads come one after the other, the events of each in their order. */
struct progress {
	struct listing listing;
	bool any;        /* an event came from the replay: */
	uint32_t thread; /* the last one's thread, */
	uint64_t count;  /* and how many of it came */
	uint64_t skip;   /* so many of the thread are listed already */
};

/* ---- from a replay ---- */

static size_t read_replayed(void *context, uint64_t address, void *to, size_t size)
{
	return replay_read(context, address, to, size);
}

static void see(void *context, const struct replay_view *view, uint32_t thread, const struct event *event,
        bool behind)
{
	struct progress *progress = context;
	const struct explained_memory memory = {read_replayed, (void *)view};

	if (!behind) {
		listing_call(&progress->listing, event, &memory);
		return;
	}
	if (!progress->any || progress->thread != thread)
		progress->count = 0;
	progress->any = true;
	progress->thread = thread;
	progress->count++;
	listing_event(&progress->listing, thread, event, &memory);
}

/* What a call wrote is known two instructions behind its position. */
static uint64_t end_of_replay(uint64_t to)
{
	return to > UINT64_MAX - 2 ? UINT64_MAX : to + 2;
}

/* Lists all there is, or up to where the replay fails, after saying why. */
static bool list_by_replay(
        struct progress *progress, const struct recording *recording, const struct events_values *values)
{
	const struct position_range *range = &progress->listing.range;
	const struct replay_observer observer = {progress, see};
	struct replay_options options = {.path = recording->path,
	        .sysroot = values->place.sysroot,
	        .binary = values->place.binary,
	        .from = range->from,
	        .to = end_of_replay(range->to),
	        .thread = range->thread,
	        .observer = &observer};
	struct replay_result result;

	replay(&options, &result);
	if (result.skipped)
		error_print("events",
		        "warning: %s: %lu stretches lean on lost ones and cannot be replayed; --no-replay "
		        "lists what "
		        "they have",
		        recording->path, result.skipped);
	if (result.outcome == REPLAY_EXACT)
		return true;
	error_print("events",
	        "warning: %s: %s; what arguments lead to is not known%s, and their addresses are shown",
	        recording->path, result.message, progress->any ? " from there on" : "");
	return false;
}

/* ---- from the log ---- */

static bool is_listed(const struct event *event)
{
	return event->kind == EVENT_SYSCALL || event->kind == EVENT_SIGNAL || event->kind == EVENT_END ||
	       (event->kind == EVENT_SIGRETURN && event->sigreturn.call);
}

static void visit(void *context, const struct recording_thread *thread, const struct section *stretch,
        const struct event *event)
{
	struct progress *progress = context;

	(void)stretch;
	if (!is_listed(event))
		return;
	if (progress->skip)
		progress->skip--;
	else
		listing_event(&progress->listing, thread->id, event, NULL);
}

/* What a replay has not listed. */
static void list_rest(struct progress *progress, struct recording *recording)
{
	const struct position_range *range = &progress->listing.range;

	for (size_t i = 0; i < recording->thread_count; i++) {
		const struct recording_thread *thread = &recording->threads[i];
		if (range->thread != POSITION_ANY_THREAD && range->thread != thread->id)
			continue;
		if (progress->any && thread->id < progress->thread)
			continue;
		progress->skip = progress->any && thread->id == progress->thread ? progress->count : 0;
		recording_visit(recording, thread, range, visit, progress);
	}
}

static void list_untold_end(struct progress *progress, const struct recording *recording)
{
	const struct position_range *range = &progress->listing.range;
	const struct recording_thread *first = recording->threads;
	struct event event = {.kind = EVENT_END};

	if (!recording_untold_end(recording, &event.end) || !recording->thread_count ||
	        !first->stretch_count || (range->thread != POSITION_ANY_THREAD && range->thread != first->id))
		return;
	event.position = first->stretches[first->stretch_count - 1]->last;
	if (event.position >= range->from && event.position <= range->to)
		listing_end(&progress->listing, first->id, &event);
}

/* ---- the command ---- */

static bool has_thread(const struct recording *recording, uint32_t id)
{
	for (size_t i = 0; i < recording->thread_count; i++) {
		if (recording->threads[i].id == id)
			return true;
	}
	return id == POSITION_ANY_THREAD;
}

static int list(struct progress *progress, struct recording *recording, const struct events_values *values)
{
	uint32_t thread = progress->listing.range.thread;

	if (!has_thread(recording, thread)) {
		error_print("events", "%s: there is no thread %u; 'bugnet info' lists the threads",
		        recording->path, thread);
		return STATUS_FAILED;
	}
	progress->listing.several = recording->thread_count > 1;
	progress->listing.as_json = values->json;
	listing_open(&progress->listing);
	bool replayed = !values->no_replay && list_by_replay(progress, recording, values);
	if (!replayed)
		list_rest(progress, recording);
	list_untold_end(progress, recording);
	listing_close(&progress->listing, replayed);
	return 0;
}

static int events_main(int argc, char **argv)
{
	struct events_values values = {0};
	struct recording recording;
	struct progress progress = {0};
	struct listing *listing = &progress.listing;
	int status;
	const char *file = options_parse_file(&events_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (!position_range_parse("events", &values.range, &listing->range) ||
	        !call_filter_parse("events", values.calls, &listing->filter) ||
	        !recording_open(&recording, "events", file))
		return STATUS_FAILED;
	status = list(&progress, &recording, &values);
	recording_close(&recording);
	return status;
}

const struct command events_command = {
        .name = "events",
        .summary = "list the system calls and signals of a recording",
        .synopsis = "events [-e NAMES] [--from POS] [--to POS] [--thread ID] [--json] [--no-replay] "
                    "[--sysroot DIR] [--binary PATH] FILE",
        .description =
                "List the system calls, signals and ends of threads that are in the recording FILE, one\n"
                "line each: its position (the number of instructions that the thread had executed), then\n"
                "what strace would print. The recording is replayed for it, which gives the texts and\n"
                "structures that arguments lead to; what cannot be replayed is listed with addresses.\n"
                "Several threads come one after the other, each line beginning with the thread's number.\n"
                "\n"
                "Exit status: 0, or 125 when the file cannot be read.\n",
        .options = events_options,
        .function = events_main,
};
