#include "debug/clock.h"

static bool begin_of(const struct chronicle *chronicle, uint64_t *begin)
{
	*begin = UINT64_MAX;
	for (uint32_t i = 0; i < chronicle->thread_count; i++) {
		const struct chronicle_thread *thread = &chronicle->threads[i];
		if (thread->has_record && thread->record.start_time && thread->record.start_time < *begin)
			*begin = thread->record.start_time;
	}
	return *begin != UINT64_MAX;
}

/* From one keyframe to the next, or to the thread's end. */
struct span {
	uint64_t position, next_position;
	uint64_t time, next_time;
};

static bool span_of(
        struct chronicle *chronicle, const struct chronicle_thread *thread, size_t stretch, struct span *span)
{
	const struct happening *end = chronicle_end(chronicle, thread->id);

	span->position = chronicle->recorded->timeline.stretches[stretch]->first;
	span->time = chronicle_keyframe_time(chronicle, stretch);
	if (stretch + 1 < thread->end) {
		span->next_position = chronicle->recorded->timeline.stretches[stretch + 1]->first;
		span->next_time = chronicle_keyframe_time(chronicle, stretch + 1);
	} else {
		const struct lost_end *lost = recorded_lost_end(chronicle->recorded, thread->id);
		span->next_position = lost ? lost->last : end ? end->position : span->position;
		span->next_time = thread->record.end_time;
	}
	return span->time && span->next_time >= span->time;
}

/* `value`, which is from a to b, in proportion from c to d. */
static uint64_t proportion(uint64_t value, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return a == b ? c : c + (uint64_t)((unsigned __int128)(value - a) * (d - c) / (b - a));
}

/* The last stretch whose keyframe is not behind the position or time. */
static size_t find(
        struct chronicle *chronicle, const struct chronicle_thread *thread, uint64_t value, bool by_time)
{
	size_t low = thread->first, high = thread->end;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		uint64_t there = by_time ? chronicle_keyframe_time(chronicle, middle)
		                         : chronicle->recorded->timeline.stretches[middle]->first;
		if (there <= value)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t limited(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

bool clock_at(struct chronicle *chronicle, uint32_t thread, uint64_t position, uint64_t *time)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);
	struct span span;
	uint64_t begin;

	if (!t || !t->has_record || t->first == t->end || !begin_of(chronicle, &begin) ||
	        !span_of(chronicle, t, find(chronicle, t, position, false), &span) || span.time < begin)
		return false;
	position = limited(position, span.position, span.next_position);
	*time = proportion(position, span.position, span.next_position, span.time, span.next_time) - begin;
	return true;
}

bool clock_position(struct chronicle *chronicle, uint32_t thread, uint64_t time, uint64_t *position)
{
	const struct chronicle_thread *t = chronicle_thread(chronicle, thread);
	struct span span;
	uint64_t begin;

	if (!t || !t->has_record || t->first == t->end || !begin_of(chronicle, &begin) ||
	        time > UINT64_MAX - begin ||
	        !span_of(chronicle, t, find(chronicle, t, time + begin, true), &span))
		return false;
	time = limited(time + begin, span.time, span.next_time);
	*position = proportion(time, span.time, span.next_time, span.position, span.next_position);
	return true;
}
