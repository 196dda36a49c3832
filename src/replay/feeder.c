#include "replay/feeder.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define USER_ADDRESS_END 0x7ffffffff000ul
#define RECORDS_AT_ONCE  8192 /* bytes: no event makes more */

_Static_assert(RECORDS_AT_ONCE > 3 * (sizeof(struct feed_state) + FEED_XSAVE_BYTES), "room for an event");

__attribute__((format(printf, 2, 3))) static void fail(struct feeder *feeder, const char *format, ...)
{
	va_list arguments;

	if (feeder->failed)
		return;
	feeder->failed = true;
	feeder->failure = feeder->stretch ? feeder->stretch - 1 : 0;
	va_start(arguments, format);
	vsnprintf(feeder->error, sizeof feeder->error, format, arguments);
	va_end(arguments);
}

/* ---- records ---- */

static void *put(struct feeder *feeder, enum feed_kind kind, uint64_t position, unsigned detail, size_t size)
{
	struct feed_record *record = (struct feed_record *)feeder->at;

	size = (size + 7) & -8ul;
	*record = (struct feed_record){.position = position,
	        .kind = (uint16_t)kind,
	        .detail = (uint16_t)detail,
	        .size = (uint32_t)size};
	feeder->at += size;
	feeder->position = position + (kind >= FEED_INSTEAD);
	return record;
}

static void put_number(struct feeder *feeder, enum feed_kind kind, uint64_t position, uint64_t number)
{
	struct feed_number *record = put(feeder, kind, position, 0, sizeof *record);

	record->number = number;
}

static struct registers flat_registers(const struct event_registers *from)
{
	struct registers to;

	_Static_assert(sizeof to == sizeof *from, "the same registers in the same order");
	memcpy(&to, from, sizeof to);
	return to;
}

static struct feed_state *put_state(struct feeder *feeder, enum feed_kind kind, uint64_t position,
        unsigned detail, const struct event_registers *registers, const uint8_t *vectors)
{
	struct feed_state *record = put(feeder, kind, position, detail | (vectors ? FEED_HAS_XSAVE : 0),
	        sizeof *record + (vectors ? FEED_XSAVE_BYTES : 0));

	record->registers = flat_registers(registers);
	record->fs_base = record->gs_base = 0;
	if (vectors)
		memcpy(record->xsave, vectors, FEED_XSAVE_BYTES);
	return record;
}

static struct notice *put_report(
        struct feeder *feeder, enum notice_kind kind, uint64_t position, uint32_t size)
{
	struct notice *notice = calloc(1, sizeof *notice + size);

	if (!notice)
		abort();
	/* Output is told of behind the system call that has its position. */
	if (position < feeder->position)
		position = feeder->position;
	notice->kind = kind;
	notice->thread = feeder->section ? stretch_thread(feeder->section) : 0;
	notice->stretch = feeder->stretch ? feeder->stretch - 1 : 0;
	notice->start = feeder->start;
	notice->state.position = position;
	notice->size = size;
	put_number(feeder, FEED_REPORT, position, vector_push(&feeder->notices, notice));
	return notice;
}

/* Somebody wants to see the event. */
static void put_event(struct feeder *feeder, const struct event *event, uint64_t position)
{
	struct notice *notice = put_report(feeder, NOTICE_EVENT, position, 0);

	notice->event = *event;
	if (event->kind == EVENT_SIGNAL)
		notice->event.signal.xsave = (struct event_xsave){0};
	else if (event->kind == EVENT_SIGRETURN)
		notice->event.sigreturn.xsave = (struct event_xsave){0};
}

static bool is_wanted_event(const struct feeder *feeder)
{
	return feeder->options.events && feeder->event.position >= feeder->options.from;
}

/* What a system call wrote is there when everything that the log has right behind it was applied. */
static void put_call(struct feeder *feeder)
{
	if (!feeder->called)
		return;
	feeder->called = false;
	put_event(feeder, &feeder->call, feeder->call.position + 1);
}

static bool is_behind_call(const struct feeder *feeder)
{
	enum event_kind kind = feeder->event.kind;

	return feeder->event.position > feeder->call.position + 1 ||
	       (kind != EVENT_PATCH && kind != EVENT_CODE && kind != EVENT_ORDER && kind != EVENT_MAP);
}

