#include "debug/chronicle.h"

#include <stdlib.h>
#include <string.h>

#include "recording/decode.h"

/* A thread's clock, as of the place behind an operation that is no happening, or at a keyframe. */
struct clock {
	uint64_t position; /* of the operation, or where the clock is told */
	uint64_t stamp;
	bool operation;
};

struct chronicle_stretch {
	bool read;
	uint64_t began; /* monotonic, ns; 0: not known */
	VECTOR(struct happening) items;
	VECTOR(struct clock) clocks;
};

/* ---- reading ---- */

/* Stamps: each operation has the next number unless the log tells another, which it does where threads met,
 * and for calls and signals behind locked instructions that are not in the log. */
struct reading {
	struct chronicle_stretch *stretch;
	uint64_t clock;
	bool told; /* the stamp of the operation at this position, if it is not a locked instruction's */
	uint64_t position;
};

static uint64_t next_stamp(struct reading *r, uint64_t position)
{
	r->clock += !(r->told && r->position == position);
	r->told = false;
	return r->clock;
}

static void read_order(struct reading *r, uint64_t position, const struct event_order *order)
{
	struct happening *last =
	        r->stretch->items.count ? &r->stretch->items.items[r->stretch->items.count - 1] : NULL;

	r->clock = order->stamp;
	if (order->kind == ORDER_OPERATION) {
		r->told = true;
		r->position = position;
		vector_push(&r->stretch->items, (struct happening){.kind = HAPPENED_ORDER,
		                                        .position = position,
		                                        .time = order->stamp,
		                                        .time_after = order->stamp});
	} else if (order->kind == ORDER_CLOCK) {
		vector_push(&r->stretch->clocks, (struct clock){position, order->stamp, false});
	} else if (order->kind == ORDER_RETURN && last && last->kind == HAPPENED_CALL) {
		last->time_after = order->stamp;
	}
}

static void read_call(struct reading *r, const struct event *event)
{
	static const uint8_t argument_registers[6] = {7, 6, 2, 10, 8, 9};
	struct happening happening = {.kind = HAPPENED_CALL,
	        .position = event->position,
	        .number = (int64_t)event_call_number(&event->syscall),
	        .result = event->syscall.result,
	        .pc = event->syscall.registers.pc};

	for (unsigned i = 0; i < 6; i++)
		happening.arguments[i] = event->syscall.registers.gpr[argument_registers[i]];
	happening.time = next_stamp(r, event->position);
	happening.time_after = next_stamp(r, event->position);
	vector_push(&r->stretch->items, happening);
}

static void read_event(struct reading *r, const struct event *event)
{
	struct happening happening = {.position = event->position};

	switch (event->kind) {
	case EVENT_KEYFRAME:
		if (!r->stretch->began)
			r->stretch->began = event->keyframe.monotonic;
		return;
	case EVENT_ORDER:
		read_order(r, event->position, &event->order);
		return;
	case EVENT_SYSCALL:
		read_call(r, event);
		return;
	case EVENT_SIGNAL:
		happening.kind = HAPPENED_SIGNAL;
		happening.number = event->signal.number;
		happening.code = event->signal.code;
		happening.stack = event->signal.registers.gpr[4];
		memcpy(happening.details, event->signal.details, sizeof happening.details);
		break;
	case EVENT_END:
		happening.kind = HAPPENED_END;
		happening.number = event->end.status;
		happening.code = event->end.code;
		happening.end = event->end.kind;
		memcpy(happening.details, event->end.details, sizeof happening.details);
		break;
	default:
		return;
	}
	happening.time = happening.time_after = next_stamp(r, event->position);
	vector_push(&r->stretch->items, happening);
}

static bool is_last(const struct chronicle *chronicle, size_t number)
{
	return number + 1 == timeline_next_thread(&chronicle->recorded->timeline, number);
}

/* A log that does not tell of its end ends with the last thing it tells, or where the thread is known to have
 * come to. */
