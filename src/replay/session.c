#include "replay/session.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "recording/names.h"
#include "recording/progress.h"
#include "replay/expected.h"
#include "replay/history.h"
#include "replay/live.h"

/* Short: as many sessions as processors are at work, and who spins keeps somebody from running. */
#define SPIN_NANOSECONDS  4000
#define SLEEP_NANOSECONDS 100000000
#define OUTPUT_AT_ONCE    65536
#define OUTPUT_VECTORS    1024

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What comes of it is of the stretch that the thread is in. */
__attribute__((format(printf, 3, 4))) static bool finish(
        struct session *s, enum replay_outcome outcome, const char *format, ...)
{
	va_list arguments;

	if (s->done)
		return false;
	s->done = true;
	s->outcome = outcome;
	if (outcome != REPLAY_EXACT && s->started) {
		s->stretch = s->current;
		schedule_fail(s->schedule, s->current);
	}
	va_start(arguments, format);
	vsnprintf(s->message, sizeof s->message, format, arguments);
	va_end(arguments);
	return false;
}

/* ---- beginning ---- */

/* A recording that makes no sense is told of when all before that has been replayed. */
static bool fill(struct session *s)
{
	if (s->feeder.failed) {
		s->current = s->feeder.failure;
		return finish(s, REPLAY_FAILED, "%s", s->feeder.error);
	}
	feeder_fill(&s->feeder, s->target.feed->buffers[s->buffer], FEED_BUFFER_BYTES);
	s->filled = true;
	return true;
}

static bool open_code(struct session *s)
{
	s->source = code_source_create(&s->recorded->history, &s->recorded->files);
	if (!s->source)
		return finish(s, REPLAY_FAILED, "out of memory");
	s->code = (struct memory_source){
	        code_source_read, code_source_has_page, code_source_is_replaced, s->source};
	return true;
}

static void begin_trace(struct session *s)
{
	struct feed *feed = s->target.feed;
	const struct segment_layout *segment = &s->recorded->segments[0];

	feed->tracing = FEED_TRACES_ACCESSES | (s->explores ? FEED_TRACES_PATCHES : 0);
	s->target.space->trace_stack = s->explores;
	s->target.space->known_table = s->explores ? KNOWN_TABLE : 0;
	feed->knowing = s->explores;
	feed->trace_epoch = 1;
	memset(feed->trace_words, 1, sizeof feed->trace_words);
	memcpy(feed->trace_filter, s->options->tracer->filter, sizeof feed->trace_filter);
	s->target.space->trace_filter = segment->base + segment->logs + offsetof(struct feed, trace_filter);
}

static bool make_target(struct session *s)
{
	const struct recorded *recorded = s->recorded;
	char why[sizeof s->message];
	struct feeder_options options = {
	        .from = s->options->from,
	        .to = s->options->to,
	        .thread = s->options->thread,
	        .output = s->options->output && !s->options->observer,
	        .events = s->options->observer,
	};

	if (!target_create(
	            &s->target, &s->code, recorded->segments, recorded->segment_count, why, sizeof why))
		return finish(s, REPLAY_FAILED, "%s", why);
	s->started = true;
	s->target.space->count_loads = s->options->loads;
	feeder_init(&s->feeder, &s->reader, &recorded->timeline, s->schedule, s->source, recorded->segments,
	        recorded->segment_count, &options);
	s->target.feed->generation = 1;
	if (s->options->tracer && s->options->tracer->filter)
		begin_trace(s);
	s->target.feed->surveying = s->options->tracer && s->options->tracer->touched;
	s->target.feed->parking = s->explores;
	s->target.feed->replayer = getpid();
	s->target.space->exact_flags = s->explores;
	/* The stub begins with the first buffer, as if it had asked for it. */
	if (s->explores)
		feeder_first(&s->feeder, s->target.feed->buffers[0]);
	else
		fill(s);
	s->buffer = 1;
	s->filled = false;
	if (!target_run(&s->target, why, sizeof why))
		return finish(s, REPLAY_FAILED, "%s", why);
	return true;
}

/* ---- looking at the thread ---- */

void session_state(const struct session *s, struct state *state)
{
	const struct target *target = &s->target;

	*state = (struct state){.position = target->feed->position,
	        .has_bases = true,
	        .fs_base = target->feed->fs_base,
	        .gs_base = target->slots[SLOT_PROGRAM_GS]};
	memcpy(&state->registers, target->registers, sizeof state->registers);
	state->has_vectors = state_vectors(state->vectors, target->feed->shown, sizeof target->feed->shown);
}