/* ---- stretches ---- */

static void next_event(struct feeder *feeder)
{
	feeder->status = decoder_next(&feeder->decoder, &feeder->event);
	if (feeder->status > DECODE_TRUNCATED)
		fail(feeder, "thread %u, byte %zu of stretch %u: %s", stretch_thread(feeder->section),
		        feeder->decoder.error_offset, stretch_number(feeder->section),
		        decode_status_text(feeder->status));
}

struct stretch_bytes {
	uint32_t users;
	uint8_t *bytes;
};

static void release(struct stretch_bytes **bytes)
{
	if (*bytes && --(*bytes)->users == 0) {
		free((*bytes)->bytes);
		free(*bytes);
	}
	*bytes = NULL;
}

static void close_stretch(struct feeder *feeder)
{
	release(&feeder->bytes);
	feeder->section = NULL;
}

static struct stretch_bytes *load_stretch(struct feeder *feeder, const struct section *section)
{
	struct stretch_bytes *loaded = calloc(1, sizeof *loaded);
	char text[128];

	if (!loaded)
		abort();
	loaded->users = 1;
	if (!stretch_read(feeder->reader, section, &loaded->bytes))
		return loaded;
	free(loaded);
	fail(feeder, "thread %u, stretch %u: %s", stretch_thread(section), stretch_number(section),
	        recording_error_text(&feeder->reader->error, text, sizeof text));
	return NULL;
}

/* Loads a stretch and decodes its keyframe. */
static bool open_stretch(struct feeder *feeder, size_t number)
{
	const struct section *section = feeder->timeline->stretches[number];

	close_stretch(feeder);
	feeder->stretch = number + 1;
	feeder->bytes = load_stretch(feeder, section);
	if (!feeder->bytes)
		return false;
	feeder->section = section;
	decoder_init(&feeder->decoder, feeder->bytes->bytes, section->raw_size);
	next_event(feeder);
	if (!feeder->failed && feeder->status != DECODE_EVENT)
		fail(feeder, "thread %u, stretch %u is empty", stretch_thread(section),
		        stretch_number(section));
	return !feeder->failed;
}

static void leave_thread(struct feeder *feeder)
{
	feeder->running = false;
	close_stretch(feeder);
}

static void next_thread(struct feeder *feeder)
{
	feeder->stretch = timeline_next_thread(feeder->timeline, feeder->stretch - 1);
	leave_thread(feeder);
}

static bool is_wanted(const struct feeder *feeder, const struct section *section)
{
	return feeder->options.thread == FEEDER_ALL_THREADS ||
	       feeder->options.thread == stretch_thread(section);
}

/* The stretch of this thread from which the wanted position can be reached. */
static size_t first_stretch(const struct feeder *feeder, size_t first)
{
	const struct timeline *timeline = feeder->timeline;
	size_t found = first;

	for (size_t i = first; i < timeline_next_thread(timeline, first); i++) {
		if (timeline->stretches[i]->first <= feeder->options.from)
			found = i;
	}
	return found;
}

/* Is all there that the keyframe of the open stretch leans on? */
static bool has_what_it_leans_on(const struct feeder *feeder)
{
	const struct timeline *timeline = feeder->timeline;
	size_t number = feeder->stretch - 1, count = feeder->event.keyframe.leans_on;

	for (size_t i = 0; i < count; i++) {
		if (i >= number || !timeline_continues(timeline, number - i))
			return false;
	}
	return true;
}

/* Goes on with the first stretch that needs nothing which is lost, if the thread has one from `i` on. */
static void begin_behind(struct feeder *feeder, size_t i)
{
	size_t next = timeline_next_thread(feeder->timeline, i);

	for (; i < next && i < feeder->until; i++) {
		if (!open_stretch(feeder, i) || has_what_it_leans_on(feeder))
			return;
		feeder->skipped++;
	}
	close_stretch(feeder);
}

/* A new thread: from the last keyframe before the wanted position that can be begun from. */
static void begin_thread(struct feeder *feeder, size_t first)
{
	for (size_t i = first_stretch(feeder, first); i > first; i--) {
		if (!open_stretch(feeder, i) || has_what_it_leans_on(feeder))
			return;
	}
	begin_behind(feeder, first);
}

