#include "record/recorded_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/pages.h"
#include "record/process_facts.h"
#include "record/shadows.h"
#include "recording/amount.h"

#define SUFFIX ".bug"

/* What threads are given to make keyframes before a file is made. */
#define SAVE_PATIENCE  50000000
#define SAVE_LOOK      500000
/* Between two files that the program's own output asked for. */
#define SAVE_APART     1000000000
/* Between two looks at what recording costs. */
#define COSTS_APART    100000000
/* Between two lines, or words to who waits, of how far something is. */
#define PROGRESS_APART 200000000
#define SHOWN_APART    1000000000

struct wish {
	struct save_wish wish;
	char kind[16], text[512], path[PATH_MAX];
};

/* What a child's recorder_options point to. */
struct child {
	struct recorder_options options;
	char path[PATH_MAX], program[PATH_MAX], directory[PATH_MAX];
	char *arguments, **argv;
};

struct recorded_process {
	pid_t pid;
	struct recorder *recorder;
	struct child *child; /* NULL: the program itself */
	struct space *space;
	uint8_t *logs;    /* of its threads, by number; NULL: it is finished */
	unsigned numbers; /* that there are */
	uint64_t interval;
	const struct mailbox *asking;
	struct keyframe_watch keyframes;
	const struct recorder_options *options;
	VECTOR(struct wish *) wishes;
	uint64_t wished;       /* when threads were asked for keyframes; 0: they were not */
	uint64_t last_by_call; /* when a call last asked for a file */
	struct budget budget;
	uint64_t next_costs; /* when to look at them */
	struct usage shown;  /* when the line on the terminal was last written; only time and instructions */
	uint64_t ended_executed; /* instructions of threads that have ended */
};

/* ---- what is known of a child ---- */

/* NAME.bug of the program gives NAME-PROGRAM-PID.bug for its children; a number behind it where that is
 * taken. */
static void choose_path(struct child *child, const char *first, pid_t pid)
{
	const char *slash = strrchr(child->program, '/'), *name = slash ? slash + 1 : child->program;
	size_t length = strlen(first);
	struct stat status;

	if (length > strlen(SUFFIX) && strcmp(first + length - strlen(SUFFIX), SUFFIX) == 0)
		length -= strlen(SUFFIX);
	for (unsigned i = 1; i < 10000; i++) {
		char number[16] = "";
		if (i > 1)
			snprintf(number, sizeof number, "-%u", i);
		int size = snprintf(child->path, PATH_MAX, "%.*s-%.64s-%d%s" SUFFIX, (int)length, first, name,
		        pid, number);
		if (size >= PATH_MAX || lstat(child->path, &status) < 0)
			return;
	}
}

/* NULL: it is dead already. */
static struct child *describe_child(const struct recorder_options *options, pid_t pid, pid_t forked)
{
	struct child *child = calloc(1, sizeof *child);

	if (!child)
		abort();
	child->options = *options;
	if (!process_link(pid, "exe", child->program)) {
		free(child);
		return NULL;
	}
	process_link(pid, "cwd", child->directory);
	child->argv = process_arguments(pid, &child->arguments);
	choose_path(child, options->path, pid);
	child->options.path = child->path;
	child->options.program = child->program;
	child->options.started_in = child->directory;
	child->options.argv = child->argv;
	child->options.forked = forked;
	return child;
}

static void forget_child(struct child *child)
{
	if (!child)
		return;
	free(child->arguments);
	free(child->argv);
	free(child);
}

/* ---- code ---- */

static void note_code(
        void *context, struct memory *memory, uint64_t address, const uint8_t *bytes, uint32_t size)
{
	struct recorded_process *recorded = context;
	const struct mailbox *asking = recorded->asking;

	recorder_code(recorded->recorder, asking ? asking->log : 0, asking ? asking->instructions : 0, memory,
	        address, bytes, size);
	uint32_t pieces = recorder_replaced(recorded->recorder);
	/* Threads note in their logs from where on they may run code that replaced other code. */
	if (pieces)
		__atomic_store_n(&space_info(recorded->space, 0)->code_pieces, pieces, __ATOMIC_RELEASE);
}

