/* Random events for the tests of the recording's coding: every kind, every option, sizes from end to end. */
#ifndef RECORDING_RANDOM_H
#define RECORDING_RANDOM_H

#include <stdlib.h>
#include <string.h>

#include "../fuzz/random.h"
#include "recording/encode.h"

struct random_events {
	struct rng rng;
	uint64_t position;
	uint64_t stamp;
	uint64_t line;
	uint8_t bytes[EVENT_XSAVE_MAXIMUM];
};

static inline void random_events_init(struct random_events *random, uint64_t seed)
{
	memset(random, 0, sizeof *random);
	random->rng = rng_stream(seed, 0);
	for (size_t i = 0; i < sizeof random->bytes; i++)
		random->bytes[i] = (uint8_t)rng_next(&random->rng);
}

/* Numbers of all lengths, and some that come again and again. */
static inline uint64_t random_value(struct random_events *random)
{
	uint64_t value = rng_next(&random->rng);

	if (value % 4 == 0)
		return 0x7f0000000000u + value % 50 * 0x12340;
	return value >> rng_below(&random->rng, 64);
}

static inline uint32_t random_size(struct random_events *random, uint32_t least, uint32_t most)
{
	uint32_t choice = rng_below(&random->rng, 10);

	return choice == 0   ? least
	       : choice == 1 ? most
	                     : least + rng_below(&random->rng, most - least + 1) / choice;
}

static inline void random_details(struct random_events *random, uint64_t details[EVENT_SIGNAL_DETAILS])
{
	for (unsigned i = 0; i < EVENT_SIGNAL_DETAILS; i++)
		details[i] = random_value(random);
}

static inline void random_registers(struct random_events *random, struct event_registers *registers)
{
	for (int i = 0; i < 16; i++)
		registers->gpr[i] = random_value(random);
	registers->pc = random_value(random);
	registers->flags = random_value(random);
}

static inline void random_changes(struct random_events *random, struct event_changes *changes)
{
	changes->mask = (uint16_t)random_value(random);
	for (int i = 0; i < 16; i++)
		changes->gpr[i] = changes->mask >> i & 1 ? random_value(random) : 0;
	changes->has_flags = rng_chance(&random->rng, 50);
	changes->flags = changes->has_flags ? random_value(random) : 0;
}

static inline void random_xsave(struct random_events *random, struct event_xsave *xsave)
{
	xsave->size = random_size(random, 0, EVENT_XSAVE_MAXIMUM);
	xsave->bytes = random->bytes;
}

static inline void random_patch(struct random_events *random, struct event_patch *patch)
{
	switch (rng_below(&random->rng, 5)) {
	case 0:
		random->line = rng_next(&random->rng) >> (6 + rng_below(&random->rng, 58));
		break;
	case 1:
		random->line += rng_below(&random->rng, 500);
		break;
	case 2:
		random->line++;
		break;
	}
	random->line %= LINE_LIMIT;
	patch->address = random->line * EVENT_LINE_BYTES;
	do
		patch->mask = rng_chance(&random->rng, 30) ? 0xff : (uint8_t)random_value(random);
	while (!patch->mask);
	for (int i = 0; i < EVENT_LINE_WORDS; i++)
		patch->words[i] = patch->mask >> i & 1 ? random_value(random) : 0;
}

static inline void random_map(struct random_events *random, struct event_map *map)
{
	map->kind = (enum event_map_kind)rng_below(&random->rng, MAP_KIND_PROTECT + 1);
	map->start = random_value(random);
	map->length = random_value(random);
	map->protection = (uint32_t)random_value(random);
	map->flags = (uint32_t)random_value(random);
	map->file = rng_chance(&random->rng, 30) ? EVENT_FILE_NONE : (uint32_t)random_value(random);
	map->offset = random_value(random);
}

static inline void random_keyframe(struct random_events *random, struct event_keyframe *keyframe)
{
	random_registers(random, &keyframe->registers);
	keyframe->fs_base = random_value(random);
	keyframe->gs_base = random_value(random);
	keyframe->realtime = random_value(random);
	keyframe->monotonic = random_value(random);
	keyframe->leans_on = (uint32_t)random_value(random);
	random_xsave(random, &keyframe->xsave);
}

