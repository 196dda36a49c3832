#include "record/thread_log.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_KEPT (4u << 20) /* from one stretch to the next, of each thread */

struct thread_log *thread_log_create(uint32_t id)
{
	struct thread_log *log = calloc(1, sizeof *log);

	if (!log)
		return NULL;
	log->record = (struct thread_record){
	        .id = id,
	        .parent = THREAD_NO_PARENT,
	        .end_kind = THREAD_STILL_RUNS,
	        .first_position = UINT64_MAX,
	};
	decoder_init(&log->decoder, NULL, 0);
	return log;
}

void thread_log_destroy(struct thread_log *log)
{
	if (log)
		buffer_deinit(&log->stretch);
	free(log);
}

static void note_facts(struct thread_log *log, const struct thread_facts *facts)
{
	log->code = facts->code;
	log->record.parent = facts->parent;
	log->record.tid = facts->tid;
	if (*facts->name)
		memcpy(log->record.name, facts->name, sizeof log->record.name);
}

static enum recording_status write_stretch(struct thread_log *log, const struct log_sink *sink)
{
	const struct finished_stretch stretch = {
	        .what = {.type = SECTION_STRETCH,
	                .codec = CODEC_SORTED,
	                .id = stretch_id(log->record.id, log->stretches),
	                .first = log->first,
	                .last = log->last},
	        .events = &log->stretch,
	        .leans_on = log->leans_on,
	        .began = log->began,
	        .code = log->code,
	};

	if (!log->has_stretch)
		return RECORDING_OK;
	log->has_stretch = false;
	if (log->stretch.failed)
		return RECORDING_MEMORY;
	enum recording_status status = sink->stretch(sink->context, &stretch);
	if (status)
		return status;
	log->stretches++;
	if (log->record.first_position > log->first)
		log->record.first_position = log->first;
	log->record.last_position = log->last;
	return sink->thread(sink->context, &log->record);
}

static void begin_stretch(struct thread_log *log, const struct event *event)
{
	log->has_stretch = true;
	log->stretch.size = 0;
	if (log->stretch.capacity > ROOM_KEPT)
		buffer_deinit(&log->stretch);
	log->first = log->last = event->position;
	log->leans_on = event->keyframe.leans_on;
	log->began = event->keyframe.monotonic;
	if (!log->record.start_time)
		log->record.start_time = event->keyframe.monotonic;
	log->record.end_time = event->keyframe.monotonic;
}

static enum recording_status look_at(
        struct thread_log *log, const struct log_sink *sink, const struct event *event)
{
	enum recording_status status = RECORDING_OK;

	if (event->kind == EVENT_KEYFRAME) {
		if (event->position > log->last)
			log->last = event->position; /* where the stretch before it ended */
		status = write_stretch(log, sink);
		begin_stretch(log, event);
	}
	log->last = event->position;
	if (event->kind == EVENT_END) {
		log->record.end_kind = event->end.kind;
		log->record.end_status = event->end.status;
	}
	return status;
}

static void append(struct thread_log *log, const uint8_t *from, const uint8_t *to)
{
	if (log->has_stretch)
		buffer_bytes(&log->stretch, from, (size_t)(to - from));
}

/* After damage: can the stretch be replayed without what came before? */
static bool begins_anew(struct thread_log *log, const uint8_t *bytes, size_t size)
{
	struct event event;

	decoder_init(&log->decoder, bytes, size);
	bool anew = decoder_next(&log->decoder, &event) == DECODE_EVENT && event.keyframe.leans_on == 0;
	decoder_init(&log->decoder, NULL, 0);
	return anew;
}

static enum recording_status take(
        struct thread_log *log, const struct log_sink *sink, const uint8_t *bytes, size_t size)
{
	const uint8_t *begin = bytes; /* of what is not yet in the stretch */
	struct event event;
	enum decode_status found;

	if (log->damaged)
		log->damaged = !begins_anew(log, bytes, size);
	if (log->damaged)
		return RECORDING_OK;
	decoder_continue(&log->decoder, bytes, size);
	while ((found = decoder_next(&log->decoder, &event)) == DECODE_EVENT) {
		const uint8_t *here = bytes + log->decoder.event_offset;
		if (event.kind == EVENT_KEYFRAME) {
			append(log, begin, here);
			begin = here;
		}
		enum recording_status status = look_at(log, sink, &event);
		if (status)
			return status;
	}
	log->damaged = found != DECODE_END;
	log->was_damaged |= log->damaged;
	append(log, begin, log->damaged ? bytes + log->decoder.event_offset : bytes + size);
	return log->stretch.failed ? RECORDING_MEMORY : RECORDING_OK;
}

/* The facts are those of the stretch that goes on or begins, not of one that ends here. */
enum recording_status thread_log_take(struct thread_log *log, const struct log_sink *sink,
        const struct thread_facts *facts, const uint8_t *bytes, size_t size)
{
	enum recording_status status = take(log, sink, bytes, size);

	note_facts(log, facts);
	return status;
}

enum recording_status thread_log_close(
        struct thread_log *log, const struct log_sink *sink, uint64_t position, uint64_t now)
{
	if (log->has_stretch && position > log->last && !log->damaged)
		log->last = position;
	if (now > log->record.end_time)
		log->record.end_time = now;
	enum recording_status status = write_stretch(log, sink);
	if (!status && !log->stretches) { /* it ran, but nothing of it could be kept */
		log->record.first_position = 0;
		status = sink->thread(sink->context, &log->record);
	}
	return status;
}

enum recording_status thread_log_snapshot(const struct thread_log *log, const struct log_sink *sink,
        const struct thread_facts *facts, const uint8_t *bytes, size_t size, uint64_t position, uint64_t now)
{
	struct thread_log *copy = malloc(sizeof *copy);

	if (!copy)
		return RECORDING_MEMORY;
	*copy = *log;
	decoder_copy(&copy->decoder, &log->decoder);
	copy->stretch = (struct buffer){0};
	buffer_bytes(&copy->stretch, log->stretch.bytes, log->stretch.size);
	enum recording_status status = thread_log_take(copy, sink, facts, bytes, size);
	if (!status)
		status = thread_log_close(copy, sink, position, now);
	thread_log_destroy(copy);
	return status;
}