static void read_cut(struct chronicle *chronicle, size_t number, uint64_t position)
{
	struct chronicle_stretch *stretch = &chronicle->stretches[number];
	uint32_t count = stretch->items.count;

	if (!is_last(chronicle, number) || (count && stretch->items.items[count - 1].kind == HAPPENED_END))
		return;
	uint64_t time = count ? stretch->items.items[count - 1].time_after : 0;
	vector_push(&stretch->items, (struct happening){.kind = HAPPENED_CUT,
	                                     .position = position,
	                                     .time = time + 1,
	                                     .time_after = time + 1});
}

static struct chronicle_stretch *stretch_at(struct chronicle *chronicle, size_t number)
{
	struct chronicle_stretch *stretch = &chronicle->stretches[number];
	const struct section *section = chronicle->recorded->timeline.stretches[number];
	struct reading r = {.stretch = stretch};
	static struct decoder decoder;
	struct event event;
	uint64_t last = section->first;
	uint8_t *bytes;

	if (stretch->read)
		return stretch;
	stretch->read = true;
	if (stretch_read(&chronicle->reader, section, &bytes))
		return stretch;
	decoder_init(&decoder, bytes, section->raw_size);
	enum decode_status status;
	while ((status = decoder_next(&decoder, &event)) == DECODE_EVENT) {
		read_event(&r, &event);
		bool behind = event.kind == EVENT_SYSCALL || event.kind == EVENT_SIGRETURN ||
		              event.kind == EVENT_RESULT;
		if (event.position + behind > last)
			last = event.position + behind;
	}
	free(bytes);
	if (status == DECODE_END && section->last > last)
		last = section->last;
	read_cut(chronicle, number, last);
	for (uint32_t i = 1; i < stretch->items.count; i++) {
		if (stretch->items.items[i].position < stretch->items.items[i - 1].position)
			stretch->items.items[i].position = stretch->items.items[i - 1].position;
	}
	return stretch;
}

/* ---- finding ---- */

const struct chronicle_thread *chronicle_thread(const struct chronicle *chronicle, uint32_t id)
{
	for (uint32_t i = 0; i < chronicle->thread_count; i++) {
		if (chronicle->threads[i].id == id)
			return &chronicle->threads[i];
	}
	return NULL;
}

static uint64_t first_of(const struct chronicle *chronicle, size_t stretch)
{
	return chronicle->recorded->timeline.stretches[stretch]->first;
}

/* How many come first for which it is true: behind these it is false. */
static uint32_t count_first(const struct chronicle_stretch *stretch, uint32_t count, uint64_t limit,
        bool (*is_true)(const struct chronicle_stretch *stretch, uint32_t i, uint64_t limit))
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (is_true(stretch, middle, limit))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool item_is_before(const struct chronicle_stretch *stretch, uint32_t i, uint64_t position)
{
	return stretch->items.items[i].position < position;
}

/* How many of the stretch are before the position. */
static uint32_t count_before(const struct chronicle_stretch *stretch, uint64_t position)
{
	return count_first(stretch, stretch->items.count, position, item_is_before);
}

const struct happening *chronicle_next(struct chronicle *chronicle, uint32_t thread, uint64_t position)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	for (size_t i = t ? t->first : 0; t && i < t->end; i++) {
		/* All of a stretch comes before the next one begins. */
		if (i + 1 < t->end && first_of(chronicle, i + 1) < position)
			continue;
		const struct chronicle_stretch *stretch = stretch_at(chronicle, i);
		uint32_t k = count_before(stretch, position);
		if (k < stretch->items.count)
			return &stretch->items.items[k];
	}
	return NULL;
}

const struct happening *chronicle_previous(struct chronicle *chronicle, uint32_t thread, uint64_t position)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	for (size_t i = t ? t->end : 0; t && i-- > t->first;) {
		if (first_of(chronicle, i) > position)
			continue;
		const struct chronicle_stretch *stretch = stretch_at(chronicle, i);
		uint32_t k = count_before(stretch, position);
		if (k)
			return &stretch->items.items[k - 1];
	}
	return NULL;
}

const struct happening *chronicle_following(
        struct chronicle *chronicle, uint32_t thread, const struct happening *happening)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	for (size_t i = t->first; i < t->end; i++) {
		const struct chronicle_stretch *stretch = &chronicle->stretches[i];
		if (happening < stretch->items.items ||
		        happening >= stretch->items.items + stretch->items.count)
			continue;
		if (happening + 1 < stretch->items.items + stretch->items.count)
			return happening + 1;
		while (++i < t->end) {
			stretch = stretch_at(chronicle, i);
			if (stretch->items.count)
				return &stretch->items.items[0];
		}
	}
	return NULL;
}