/* "0x401000 (/usr/bin/true+0x1000)" */
static const char *place_text(struct session *s, uint64_t pc, char *text, size_t size)
{
	uint64_t offset;
	uint32_t number = code_source_file(s->source, pc, &offset);
	const struct codelog_file *file = codelog_find(&s->recorded->codelog, number);

	if (number != EVENT_FILE_NONE && file)
		snprintf(text, size, "%#lx (%s+%#lx)", pc, file->path, offset);
	else
		snprintf(text, size, "%#lx", pc);
	return text;
}

static void diverge(
        struct session *s, const struct state *recorded, const struct state *replayed, const char *what)
{
	char place[512];

	FILE *states = open_memstream(&s->states, &s->states_size);

	finish(s, REPLAY_DIVERGED, "thread %u diverges at position %lu, pc %s: %s", s->thread,
	        replayed->position, place_text(s, replayed->registers.pc, place, sizeof place), what);
	if (!states)
		return;
	if (recorded)
		state_print(states, "recorded", recorded);
	state_print(states, "replayed", replayed);
	history_print(states, &s->reader, &s->recorded->timeline, s->thread, replayed->position);
	fclose(states);
}

static void check_state(struct session *s, const struct state *recorded)
{
	struct state_live compared;
	struct state replayed;
	char what[256];

	memset(compared.registers, 0xff, sizeof compared.registers);
	compared.flags = STATE_FLAGS;
	session_state(s, &replayed);
	if (state_equal(recorded, &replayed, &compared, what, sizeof what))
		return;
	/* Neither side keeps what the program does not read any more. */
	struct live live = live_at(&s->code, replayed.registers.pc);
	memcpy(compared.registers, live.registers, sizeof compared.registers);
	compared.flags = STATE_FLAGS & ~live.dead_flags;
	if (!state_equal(recorded, &replayed, &compared, what, sizeof what))
		diverge(s, recorded, &replayed, what);
}

static void count_instructions(struct session *s, const struct notice *notice)
{
	uint64_t executed = notice->state.position - notice->start;

	s->instructions[notice->stretch] += executed;
	progress_add(s->options->progress, executed);
}

/* ---- memory ---- */

/* What is not there was never touched, and is zero. Returns how much was there. */
static size_t read_memory(const struct session *s, uint64_t address, void *to, size_t size)
{
	size_t there = 0;

	for (size_t done = 0; done < size;) {
		uint8_t *at = (uint8_t *)to + done;
		uint64_t page_left = CODE_PAGE - (address + done) % CODE_PAGE;
		size_t part = size - done < page_left ? size - done : page_left;
		ssize_t n = pread(s->target.memory.mem_fd, at, part, (off_t)(address + done));
		if (n == (ssize_t)part)
			there += part;
		else
			memset(at, 0, part);
		done += part;
	}
	return there;
}

struct replay_view {
	const struct session *session;
};

size_t replay_read(const struct replay_view *view, uint64_t address, void *to, size_t size)
{
	return read_memory(view->session, address, to, size);
}

static void observe(const struct session *s, uint32_t thread, const struct event *event, bool behind)
{
	const struct replay_observer *observer = s->options->observer;
	const struct replay_view view = {s};

	if (observer)
		observer->see(observer->context, &view, thread, event, behind);
}

/* ---- output ---- */

static void write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		bytes += n;
		size -= (size_t)n;
	}
}

static void write_memory(struct session *s, int fd, uint64_t address, uint64_t size)
{
	uint8_t bytes[OUTPUT_AT_ONCE];

	while (size) {
		size_t part = size < sizeof bytes ? size : sizeof bytes;
		read_memory(s, address, bytes, part);
		write_all(fd, bytes, part);
		address += part;
		size -= part;
	}
}

static void write_vectors(struct session *s, int fd, uint64_t address, uint64_t count, uint64_t size)
{
	struct iovec vectors[OUTPUT_VECTORS];

	if (count > OUTPUT_VECTORS)
		count = OUTPUT_VECTORS;
	ssize_t n = pread(s->target.memory.mem_fd, vectors, count * sizeof *vectors, (off_t)address);
	for (uint64_t i = 0; n > 0 && i < (uint64_t)n / sizeof *vectors && size; i++) {
		uint64_t part = vectors[i].iov_len < size ? vectors[i].iov_len : size;
		write_memory(s, fd, (uint64_t)(uintptr_t)vectors[i].iov_base, part);
		size -= part;
	}
}