static void begin(struct feeder *feeder)
{
	const struct timeline *timeline = feeder->timeline;
	size_t first = feeder->stretch;

	if (!is_wanted(feeder, timeline->stretches[first]))
		feeder->stretch = timeline_next_thread(timeline, first);
	else if (timeline_continues(timeline, first))
		begin_behind(feeder, first);
	else
		begin_thread(feeder, first);
}

/* Takes more from the schedule. */
static void take(struct feeder *feeder)
{
	if (schedule_take(feeder->schedule, &feeder->stretch, &feeder->until))
		return;
	put_report(feeder, NOTICE_FINISHED, feeder->position, 0);
	feeder->finished = true;
}

/* ---- code ---- */

/* So many pieces of the code history are in force; the number tells the stretch, too. */
static void put_code(struct feeder *feeder, uint64_t position, uint32_t pieces)
{
	feeder->pieces = pieces;
	put_number(feeder, FEED_CODE, position, (uint64_t)(feeder->stretch - 1) << 32 | pieces);
}

static void feed_code(struct feeder *feeder)
{
	uint32_t pieces = code_source_kept(feeder->source, feeder->event.code.pieces),
	         before = feeder->pieces;

	if (pieces < before || code_source_changes(feeder->source, before, pieces))
		put_code(feeder, feeder->event.position, pieces);
}

/* ---- events ---- */

static bool vectors_of(struct feeder *feeder, const struct event_xsave *xsave, uint8_t *to)
{
	if (!xsave->size)
		return false;
	if (state_vectors(to, xsave->bytes, xsave->size))
		return true;
	fail(feeder, "thread %u, position %lu: vector state that is none", stretch_thread(feeder->section),
	        feeder->event.position);
	return false;
}

/* Has the thread, which came from the stretch before, compared with the keyframe. */
static void compare_keyframe(struct feeder *feeder, bool has_vectors, const uint8_t *vectors)
{
	const struct event_keyframe *keyframe = &feeder->event.keyframe;
	uint64_t position = feeder->event.position;
	struct notice *notice = put_report(feeder, NOTICE_KEYFRAME, position, 0);

	notice->stretch--;
	notice->state = (struct state){.position = position,
	        .registers = keyframe->registers,
	        .has_bases = true,
	        .fs_base = keyframe->fs_base,
	        .gs_base = keyframe->gs_base,
	        .has_vectors = has_vectors};
	memcpy(notice->state.vectors, vectors, sizeof notice->state.vectors);
}

static void feed_keyframe(struct feeder *feeder)
{
	const struct event_keyframe *keyframe = &feeder->event.keyframe;
	uint64_t position = feeder->event.position;
	uint8_t vectors[FEED_XSAVE_BYTES] = {0};
	bool has_vectors = vectors_of(feeder, &keyframe->xsave, vectors);
	bool fresh = !feeder->running;

	if (feeder->running)
		compare_keyframe(feeder, has_vectors, vectors);
	/* From here on it is another session's. */
	if (feeder->running && feeder->stretch > feeder->until) {
		leave_thread(feeder);
		return;
	}
	feeder->start = position;
	feeder->keyframes++;
	struct feed_state *state = put_state(feeder, FEED_STATE, position, FEED_HAS_BASES | FEED_HAS_EMPTY,
	        &keyframe->registers, has_vectors ? vectors : NULL);
	state->fs_base = keyframe->fs_base;
	state->gs_base = keyframe->gs_base;
	if (fresh)
		put_code(feeder, position, 0);
	feeder->running = true;
	if (!has_what_it_leans_on(feeder)) {
		fail(feeder, "thread %u, stretch %u leans on %u before it, which are not there",
		        stretch_thread(feeder->section), stretch_number(feeder->section), keyframe->leans_on);
		return;
	}
	feeder->before_end = feeder->stretch - 1;
	feeder->before_stretch = feeder->before_end - keyframe->leans_on;
}