static void note_unmapped(void *context, uint64_t start, uint64_t end)
{
	struct recorded_process *recorded = context;

	recorder_unmapped(recorded->recorder, start, end);
}

void recorded_process_asks(struct recorded_process *recorded, const struct mailbox *mailbox)
{
	if (recorded)
		recorded->asking = mailbox;
}

void recorded_process_moved(struct recorded_process *recorded, struct space *space)
{
	recorded->space = space;
	space->on_code = note_code;
	space->on_unmapped = note_unmapped;
	space->on_code_context = recorded;
}

/* ---- begin ---- */

/* The recorder of a process that the program made. */
static struct recorder *create_recorder(struct child *child)
{
	char why[512];
	struct recorder *recorder = child ? recorder_create(&child->options, why, sizeof why) : NULL;

	if (child && !recorder)
		fprintf(stderr, "bugnet: %s goes on without being recorded: %s\n", child->program, why);
	return recorder;
}

struct recorded_process *recorded_process_create(struct recorder *recorder,
        const struct recorder_options *options, pid_t pid, pid_t forked, struct space *space,
        struct memory *memory)
{
	const struct segment_layout *first = &space->segments[0].layout;
	void *logs = mmap(NULL, first->logs_size, PROT_READ | PROT_WRITE, MAP_SHARED, space->memfd,
	        (off_t)(first->file + first->logs));
	struct child *child = recorder ? NULL : describe_child(options, pid, forked);

	if (logs == MAP_FAILED) {
		fprintf(stderr, "bugnet: cannot record: no memory for the logs: %s\n", strerror(errno));
		forget_child(child);
		return NULL;
	}
	if (!recorder)
		recorder = create_recorder(child);
	if (!recorder) {
		munmap(logs, first->logs_size);
		forget_child(child);
		return NULL;
	}
	struct recorded_process *recorded = calloc(1, sizeof *recorded);
	if (!recorded)
		abort();
	*recorded = (struct recorded_process){.pid = pid,
	        .recorder = recorder,
	        .child = child,
	        .options = child ? &child->options : options,
	        .logs = logs,
	        .numbers = log_numbers(first->logs_size),
	        .budget = {.most_slowdown = options->slowdown, .most_memory = options->memory},
	        .interval = options->interval ? options->interval : UINT64_MAX};
	recorder_begin(recorder, pid, space);
	space_info(space, 0)->code_pieces = 0;
	recorded_process_moved(recorded, space);
	/* What a copy of the code cache has already may be run without a word. */
	space_tell_code(space, memory);
	return recorded;
}

/* ---- logs ---- */

static struct log *log_of(const struct recorded_process *recorded, uint64_t number)
{
	return (struct log *)(recorded->logs + log_offset(number));
}

/* `came`: how far the thread is at least, or 0. Read before the events, since others may be adding to their
 * logs where the process ends. */
static void take_log(struct recorded_process *recorded, uint64_t number, unsigned reason, uint64_t came)
{
	struct log *log = log_of(recorded, number);
	uint64_t position = __atomic_load_n(&log->position, __ATOMIC_ACQUIRE);
	uint64_t used = __atomic_load_n(&log->used, __ATOMIC_ACQUIRE);

	position = came > position ? came : position;
	recorder_log(recorded->recorder, log, (const uint8_t *)log + LOG_DATA,
	        used < log_room(number) ? used : 0, position, reason);
	log->used = 0;
	if (reason == LOG_ENDED) {
		log->tid = 0;
		recorded->ended_executed += position;
	} else if (recorder_keyframe_in(recorded->recorder, log) == 0)
		recorder_ask_keyframe(recorded->recorder, log);
}

enum status recorded_process_log(struct recorded_process *recorded, uint64_t number, unsigned reason)
{
	if (!recorded || !recorded->logs || !number || number >= recorded->numbers)
		return STATUS_RELEASE;
	take_log(recorded, number, reason, 0);
	return STATUS_OK;
}

static struct keyframe_process threads_of(struct recorded_process *recorded, const struct memory *memory)
{
	return (struct keyframe_process){.pid = recorded->pid,
	        .memory = memory,
	        .space = recorded->space,
	        .logs = recorded->logs,
	        .numbers = recorded->numbers,
	        .recorder = recorded->recorder};
}

