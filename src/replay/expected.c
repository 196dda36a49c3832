#include "replay/expected.h"

#include <string.h>

/*
 * The record at this offset of the feed, or NULL. The offset and what it leads to are in the
 * memory of the process that diverged: neither is believed.
 */
static const struct feed_record *record_at(const struct feed *feed, uint64_t offset)
{
	uint64_t start = offsetof(struct feed, buffers), end = start + sizeof feed->buffers;
	const struct feed_record *record = (const struct feed_record *)((const uint8_t *)feed + offset);

	if (offset < start || offset % 8 || offset > end - sizeof *record)
		return NULL;
	if (record->kind == FEED_MORE || record->size < sizeof *record || record->size > end - offset)
		return NULL;
	return record;
}

static void take_registers(
        struct state *state, const struct feed_record *record, const struct registers *registers)
{
	*state = (struct state){.position = record->position + (record->kind == FEED_SYSCALL)};
	memcpy(&state->registers, registers, sizeof state->registers);
}

static bool state_of(const struct feed_record *record, const struct feeder *feeder, struct state *state)
{
	const struct feed_syscall *call = (const struct feed_syscall *)record;
	uint64_t number = ((const struct feed_number *)record)->number;

	if (record->kind == FEED_SYSCALL && record->size >= sizeof *call) {
		take_registers(state, record, &call->registers);
		return true;
	}
	if (record->kind != FEED_REPORT || number >= feeder->notices.count || !feeder->notices.items[number])
		return false;
	const struct notice *notice = feeder->notices.items[number];
	*state = notice->state;
	return notice->kind == NOTICE_KEYFRAME || notice->kind == NOTICE_END;
}

bool expected_state(const struct feed *feed, const struct feeder *feeder, struct state *state)
{
	const struct feed_record *record;

	for (uint64_t at = feed->next; (record = record_at(feed, at)); at += record->size) {
		if (state_of(record, feeder, state))
			return true;
	}
	return false;
}