static bool is_ours(const struct feeder *feeder, uint64_t address)
{
	for (unsigned i = 0; i < feeder->segment_count; i++) {
		if (address + EVENT_LINE_BYTES > feeder->segments[i].base &&
		        address < feeder->segments[i].base + feeder->segments[i].size)
			return true;
	}
	return address >= USER_ADDRESS_END;
}

static void put_patch(struct feeder *feeder, uint64_t position, const struct event_patch *patch)
{
	unsigned count = 0;

	if (is_ours(feeder, patch->address)) {
		fail(feeder, "thread %u, position %lu: a patch at %#lx, where the program had no memory",
		        stretch_thread(feeder->section), position, patch->address);
		return;
	}
	struct feed_patch *record = put(feeder, FEED_PATCH, position, patch->mask,
	        sizeof *record + 8 * (size_t)__builtin_popcount(patch->mask));
	record->address = patch->address;
	for (unsigned left = patch->mask; left; left &= left - 1)
		record->words[count++] = patch->words[__builtin_ctz(left)];
}

static void feed_patch(struct feeder *feeder)
{
	put_patch(feeder, feeder->event.position, &feeder->event.patch);
}

static void end_before(struct feeder *feeder)
{
	release(&feeder->before_bytes);
}

/* Of a stretch before a keyframe that leans on it only the patches count, all of them at the keyframe. */
static void feed_before(struct feeder *feeder)
{
	const struct section *section = feeder->timeline->stretches[feeder->before_stretch];
	enum decode_status status;
	struct event event;

	if (!feeder->before_bytes) {
		feeder->before_bytes = load_stretch(feeder, section);
		if (feeder->before_bytes)
			decoder_init(&feeder->before, feeder->before_bytes->bytes, section->raw_size);
		return;
	}
	status = decoder_next(&feeder->before, &event);
	if (status == DECODE_EVENT) {
		if (event.kind == EVENT_PATCH)
			put_patch(feeder, feeder->start, &event.patch);
		return;
	}
	if (status != DECODE_END)
		fail(feeder, "thread %u, byte %zu of stretch %u: %s", stretch_thread(section),
		        feeder->before.error_offset, stretch_number(section), decode_status_text(status));
	end_before(feeder);
	feeder->before_stretch++;
}

static void feed_signal(struct feeder *feeder)
{
	const struct event_signal *signal = &feeder->event.signal;
	uint8_t vectors[FEED_XSAVE_BYTES];

	if (!vectors_of(feeder, &signal->xsave, vectors))
		state_initial_vectors(vectors);
	if (is_wanted_event(feeder))
		put_event(feeder, &feeder->event, feeder->event.position);
	if (signal->iterations)
		put_number(feeder, FEED_REPEAT, feeder->event.position, signal->iterations);
	put_state(feeder, FEED_SIGNAL, feeder->event.position, 0, &signal->registers, vectors);
}

static void feed_sigreturn(struct feeder *feeder)
{
	const struct event_sigreturn *sigreturn = &feeder->event.sigreturn;
	uint8_t vectors[FEED_XSAVE_BYTES];
	bool has_vectors = vectors_of(feeder, &sigreturn->xsave, vectors);

	if (sigreturn->call && is_wanted_event(feeder))
		put_event(feeder, &feeder->event, feeder->event.position);

	struct feed_state *state = put_state(feeder, FEED_INSTEAD, feeder->event.position,
	        sigreturn->has_bases ? FEED_HAS_BASES : 0, &sigreturn->registers,
	        has_vectors ? vectors : NULL);

	state->fs_base = sigreturn->fs_base;
	state->gs_base = sigreturn->gs_base;
}

static bool writes(uint64_t number)
{
	return number == SYS_write || number == SYS_writev || number == SYS_pwrite64;
}

static bool output_wanted(const struct feeder *feeder)
{
	return feeder->options.output && feeder->event.position >= feeder->options.from;
}

static void feed_syscall(struct feeder *feeder)
{
	const struct event_syscall *call = &feeder->event.syscall;
	bool tell = output_wanted(feeder) && writes(event_call_number(call)) && call->result > 0 &&
	            feeder->output_position != feeder->event.position + 1;
	unsigned detail =
	        (tell || is_wanted_event(feeder) ? FEED_HAS_CALL : 0) | (call->forgets ? FEED_HAS_FORGET : 0);
	struct feed_syscall *record =
	        put(feeder, FEED_SYSCALL, feeder->event.position, detail, sizeof *record);

	record->registers = flat_registers(&call->registers);
	record->result = (uint64_t)call->result;
	record->changes = call->changes;
	if (is_wanted_event(feeder)) {
		feeder->called = true;
		feeder->call = feeder->event;
	}
}