uint32_t chronicle_signals(
        struct chronicle *chronicle, uint32_t thread, uint64_t position, const struct happening **first)
{
	const struct happening *happening = chronicle_next(chronicle, thread, position);
	uint32_t count = 0;

	*first = NULL;
	for (; happening && happening->position == position;
	        happening = chronicle_following(chronicle, thread, happening)) {
		if (happening->kind != HAPPENED_SIGNAL)
			continue;
		*first = *first ? *first : happening;
		count++;
	}
	return count;
}

uint64_t chronicle_keyframe_time(struct chronicle *chronicle, size_t stretch)
{
	return stretch_at(chronicle, stretch)->began;
}

uint64_t chronicle_first(const struct chronicle *chronicle, uint32_t thread)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	return t ? first_of(chronicle, t->first) : 0;
}

const struct happening *chronicle_end(struct chronicle *chronicle, uint32_t thread)
{
	return chronicle_previous(chronicle, thread, UINT64_MAX);
}

/* ---- time ---- */

static bool ends_all(const struct happening *happening)
{
	return happening->kind == HAPPENED_CUT ||
	       (happening->kind == HAPPENED_END && happening->end != END_THREAD_EXIT);
}

/* The stretch that the position lies in. */
static size_t stretch_of(
        const struct chronicle *chronicle, const struct chronicle_thread *t, uint64_t position)
{
	size_t low = t->first, high = t->end - 1;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;
		if (first_of(chronicle, middle) <= position)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void chronicle_note_operation(struct chronicle *chronicle, uint32_t thread, uint64_t position)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);
	struct chronicle_stretch *stretch = stretch_at(chronicle, stretch_of(chronicle, t, position));

	vector_push(&stretch->clocks, (struct clock){position, 0, true});
}

static int compare_clocks(const void *a, const void *b)
{
	const struct clock *left = a, *right = b;

	if (left->position != right->position)
		return left->position < right->position ? -1 : 1;
	return left->operation - right->operation;
}

/* Each has the next number, unless a happening at its position is itself, with another one. */
static void stamp_stretch(struct chronicle_stretch *stretch)
{
	uint32_t item = 0, kept = 0;
	uint64_t clock = 0;

	if (stretch->clocks.count)
		qsort(stretch->clocks.items, stretch->clocks.count, sizeof *stretch->clocks.items,
		        compare_clocks);
	for (uint32_t i = 0; i < stretch->clocks.count; i++) {
		struct clock next = stretch->clocks.items[i];
		const struct happening *items = stretch->items.items;
		bool told = false;
		while (item < stretch->items.count && items[item].position < next.position)
			clock = items[item++].time_after;
		/* Signals come before the instruction, and its own stamp, if the log tells it, behind these.
		 */
		while (next.operation && item < stretch->items.count &&
		        items[item].position == next.position &&
		        (items[item].kind == HAPPENED_SIGNAL || items[item].kind == HAPPENED_ORDER)) {
			told = items[item].kind == HAPPENED_ORDER;
			clock = items[item++].time_after;
		}
		if (told)
			continue;
		clock = next.operation ? clock + 1 : next.stamp;
		stretch->clocks.items[kept++] = (struct clock){next.position, clock, next.operation};
	}
	stretch->clocks.count = kept;
}

void chronicle_stamp_operations(struct chronicle *chronicle, bool all_noted)
{
	for (size_t i = 0; i < chronicle->recorded->timeline.count; i++) {
		if (all_noted)
			stamp_stretch(stretch_at(chronicle, i));
		else
			chronicle->stretches[i].clocks.count = 0;
	}
}

static bool clock_is_before(const struct chronicle_stretch *stretch, uint32_t i, uint64_t position)
{
	return stretch->clocks.items[i].position < position;
}

/* Stamps only grow. */
static bool clock_is_until(const struct chronicle_stretch *stretch, uint32_t i, uint64_t time)
{
	return stretch->clocks.items[i].stamp <= time;
}