/* A system call is about to have its effect. */
static void observe_call(const struct session *s, uint64_t result)
{
	struct event event = {.kind = EVENT_SYSCALL,
	        .position = s->target.feed->position - 1,
	        .syscall.result = (int64_t)result};

	memcpy(&event.syscall.registers, s->target.registers, sizeof event.syscall.registers);
	observe(s, s->thread, &event, false);
}

/* The same, of one that writes; `size` bytes were taken. */
static void output_call(struct session *s, uint64_t size)
{
	const uint64_t *gpr = s->target.registers->gpr;
	int fd = (int)gpr[RDI];

	if (fd != 1 && fd != 2)
		return;
	if (gpr[RAX] == SYS_writev)
		write_vectors(s, fd, gpr[RSI], gpr[RDX], size);
	else
		write_memory(s, fd, gpr[RSI], size < gpr[RDX] ? size : gpr[RDX]);
}

/* ---- observers ---- */

/* The stretch goes no further here: what it touched. */
static void tell_touched(struct session *s)
{
	const struct replay_tracer *tracer = s->options->tracer;
	struct feed *feed = s->target.feed;

	if (tracer && tracer->touched && !s->done)
		tracer->touched(tracer->context, s->current, feed->touched, feed->touched_count);
	feed->touched_count = 0;
}

/* ---- reports ---- */

static void show_stop(struct session *s, const struct notice *notice)
{
	char title[600], place[512];
	struct state state;

	session_state(s, &state);
	snprintf(title, sizeof title, "thread %u at %s", notice->thread,
	        place_text(s, state.registers.pc, place, sizeof place));
	state_print(stdout, title, &state);
}

static void handle_report(struct session *s, uint64_t number)
{
	struct notice *notice = feeder_notice(&s->feeder, number);

	if (!notice) {
		finish(s, REPLAY_FAILED, "the feed is out of step; this is a bug in bugnet");
		return;
	}
	if (notice->kind != NOTICE_FINISHED) {
		s->current = notice->stretch;
		tell_touched(s);
	}
	switch (notice->kind) {
	case NOTICE_KEYFRAME:
		check_state(s, &notice->state);
		count_instructions(s, notice);
		s->current++;
		break;
	case NOTICE_END:
		check_state(s, &notice->state);
		count_instructions(s, notice);
		if (notice->event.position >= s->options->from)
			observe(s, notice->thread, &notice->event, true);
		break;
	case NOTICE_EVENT:
		observe(s, notice->thread, &notice->event, true);
		break;
	case NOTICE_CUT:
		s->cut++;
		count_instructions(s, notice);
		break;
	case NOTICE_STOP:
		count_instructions(s, notice);
		if (s->options->show)
			show_stop(s, notice);
		break;
	case NOTICE_OUTPUT:
		if (notice->fd == 1 || notice->fd == 2)
			write_all(notice->fd, notice->bytes, notice->size);
		break;
	case NOTICE_HOLD:
		s->held = true;
		break;
	case NOTICE_FINISHED:
		finish(s, REPLAY_EXACT, "%s", "");
		break;
	}
	free(notice);
}

/* ---- requests ---- */

static void discard_code(struct session *s)
{
	if (space_reset(s->target.space))
		finish(s, REPLAY_FAILED, "no memory for translated code");
	s->target.feed->generation++;
}

/* The thread waits for us, so nobody is in the code. */
static bool make_room(struct session *s)
{
	if (!s->target.space->exhausted)
		return false;
	discard_code(s);
	return true;
}

static enum status translate_for(struct session *s, const uint64_t *arguments, uint64_t *reply)
{
	struct target *target = &s->target;
	enum status status;

	do
		status =
		        space_translate(target->space, &target->memory, arguments[0], arguments[1], 0, reply);
	while (make_room(s) && !s->done);
	return status;
}

static enum status step_for(struct session *s, const uint64_t *arguments, uint64_t *reply)
{
	struct target *target = &s->target;
	int error;

	do
		error = space_step(
		        target->space, &target->memory, arguments[0], (unsigned)arguments[1], reply);
	while (make_room(s) && !s->done);
	return error ? STATUS_FAULT : STATUS_OK;
}

/* Other code is in force, for this thread or for another one that comes now. */
void session_set_code(struct session *s, uint32_t pieces)
{
	uint32_t before = code_source_current(s->source);
	struct target *target = &s->target;

	code_source_set(s->source, pieces);
	pieces = code_source_current(s->source);
	for (uint32_t i = before < pieces ? before : pieces; i < (before < pieces ? pieces : before); i++) {
		const struct code_piece *piece = &s->recorded->history.pieces[i];
		if (code_source_piece_changes(s->source, i))
			space_changed(
			        target->space, &target->memory, piece->address, piece->address + piece->size);
	}
	target->feed->generation++;
	make_room(s);
}