static void feed_result(struct feeder *feeder)
{
	struct feed_result *record = put(feeder, FEED_RESULT, feeder->event.position, 0, sizeof *record);

	record->changes = feeder->event.result.changes;
}

static void feed_end(struct feeder *feeder)
{
	struct notice *notice = put_report(feeder, NOTICE_END, feeder->event.position, 0);

	notice->event = feeder->event;
	notice->state.registers = feeder->event.end.registers;
	leave_thread(feeder);
}

static void feed_output(struct feeder *feeder)
{
	const struct event_output *output = &feeder->event.output;

	feeder->output_position = feeder->event.position + 1;
	if (!output_wanted(feeder))
		return;
	struct notice *notice = put_report(feeder, NOTICE_OUTPUT, feeder->event.position, output->size);
	notice->fd = output->fd;
	memcpy(notice->bytes, output->bytes, output->size);
}

/* ---- holding ---- */

static void put_hold(struct feeder *feeder, uint64_t position)
{
	put_report(feeder, NOTICE_HOLD, position, 0);
	feeder->hold.held = true;
}

/* Is the thread to be held before the event? Patches are what its next instruction loads: they come first. */
static bool holds_before_event(const struct feeder *feeder)
{
	const struct feeder_hold *hold = &feeder->hold;
	const struct event *event = &feeder->event;

	if (!hold->wanted || !feeder->running)
		return false;
	if (event->kind == EVENT_END || event->position != hold->position)
		return event->kind == EVENT_END || event->position > hold->position;
	switch (event->kind) {
	case EVENT_SYSCALL:
	case EVENT_RESULT:
	case EVENT_SIGRETURN:
		return true;
	/* A keyframe empties memory: what is known without it is of more use. */
	case EVENT_SIGNAL:
	case EVENT_KEYFRAME:
		return hold->passed >= hold->signals;
	default:
		return false;
	}
}

static uint64_t held_position(const struct feeder *feeder)
{
	const struct event *event = &feeder->event;

	return event->kind == EVENT_END && event->position < feeder->hold.position ? event->position
	                                                                           : feeder->hold.position;
}

/* A log without an end tells of no event behind its last one, but may tell how far the thread came. */
static uint64_t reach_of(const struct feeder *feeder)
{
	bool further = feeder->status == DECODE_END && feeder->section->last > feeder->position;

	return further ? feeder->section->last : feeder->position;
}

/* The log goes no further; what came last is applied, and then the thread is let alone. */
static void feed_cut(struct feeder *feeder)
{
	uint64_t reach = reach_of(feeder);

	if (feeder->hold.wanted) {
		put_hold(feeder, reach < feeder->hold.position ? reach : feeder->hold.position);
		return;
	}
	put_call(feeder);
	if (feeder->running && reach >= feeder->options.to) {
		put_report(feeder, NOTICE_STOP, feeder->options.to, 0);
		next_thread(feeder);
		return;
	}
	put_report(feeder, NOTICE_CUT, reach, 0);
	leave_thread(feeder);
}