void recorded_process_places(
        struct recorded_process *recorded, const struct memory *memory, struct process_places *places)
{
	places->count = 0;
	for (unsigned i = 1; recorded && recorded->logs && i < logs_end(recorded->logs, recorded->numbers);
	        i++) {
		const struct log *log = log_of(recorded, i);
		struct keyframe_process threads = threads_of(recorded, memory);
		struct process_place place = {.id = log->id,
		        .tid = log->tid,
		        .vectors = (const uint8_t *)log + LOG_XSAVE,
		        .distance = space_info(recorded->space, 0)->distances[i]};
		uint32_t parked;
		if (!log->tid || !keyframes_place(&threads, i, &place.position, &parked))
			continue;
		place.calls = parked == PARKED_CALLING;
		place.runs = !parked;
		places->items[places->count++] = place;
	}
}

uint64_t recorded_process_next_look(const struct recorded_process *recorded)
{
	return recorded && recorded->logs ? recorded->keyframes.next : UINT64_MAX;
}

void recorded_process_look_now(struct recorded_process *recorded)
{
	if (recorded)
		recorded->keyframes.next = 0;
}

void recorded_process_look(struct recorded_process *recorded, const struct memory *memory, uint64_t now,
        struct stragglers *stragglers)
{
	if (now < recorded_process_next_look(recorded))
		return;
	struct keyframe_process threads = threads_of(recorded, memory);
	keyframes_look(&recorded->keyframes, &threads, now, stragglers);
}

/* All threads are due for a keyframe, and looked at. */
static void want_keyframes(struct recorded_process *recorded, uint64_t now)
{
	recorder_want_keyframes(recorded->recorder);
	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++)
		recorded->keyframes.threads[i].next = 0;
	recorded->keyframes.next = now;
}

/* ---- saving while it goes on ---- */

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool comes_too_soon(struct recorded_process *recorded, const char *kind)
{
	uint64_t now = nanoseconds();

	if (strcmp(kind, "call") != 0 && strcmp(kind, "output") != 0)
		return false;
	if (recorded->last_by_call && now - recorded->last_by_call < SAVE_APART)
		return true;
	recorded->last_by_call = now;
	return false;
}

bool recorded_process_save(struct recorded_process *recorded, const struct save_wish *asked)
{
	if (!recorded || !recorded->logs || !recorded->options->ring ||
	        comes_too_soon(recorded, asked->reason.kind))
		return false;
	struct wish *wish = calloc(1, sizeof *wish);
	if (!wish)
		abort();
	wish->wish = *asked;
	snprintf(wish->kind, sizeof wish->kind, "%s", asked->reason.kind);
	snprintf(wish->text, sizeof wish->text, "%s", asked->reason.text);
	wish->wish.reason.kind = wish->kind;
	wish->wish.reason.text = wish->text;
	if (asked->reason.path) {
		snprintf(wish->path, sizeof wish->path, "%s", asked->reason.path);
		wish->wish.reason.path = wish->path;
	}
	vector_push(&recorded->wishes, wish);
	return true;
}

bool recorded_process_is_saving(const struct recorded_process *recorded)
{
	return recorded && recorded->wishes.count;
}

/* What the thread has logged and nobody has taken; it may be adding to that. */
static struct save_thread peek(
        struct recorded_process *recorded, const struct memory *memory, unsigned number)
{
	struct log *log = log_of(recorded, number);
	struct keyframe_process threads = threads_of(recorded, memory);
	struct save_thread thread = {0};

	recorder_facts(recorded->recorder, log, &thread.facts);
	if (!memory || !keyframes_waits(&threads, number, &thread.position))
		thread.position = __atomic_load_n(&log->position, __ATOMIC_ACQUIRE);
	uint64_t used = __atomic_load_n(&log->used, __ATOMIC_ACQUIRE);
	if (used < log_room(number))
		buffer_bytes(&thread.events, (const uint8_t *)log + LOG_DATA, used);
	if (thread.events.failed)
		abort();
	return thread;
}

/* Who asked for a file. */
struct asker {
	int client;
	uint64_t told; /* when he was last told how far it is */
};

static void tell_progress(void *argument, uint64_t written, uint64_t total)
{
	struct asker *asker = argument;
	uint64_t now = nanoseconds();

	if (now - asker->told < PROGRESS_APART)
		return;
	asker->told = now;
	control_tell_progress(asker->client, written, total);
}

