/* bugnet events: the system calls and signals of a recording, as strace would list them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/recording.h"
#include "recording/names.h"

struct events_values {
	const char *from, *to, *thread;
};

static const struct option_spec events_options[] = {
        {
                .name = "from",
                .type = OPTION_TEXT,
                .offset = offsetof(struct events_values, from),
                .value = "POS",
                .help = "begin at this position of each thread",
        },
        {
                .name = "to",
                .type = OPTION_TEXT,
                .offset = offsetof(struct events_values, to),
                .value = "POS",
                .help = "end at this position of each thread",
        },
        {
                .name = "thread",
                .type = OPTION_TEXT,
                .offset = offsetof(struct events_values, thread),
                .value = "ID",
                .help = "list this thread only",
        },
        {0},
};

struct listing {
	bool several; /* threads */
};

static void begin_line(
        const struct listing *listing, const struct recording_thread *thread, uint64_t position)
{
	if (listing->several)
		printf("[%u] ", thread->id);
	printf("%12" PRIu64 " ", position);
}

/* They are in the registers, which a replay has; the log alone does not. */
static const char *arguments_text(void)
{
	return "...";
}

static void print_call(uint64_t number, int64_t result)
{
	char name[NAME_TEXT_SIZE], text[NAME_TEXT_SIZE];

	printf("%s(%s) = %s\n", syscall_name(number, name), arguments_text(),
	        syscall_result_text(number, result, text));
}

static void print_signal(uint32_t number, int32_t code, uint64_t address)
{
	char name[NAME_TEXT_SIZE], info[3 * NAME_TEXT_SIZE];

	printf("--- %s %s ---\n", signal_name(number, name),
	        signal_info_text(number, code, address, info, sizeof info));
}

static void print_end(const struct listing *listing, const struct recording_thread *thread, uint64_t position,
        const struct event_end *end)
{
	char name[NAME_TEXT_SIZE];

	if (end->kind == END_KILLED) {
		print_signal((uint32_t)end->status, end->code, end->address);
		begin_line(listing, thread, position);
	}
	switch (end->kind) {
	case END_EXIT:
	case END_THREAD_EXIT:
		printf("+++ exited with %d +++\n", end->status & 0xff);
		break;
	case END_KILLED:
		printf("+++ killed by %s +++\n", signal_name((uint32_t)end->status, name));
		break;
	case END_EXEC:
		printf("+++ executed another program +++\n");
		break;
	case END_RELEASED:
		printf("+++ went on without being recorded +++\n");
		break;
	}
}

static void print_event(void *context, const struct recording_thread *thread, const struct section *stretch,
        const struct event *event)
{
	const struct listing *listing = context;

	(void)stretch;
	switch (event->kind) {
	case EVENT_SYSCALL:
		begin_line(listing, thread, event->position);
		print_call(event_call_number(&event->syscall), event->syscall.result);
		break;
	case EVENT_SIGNAL:
		begin_line(listing, thread, event->position);
		print_signal(event->signal.number, event->signal.code, event->signal.address);
		break;
	case EVENT_SIGRETURN:
		if (!event->sigreturn.call)
			break;
		begin_line(listing, thread, event->position);
		print_call(SYS_rt_sigreturn, (int64_t)event->sigreturn.registers.gpr[0]);
		break;
	case EVENT_END:
		begin_line(listing, thread, event->position);
		print_end(listing, thread, event->position, &event->end);
		break;
	default:
		break;
	}
}

static bool has_thread(const struct recording *recording, uint32_t id)
{
	for (size_t i = 0; i < recording->thread_count; i++) {
		if (recording->threads[i].id == id)
			return true;
	}
	return id == POSITION_ANY_THREAD;
}

static int list(struct recording *recording, const struct position_range *range)
{
	struct listing listing = {.several = recording->thread_count > 1};

	if (!has_thread(recording, range->thread)) {
		error_print("events", "%s: there is no thread %u; 'bugnet info' lists the threads",
		        recording->path, range->thread);
		return STATUS_FAILED;
	}
	for (size_t i = 0; i < recording->thread_count; i++) {
		const struct recording_thread *thread = &recording->threads[i];
		if (range->thread == POSITION_ANY_THREAD || range->thread == thread->id)
			recording_visit(recording, thread, range, print_event, &listing);
	}
	return 0;
}

static int events_main(int argc, char **argv)
{
	struct events_values values = {0};
	struct recording recording;
	struct position_range range;
	int status;
	const char *file = options_parse_file(&events_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (!position_range_parse("events", values.from, values.to, values.thread, &range) ||
	        !recording_open(&recording, "events", file))
		return STATUS_FAILED;
	status = list(&recording, &range);
	recording_close(&recording);
	return status;
}

const struct command events_command = {
        .name = "events",
        .summary = "list the system calls and signals of a recording",
        .synopsis = "events [--from POS] [--to POS] [--thread ID] FILE",
        .description =
                "List the system calls, signals and ends of threads that are in the recording FILE, one\n"
                "line each: its position (the number of instructions that the thread had executed), then\n"
                "what strace would print. Several threads come one after the other, each line beginning\n"
                "with the thread's number.\n"
                "\n"
                "Exit status: 0, or 125 when the file cannot be read.\n",
        .options = events_options,
        .function = events_main,
};