static void feed_event(struct feeder *feeder)
{
	static void (*const functions[])(struct feeder *) = {
	        [EVENT_KEYFRAME] = feed_keyframe,
	        [EVENT_RESULT] = feed_result,
	        [EVENT_SYSCALL] = feed_syscall,
	        [EVENT_SIGNAL] = feed_signal,
	        [EVENT_SIGRETURN] = feed_sigreturn,
	        [EVENT_CODE] = feed_code,
	        [EVENT_END] = feed_end,
	        [EVENT_OUTPUT] = feed_output,
	        [EVENT_PATCH] = feed_patch,
	};
	enum event_kind kind = feeder->event.kind;
	uint64_t position = feeder->event.position;

	if (holds_before_event(feeder)) {
		put_hold(feeder, held_position(feeder));
		return;
	}
	feeder->hold.passed += kind == EVENT_SIGNAL && position == feeder->hold.position;
	if (feeder->called && is_behind_call(feeder))
		put_call(feeder);
	if (feeder->running && position >= feeder->options.to) {
		put_call(feeder);
		put_report(feeder, NOTICE_STOP, feeder->options.to, 0);
		next_thread(feeder);
		return;
	}
	if (feeder->running && position < feeder->position &&
	        !(kind == EVENT_ORDER || kind == EVENT_OUTPUT || kind == EVENT_MAP)) {
		fail(feeder, "thread %u: an event at position %lu comes after one at %lu",
		        stretch_thread(feeder->section), position, feeder->position);
		return;
	}
	if (functions[kind])
		functions[kind](feeder);
	if (feeder->section && !feeder->failed)
		next_event(feeder);
}

/* Writes the records of one event. */
static void feed_next(struct feeder *feeder)
{
	const struct timeline *timeline = feeder->timeline;

	if (feeder->section && feeder->before_stretch < feeder->before_end) {
		feed_before(feeder);
	} else if (feeder->section && feeder->status == DECODE_EVENT) {
		feed_event(feeder);
	} else if (feeder->section) {
		if (timeline_continues(timeline, feeder->stretch) && feeder->status == DECODE_END)
			open_stretch(feeder, feeder->stretch);
		else
			feed_cut(feeder);
	} else if (feeder->stretch < feeder->until) {
		begin(feeder);
	} else {
		take(feeder);
	}
}

void feeder_fill(struct feeder *feeder, uint8_t *buffer, size_t size)
{
	feeder->at = buffer;
	feeder->end = buffer + size - RECORDS_AT_ONCE - sizeof(struct feed_record);
	while (feeder->at < feeder->end && !feeder->finished && !feeder->failed && !feeder->hold.held)
		feed_next(feeder);
	*(struct feed_record *)feeder->at = (struct feed_record){.kind = FEED_MORE};
}

struct notice *feeder_notice(struct feeder *feeder, uint64_t number)
{
	struct notice *notice = number < feeder->notices.count ? feeder->notices.items[number] : NULL;

	if (notice)
		feeder->notices.items[number] = NULL;
	return notice;
}

void feeder_init(struct feeder *feeder, struct reader *reader, const struct timeline *timeline,
        struct schedule *schedule, const struct code_source *source, const struct segment_layout *segments,
        unsigned segment_count, const struct feeder_options *options)
{
	*feeder = (struct feeder){.reader = reader,
	        .timeline = timeline,
	        .schedule = schedule,
	        .source = source,
	        .segments = segments,
	        .segment_count = segment_count,
	        .options = *options};
}

void feeder_begin(struct feeder *feeder, size_t stretch)
{
	feeder->stretch = stretch;
	feeder->until = timeline_next_thread(feeder->timeline, stretch);
	feeder->options.from = feeder->timeline->stretches[stretch]->first;
}

void feeder_first(struct feeder *feeder, uint8_t *buffer)
{
	feeder->at = buffer;
	put_hold(feeder, 0);
	*(struct feed_record *)feeder->at = (struct feed_record){.kind = FEED_MORE};
}

void feeder_hold(struct feeder *feeder, uint64_t position, uint32_t signals)
{
	struct feeder_hold *hold = &feeder->hold;

	hold->passed = position == hold->position ? hold->passed : 0;
	hold->wanted = true;
	hold->held = false;
	hold->position = position;
	hold->signals = signals;
}

void feeder_copy(struct feeder *copy, const struct feeder *feeder)
{
	*copy = *feeder;
	decoder_copy(&copy->decoder, &feeder->decoder);
	decoder_copy(&copy->before, &feeder->before);
	if (copy->bytes)
		copy->bytes->users++;
	if (copy->before_bytes)
		copy->before_bytes->users++;
	memset(&copy->notices, 0, sizeof copy->notices);
}

void feeder_deinit(struct feeder *feeder)
{
	close_stretch(feeder);
	end_before(feeder);
	for (uint32_t i = 0; i < feeder->notices.count; i++)
		free(feeder->notices.items[i]);
	vector_free(&feeder->notices);
}