static inline void random_signal(struct random_events *random, struct event_signal *signal)
{
	signal->number = rng_below(&random->rng, 65);
	signal->code = (int32_t)random_value(random);
	random_details(random, signal->details);
	signal->fault = rng_chance(&random->rng, 50);
	signal->iterations = random_value(random);
	random_registers(random, &signal->registers);
	random_xsave(random, &signal->xsave);
}

static inline enum event_kind random_kind(struct random_events *random)
{
	uint32_t kind = rng_below(&random->rng, 2 * EVENT_OUTPUT + 1);

	return kind >= EVENT_KEYFRAME && kind <= EVENT_OUTPUT ? (enum event_kind)kind : EVENT_PATCH;
}

/* Bytes of the event that have no meaning are zero, so that events can be compared as a whole. */
static inline void random_event(struct random_events *random, enum event_kind kind, struct event *event)
{
	memset(event, 0, sizeof *event);
	if (kind == EVENT_KEYFRAME)
		random->position = rng_next(&random->rng) >> (1 + rng_below(&random->rng, 63));
	else if (rng_chance(&random->rng, 80))
		random->position += random_value(random) >> 24;
	event->kind = kind;
	event->position = random->position;
	switch (kind) {
	case EVENT_KEYFRAME:
		random_keyframe(random, &event->keyframe);
		break;
	case EVENT_PATCH:
		random_patch(random, &event->patch);
		break;
	case EVENT_RESULT:
		random_changes(random, &event->result.changes);
		break;
	case EVENT_SYSCALL:
		random_registers(random, &event->syscall.registers);
		event->syscall.result = (int64_t)random_value(random);
		if (rng_chance(&random->rng, 50))
			random_changes(random, &event->syscall.changes);
		break;
	case EVENT_SIGNAL:
		random_signal(random, &event->signal);
		break;
	case EVENT_SIGRETURN:
		event->sigreturn.call = rng_chance(&random->rng, 50);
		random_registers(random, &event->sigreturn.registers);
		event->sigreturn.has_bases = rng_chance(&random->rng, 30);
		event->sigreturn.fs_base = event->sigreturn.has_bases ? random_value(random) : 0;
		event->sigreturn.gs_base = event->sigreturn.has_bases ? random_value(random) : 0;
		random_xsave(random, &event->sigreturn.xsave);
		break;
	case EVENT_ORDER:
		random->stamp += random_value(random);
		event->order.kind = (enum event_order_kind)rng_below(&random->rng, 3);
		event->order.stamp = event->order.since = random->stamp;
		event->order.loose = rng_chance(&random->rng, 20);
		if (event->order.loose)
			event->order.since -= random_value(random);
		break;
	case EVENT_CODE:
		event->code.pieces = (uint32_t)random_value(random);
		break;
	case EVENT_MAP:
		random_map(random, &event->map);
		break;
	case EVENT_END:
		event->end.kind = (enum event_end_kind)rng_below(&random->rng, END_RELEASED + 1);
		event->end.status = (int32_t)random_value(random);
		event->end.code = (int32_t)random_value(random);
		random_details(random, event->end.details);
		random_registers(random, &event->end.registers);
		break;
	case EVENT_OUTPUT:
		event->output.fd = (int32_t)random_value(random);
		event->output.size = random_size(random, 0, EVENT_OUTPUT_MAXIMUM);
		event->output.bytes = random->bytes;
		break;
	}
}

/* Append `count` events, the first one a keyframe. Room: count * ENCODE_MAXIMUM. */
static inline size_t random_stretch(
        struct random_events *random, struct coder *coder, uint8_t *bytes, struct event *events, size_t count)
{
	uint8_t *at = bytes;

	for (size_t i = 0; i < count; i++) {
		random_event(random, i == 0 ? EVENT_KEYFRAME : random_kind(random), &events[i]);
		at = encode_event(coder, at, &events[i]);
	}
	return (size_t)(at - bytes);
}

#endif