static void tell_client(void *argument, const struct save_outcome *outcome)
{
	struct asker *asker = argument;
	char why[256];

	if (outcome->error.status && !outcome->partial)
		control_answer(asker->client, "error\n%s: %s\n", outcome->path,
		        recording_error_text(&outcome->error, why, sizeof why));
	else
		control_answer(asker->client, "ok\n%s\n%lu %u %lu\n", outcome->path, outcome->instructions,
		        outcome->threads, outcome->size);
	free(asker);
}

static void answer_thread(struct mailbox *mailbox)
{
	mailbox->status = STATUS_OK;
	__atomic_store_n(&mailbox->state, MAILBOX_REPLY, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&mailbox->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &mailbox->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void fulfil(struct recorded_process *recorded, const struct memory *memory, struct wish *wish)
{
	struct save_request *request = calloc(1, sizeof *request);

	if (!request)
		abort();
	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++) {
		if (log_of(recorded, i)->tid)
			vector_push(&request->threads, peek(recorded, memory, i));
	}
	request->done = wish->wish.done;
	request->argument = wish->wish.argument;
	if (wish->wish.client >= 0) {
		struct asker *asker = malloc(sizeof *asker);
		if (!asker)
			abort();
		*asker = (struct asker){.client = wish->wish.client, .told = nanoseconds()};
		request->done = tell_client;
		request->progress = tell_progress;
		request->argument = asker;
	}
	recorder_save(recorded->recorder, &wish->wish.reason, request);
	if (wish->wish.mailbox)
		answer_thread(wish->wish.mailbox);
	free(wish);
}

/* The memory is NULL when the process has ended. */
static void fulfil_all(struct recorded_process *recorded, const struct memory *memory)
{
	for (uint32_t i = 0; i < recorded->wishes.count; i++)
		fulfil(recorded, memory, recorded->wishes.items[i]);
	recorded->wishes.count = 0;
	recorded->wished = 0;
}

/* Has every thread made a keyframe since, or does it wait somewhere? */
static bool are_ready(struct recorded_process *recorded, const struct memory *memory)
{
	struct keyframe_process threads = threads_of(recorded, memory);
	uint64_t position;

	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++) {
		struct log *log = log_of(recorded, i);
		if (log->tid && !recorder_is_fresh(recorded->recorder, log) &&
		        !keyframes_waits(&threads, i, &position))
			return false;
	}
	return true;
}

void recorded_process_look_after_saves(
        struct recorded_process *recorded, const struct memory *memory, uint64_t now)
{
	if (!recorded_process_is_saving(recorded))
		return;
	if (recorded->wishes.items[0]->wish.still) {
		fulfil_all(recorded, memory);
		return;
	}
	if (!recorded->wished) {
		recorded->wished = now;
		want_keyframes(recorded, now);
	}
	if (recorded->keyframes.next > now + SAVE_LOOK)
		recorded->keyframes.next = now + SAVE_LOOK;
	if (are_ready(recorded, memory) || now - recorded->wished > SAVE_PATIENCE)
		fulfil_all(recorded, memory);
}

/* ---- what it costs ---- */

static uint64_t executed_by(struct recorded_process *recorded, const struct memory *memory)
{
	struct keyframe_process threads = threads_of(recorded, memory);
	uint64_t sum = recorded->ended_executed, position;
	uint32_t parked;

	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++) {
		if (log_of(recorded, i)->tid && keyframes_place(&threads, i, &position, &parked))
			sum += position;
	}
	return sum;
}

static void set_interval(struct recorded_process *recorded, unsigned doublings)
{
	uint64_t interval = recorded->options->interval;

	recorder_lengthen(recorded->recorder, doublings);
	if (!interval)
		return;
	recorded->interval = interval << doublings;
	__atomic_store_n(&space_info(recorded->space, 0)->interval, recorded->interval, __ATOMIC_RELAXED);
}

static enum budget_advice look_at_pace(
        struct recorded_process *recorded, const struct memory *memory, uint64_t waited, uint64_t now)
{
	struct budget *budget = &recorded->budget;
	struct usage usage = {.time = now, .waited = waited};