static void change_code(struct session *s, uint64_t number)
{
	s->current = number >> 32;
	s->thread = stretch_thread(s->recorded->timeline.stretches[s->current]);
	session_set_code(s, (uint32_t)number);
}

static void divert_for(struct session *s, const uint64_t *arguments, uint64_t *reply)
{
	const struct session_diversion *diversion = s->diversion;
	struct feed *feed = s->target.feed;

	if (!diversion) {
		finish(s, REPLAY_FAILED, "request %lu of a diversion; this is a bug in bugnet", arguments[0]);
		return;
	}
	switch (arguments[0]) {
	case FEED_ASK_DIVERTED:
		s->held = true;
		reply[0] = s->park;
		break;
	case FEED_ASK_BREAK:
		reply[0] = diversion->stops(diversion->context, arguments[1]);
		break;
	case FEED_ASK_LINE:
		feed->line_known =
		        diversion->read_line(diversion->context, arguments[1], feed->line, &feed->line_blank);
		break;
	case FEED_ASK_SYSCALL:
		reply[0] = diversion->call(diversion->context, s->target.pid, s->target.registers, &reply[1]);
		break;
	}
}

static enum status feed_for(struct session *s, const uint64_t *arguments, uint64_t *reply)
{
	switch (arguments[0]) {
	case FEED_ASK_MORE:
		if (!s->filled && !fill(s))
			break;
		reply[0] =
		        (uint64_t)((uint8_t *)s->target.feed->buffers[s->buffer] - (uint8_t *)s->target.feed);
		s->buffer ^= 1;
		s->filled = false;
		break;
	case FEED_ASK_CODE:
		change_code(s, arguments[1]);
		break;
	case FEED_ASK_REPORT:
		if (s->diversion) {
			s->target.feed->diverted = DIVERTED_LONG;
			s->held = true;
		} else {
			handle_report(s, arguments[1]);
		}
		reply[0] = s->held ? s->park : 0;
		break;
	case FEED_ASK_CALL:
		if (s->options->observer)
			observe_call(s, arguments[1]);
		else
			output_call(s, arguments[1]);
		break;
	case FEED_ASK_TRACE:
		s->options->tracer->trace(s->options->tracer->context, s->current, s->target.feed->trace,
		        (uint32_t)arguments[1]);
		break;
	default:
		divert_for(s, arguments, reply);
	}
	return s->done ? STATUS_RELEASE : STATUS_OK;
}

/* Both are at a system call. */
static void describe_call(const struct state *recorded, const struct state *replayed, char *what, size_t size)
{
	uint64_t number = replayed->registers.gpr[RAX], expected = recorded->registers.gpr[RAX];
	char name[NAME_TEXT_SIZE], expected_name[NAME_TEXT_SIZE], difference[128] = "";
	struct state_live all = {.flags = EVENT_CALL_FLAGS};

	memset(all.registers, 0xff, sizeof all.registers);
	state_equal(recorded, replayed, &all, difference, sizeof difference);
	if (number == expected)
		snprintf(what, size, "at system call %s %s", syscall_name(number, name), difference);
	else
		snprintf(what, size, "it makes system call %s, recorded was %s", syscall_name(number, name),
		        syscall_name(expected, expected_name));
}

/* Nothing was recorded of what a diversion does. */
static void end_diversion(struct session *s, const uint64_t *arguments)
{
	struct state state;
	char place[512], name[NAME_TEXT_SIZE];

	session_state(s, &state);
	place_text(s, state.registers.pc, place, sizeof place);
	if (arguments[0] == DIVERGED_FAULT)
		finish(s, REPLAY_FAILED, "it raises %s at pc %s", signal_name((uint32_t)arguments[1], name),
		        place);
	else if (arguments[0] == DIVERGED_NO_CODE)
		finish(s, REPLAY_FAILED, "it comes to %#lx, where there is no code", arguments[1]);
	else
		finish(s, REPLAY_FAILED, "it comes to an instruction that needs the kernel, at pc %s", place);
}