/* The last one's stamp; 0: there is none. */
static uint64_t clock_before(struct chronicle *chronicle, uint32_t thread, uint64_t position)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	for (size_t i = t ? stretch_of(chronicle, t, position) + 1 : 0; t && i-- > t->first;) {
		const struct chronicle_stretch *stretch = stretch_at(chronicle, i);
		uint32_t count = count_first(stretch, stretch->clocks.count, position, clock_is_before);
		if (count)
			return stretch->clocks.items[count - 1].stamp;
	}
	return 0;
}

uint64_t chronicle_time(struct chronicle *chronicle, uint32_t thread, struct place place)
{
	const struct happening *end = chronicle_end(chronicle, thread);

	/* Where the whole process ends, or the recording, all have come to their ends. */
	if (end && place.position >= end->position && ends_all(end))
		return CHRONICLE_ALWAYS;
	const struct happening *last =
	        chronicle_previous(chronicle, thread, place.position + (place.signals > 0));
	uint64_t clock = clock_before(chronicle, thread, place.position);
	if (last)
		return last->time_after > clock ? last->time_after : clock;
	if (clock)
		return clock;
	const struct happening *next = chronicle_next(chronicle, thread, place.position);
	return next && next->time ? next->time - 1 : 0;
}

/* The first operation among the clocks with a later stamp; NULL: none. */
static const struct clock *first_later(struct chronicle *chronicle, uint32_t thread, uint64_t time)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);

	for (size_t i = t ? t->first : 0; t && i < t->end; i++) {
		const struct chronicle_stretch *stretch = stretch_at(chronicle, i);
		uint32_t until = count_first(stretch, stretch->clocks.count, time, clock_is_until);
		for (uint32_t k = until; k < stretch->clocks.count; k++) {
			if (stretch->clocks.items[k].operation)
				return &stretch->clocks.items[k];
		}
	}
	return NULL;
}

struct place chronicle_at(struct chronicle *chronicle, uint32_t thread, uint64_t time)
{
	const struct happening *happening = chronicle_next(chronicle, thread, 0), *last = happening;
	const struct clock *operation = first_later(chronicle, thread, time);
	uint64_t before = operation ? operation->position : UINT64_MAX;

	for (; happening && happening->position <= before;
	        happening = chronicle_following(chronicle, thread, happening)) {
		/* It had entered the call, and not come back. */
		if (happening->time_after > time)
			return (struct place){happening->position, 0};
		last = happening;
	}
	if (operation)
		return (struct place){before, 0};
	return (struct place){last ? last->position : 0, 0};
}

/* ---- opening ---- */

static bool read_record(struct chronicle *chronicle, struct chronicle_thread *thread)
{
	const struct section *section = NULL, *last = NULL;

	while ((section = reader_find(&chronicle->reader, SECTION_THREAD, thread->id, section)))
		last = section;
	return last && thread_record_read(&chronicle->reader, last, &thread->record) == RECORDING_OK;
}

void chronicle_open(struct chronicle *chronicle, const struct recorded *recorded)
{
	const struct timeline *timeline = &recorded->timeline;

	*chronicle = (struct chronicle){.recorded = recorded, .reader = recorded->reader};
	chronicle->threads = calloc(timeline->threads + 1, sizeof *chronicle->threads);
	chronicle->stretches = calloc(timeline->count + 1, sizeof *chronicle->stretches);
	if (!chronicle->threads || !chronicle->stretches)
		abort();
	for (size_t i = 0; i < timeline->count; i = timeline_next_thread(timeline, i)) {
		struct chronicle_thread *thread = &chronicle->threads[chronicle->thread_count++];
		thread->id = stretch_thread(timeline->stretches[i]);
		thread->first = i;
		thread->end = timeline_next_thread(timeline, i);
		thread->has_record = read_record(chronicle, thread);
	}
}

void chronicle_close(struct chronicle *chronicle)
{
	for (size_t i = 0; i < chronicle->recorded->timeline.count; i++)
		vector_free(&chronicle->stretches[i].items), vector_free(&chronicle->stretches[i].clocks);
	free(chronicle->stretches);
	free(chronicle->threads);
}