	if (!budget_due(budget, now) || !usage_read(recorded->pid, &usage))
		return BUDGET_FINE;
	usage.executed = executed_by(recorded, memory);
	enum budget_advice advice = budget_pace(budget, &usage);
	if (advice == BUDGET_INTERVAL)
		set_interval(recorded, budget->lengthened);
	if (advice == BUDGET_LEAVE)
		fprintf(stderr,
		        "bugnet: process %d is about %.1f times slower for being recorded, more than "
		        "--max-slowdown allows, also with keyframes far apart: letting it go\n",
		        recorded->pid, budget->slowdown);
	return advice;
}

/* Resident, by the supervisor's count: the ring, its own structures and the code cache. */
static uint64_t own_memory(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * CODE_PAGE;
}

struct pages_sum {
	const struct memory *memory;
	uint64_t bytes;
};

static bool add_pages(void *context, struct range range)
{
	struct pages_sum *sum = context;
	uint64_t bytes;

	if (!pages_bytes(sum->memory, range.start, range.end, &bytes))
		return false;
	sum->bytes += bytes;
	return true;
}

static bool shadow_memory(struct recorded_process *recorded, const struct memory *memory, uint64_t *bytes)
{
	static struct process_memory ours;
	struct pages_sum sum = {.memory = memory};
	bool told = shadows_read(memory, recorded->space, &ours) &&
	            shadows_each(memory, recorded->space, &ours, add_pages, &sum);

	*bytes = sum.bytes;
	return told;
}

static void look_at_memory(struct recorded_process *recorded, const struct memory *memory, uint64_t now)
{
	struct budget *budget = &recorded->budget;
	uint64_t shadows, own = own_memory();
	char limit[AMOUNT_TEXT_SIZE], use[AMOUNT_TEXT_SIZE], part[AMOUNT_TEXT_SIZE];

	if (!shadow_memory(recorded, memory, &shadows)) {
		if (!budget->told)
			fprintf(stderr,
			        "bugnet: the kernel does not tell how much memory the shadow of process %d "
			        "has: "
			        "--memory bounds the rest\n",
			        recorded->pid);
		budget->told = true;
		return;
	}
	enum budget_memory_advice advice = budget_hold(budget, now, own + shadows, shadows);
	if (advice != BUDGET_KEPT)
		want_keyframes(recorded, now);
	if (advice == BUDGET_EXCEEDED)
		fprintf(stderr,
		        "bugnet: recording process %d takes %s, %s of it for what the program uses at a "
		        "time: "
		        "--memory %s is too little for it\n",
		        recorded->pid, size_text(own + shadows, use), size_text(shadows, part),
		        size_text(budget->most_memory, limit));
}

/* How far back the ring reaches: as long as nothing was dropped, to the start. */
static uint64_t window_of(
        const struct recorded_process *recorded, const struct ring_state *state, uint64_t now)
{
	if (!state->dropped)
		return recorder_age(recorded->recorder);
	return state->began && now > state->began ? now - state->began : 0;
}

/* "bugnet: 12.0 s: 812 million/s, ~3.1 times slower; 9.80 s in 5.31 MB of 64.0 MB" */
static void show_progress(struct recorded_process *recorded, const struct memory *memory, uint64_t now)
{
	struct usage before = recorded->shown;
	struct ring_state state;
	uint64_t age = recorder_age(recorded->recorder);
	char time[AMOUNT_TEXT_SIZE], rate[AMOUNT_TEXT_SIZE], window[AMOUNT_TEXT_SIZE], use[AMOUNT_TEXT_SIZE],
	        size[AMOUNT_TEXT_SIZE], slower[48] = "", kept[4 * AMOUNT_TEXT_SIZE];

	recorded->shown = (struct usage){.time = now, .executed = executed_by(recorded, memory)};
	if (!before.time || recorded->shown.executed < before.executed)
		return;
	double seconds = (double)(now - before.time) / 1e9;
	double executed = (double)(recorded->shown.executed - before.executed);
	if (recorder_ring_state(recorded->recorder, &state))
		snprintf(kept, sizeof kept, "%s in %s of %s",
		        duration_text(window_of(recorded, &state, now), window), size_text(state.used, use),
		        size_text(recorded->options->ring, size));
	else
		snprintf(kept, sizeof kept, "%s in the file",
		        size_text(recorder_written(recorded->recorder), size));
	if (recorded->budget.slowdown > 0)
		snprintf(slower, sizeof slower, ", ~%.1f times slower", recorded->budget.slowdown);
	progress_show("bugnet: %s: %s/s%s; %s", duration_text(age, time),
	        amount_text((uint64_t)(executed / seconds), rate), slower, kept);
}