static void handle_divergence(struct session *s, const uint64_t *arguments)
{
	struct state replayed, recorded;

	if (s->diversion) {
		end_diversion(s, arguments);
		return;
	}
	bool known = expected_state(s->target.feed, &s->feeder, &recorded);
	char what[256] = "";

	session_state(s, &replayed);
	switch ((enum feed_divergence)arguments[0]) {
	case DIVERGED_PASSED:
		snprintf(what, sizeof what, "it went past position %lu without what was recorded there",
		        arguments[1]);
		break;
	case DIVERGED_UNLOGGED:
		snprintf(what, sizeof what,
		        "it is at an instruction that needs the log, which has something else next, at "
		        "position %lu",
		        arguments[1]);
		break;
	case DIVERGED_SYSCALL:
	case DIVERGED_REGISTERS:
		describe_call(&recorded, &replayed, what, sizeof what);
		break;
	case DIVERGED_NO_CODE:
		snprintf(what, sizeof what, "there is no code at %#lx", arguments[1]);
		break;
	case DIVERGED_FAULT:
		snprintf(what, sizeof what, "it raises signal %lu, which was not recorded", arguments[1]);
		break;
	}
	diverge(s, known ? &recorded : NULL, &replayed, what);
}

static enum status serve_request(struct session *s, struct mailbox *mailbox)
{
	const uint64_t *arguments = mailbox->arguments;

	switch ((enum operation)mailbox->operation) {
	case OP_TRANSLATE:
		return translate_for(s, arguments, mailbox->reply);
	case OP_STEP:
		return step_for(s, arguments, mailbox->reply);
	case OP_FEED:
		return feed_for(s, arguments, mailbox->reply);
	case OP_DIVERGED:
		handle_divergence(s, arguments);
		break;
	default:
		finish(s, REPLAY_FAILED, "request %u in replay; this is a bug in bugnet", mailbox->operation);
	}
	return STATUS_RELEASE;
}

/* ---- serving ---- */

static bool serve(struct session *s)
{
	struct mailbox *mailbox = s->target.mailbox;

	if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) != MAILBOX_REQUEST)
		return false;
	mailbox->status = serve_request(s, mailbox);
	__atomic_store_n(&mailbox->state, MAILBOX_REPLY, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&mailbox->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &mailbox->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	return true;
}

/* Something that the thread will ask for sooner or later. */
static bool work_ahead(struct session *s)
{
	if (!s->filled && !s->feeder.finished && !s->feeder.failed && !s->feeder.hold.held)
		return fill(s);
	return !s->target.space->exhausted && space_translate_ahead(s->target.space, &s->target.memory);
}

static void sleep_until_rung(struct session *s)
{
	struct channel *channel = s->target.channel;
	struct timespec nap = {.tv_nsec = SLEEP_NANOSECONDS};
	uint32_t doorbell = __atomic_load_n(&channel->doorbell, __ATOMIC_SEQ_CST);
	int status;

	__atomic_store_n(&channel->sleeping, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->target.mailbox->state, __ATOMIC_SEQ_CST) != MAILBOX_REQUEST)
		syscall(SYS_futex, &channel->doorbell, FUTEX_WAIT, doorbell, &nap, NULL, 0);
	__atomic_store_n(&channel->sleeping, 0, __ATOMIC_SEQ_CST);
	if (target_has_ended(&s->target, &status))
		finish(s, REPLAY_FAILED, "the process it was replayed in ended: %s %d",
		        WIFSIGNALED(status) ? "signal" : "status",
		        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void session_serve(struct session *s)
{
	uint64_t last = nanoseconds();

	while (!s->done && !s->held) {
		if (serve(s)) {
			last = nanoseconds();
		} else if (work_ahead(s)) {
			continue;
		} else if (nanoseconds() - last > SPIN_NANOSECONDS) {
			if (schedule_is_moot(s->schedule, s->current))
				break;
			sleep_until_rung(s);
			last = nanoseconds();
		} else {
			__builtin_ia32_pause();
		}
	}
}

/* ---- the session ---- */

void session_init(struct session *session, const struct replay_options *options,
        const struct recorded *recorded, struct schedule *schedule, uint64_t *instructions)
{
	*session = (struct session){
	        .options = options,
	        .recorded = recorded,
	        .schedule = schedule,
	        .instructions = instructions,
	        .stretch = SIZE_MAX,
	        .reader = recorded->reader,
	        .target = {.memory = {.mem_fd = -1, .maps_fd = -1}},
	};
}

bool session_open(struct session *session)
{
	return open_code(session) && make_target(session);
}

void session_run(struct session *session)
{
	if (session_open(session))
		session_serve(session);
	if (session->started)
		session->counts = session->target.feed->counts;
	session->keyframes = session->feeder.keyframes;
	session->skipped = session->feeder.skipped;
	if (session->started) {
		session->loads = session->target.slots[SLOT_LOADS];
		session->approximates = session->target.space->approximates;
	}
	target_destroy(&session->target);
}

void session_deinit(struct session *session)
{
	feeder_deinit(&session->feeder);
	if (session->source)
		code_source_destroy(session->source);
	free(session->states);
}