enum budget_advice recorded_process_look_at_costs(
        struct recorded_process *recorded, const struct memory *memory, uint64_t waited, uint64_t now)
{
	if (!recorded || !recorded->logs || now < recorded->next_costs)
		return BUDGET_FINE;
	recorded->next_costs = now + COSTS_APART;
	if (recorded->options->progress && now - recorded->shown.time >= SHOWN_APART)
		show_progress(recorded, memory, now);
	if (recorded->budget.most_memory)
		look_at_memory(recorded, memory, now);
	return look_at_pace(recorded, memory, waited, now);
}

/* ---- telling ---- */

static unsigned count_threads(const struct recorded_process *recorded)
{
	unsigned count = 0;

	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++)
		count += log_of(recorded, i)->tid != 0;
	return count;
}

void recorded_process_tell(
        struct recorded_process *recorded, const struct memory *memory, char *text, size_t size)
{
	const struct recorder_options *options = recorded ? recorded->options : NULL;
	struct ring_state state = {0};

	*text = 0;
	if (!recorded || !recorded->logs)
		return;
	bool has_ring = recorder_ring_state(recorded->recorder, &state);
	/* Up to now: what the threads did since their last keyframes is not in the ring yet, and will be in a
	 * file. */
	uint64_t executed = executed_by(recorded, memory);
	uint64_t kept = has_ring && executed > state.dropped_executed ? executed - state.dropped_executed : 0;
	snprintf(text, size, "%d %u %lu %lu %lu %lu %lu %lu %lu %.2f %lu %lu %s\n", recorded->pid,
	        count_threads(recorded), recorder_age(recorded->recorder), has_ring ? options->ring : 0,
	        state.used, kept, has_ring ? window_of(recorded, &state, nanoseconds()) : 0,
	        state.dropped_executed, state.pieces, recorded->budget.slowdown, recorded->budget.memory,
	        recorded->interval == UINT64_MAX ? 0 : recorded->interval, options->program);
}

/* ---- the end ---- */

/* A thread in translated code counts what it has executed; in the stub, what it is about to, too. */
static uint64_t came_to(struct recorded_process *recorded, const struct memory *memory, unsigned number)
{
	struct keyframe_process threads = threads_of(recorded, memory);
	uint64_t position;
	uint32_t parked;

	if (!memory || !keyframes_place(&threads, number, &position, &parked))
		return 0;
	return position - (position && !parked);
}

void recorded_process_note_unrecorded(struct recorded_process *recorded, uint32_t threads)
{
	recorder_note_unrecorded(recorded->recorder, threads);
}

void recorded_process_finish(struct recorded_process *recorded, const struct memory *memory, bool executed)
{
	if (!recorded || !recorded->logs)
		return;
	fulfil_all(recorded, NULL);
	for (unsigned i = 1; i < logs_end(recorded->logs, recorded->numbers); i++) {
		struct log *log = log_of(recorded, i);
		if (log->tid)
			take_log(recorded, i, LOG_ENDED, came_to(recorded, memory, i));
	}
	if (executed)
		recorder_note_exec(recorded->recorder);
	if (recorded->shown.time)
		progress_clear();
	recorder_finish(recorded->recorder);
	munmap(recorded->logs, log_offset(recorded->numbers));
	recorded->logs = NULL;
}

void recorded_process_destroy(struct recorded_process *recorded)
{
	if (!recorded)
		return;
	recorded_process_finish(recorded, NULL, false);
	if (recorded->space && recorded->space->on_code_context == recorded)
		recorded->space->on_code = NULL, recorded->space->on_unmapped = NULL;
	recorder_destroy(recorded->recorder);
	forget_child(recorded->child);
	vector_free(&recorded->wishes);
	free(recorded);
}
