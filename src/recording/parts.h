/*
 * The parts of an event that are stored apart from each other, where they lie, and what is put
 * together of them again: for columns.c and sorted.c.
 */
#ifndef BUGNET_RECORDING_PARTS_H
#define BUGNET_RECORDING_PARTS_H

#include "recording/buffer.h"
#include "recording/coder.h"
#include "recording/cursor.h"

#define KEYFRAME_DICTIONARY 8 /* where its bits are, behind the first byte */

/* A varint, where it lies. */
static inline const uint8_t *varint_bytes(struct cursor *cursor, size_t *size)
{
	const uint8_t *at = cursor->at;

	cursor_varint(cursor);
	*size = (size_t)(cursor->at - at);
	return at;
}

static inline const uint8_t *line_bytes(struct cursor *cursor, unsigned head, size_t *size)
{
	switch (head >> PATCH_DISTANCE_SHIFT & 3) {
	case DISTANCE_NEAR:
		*size = 1;
		return cursor_bytes(cursor, 1);
	case DISTANCE_FAR:
		return varint_bytes(cursor, size);
	}
	*size = 0;
	return cursor->at;
}

static inline void put_size(struct buffer *buffer, uint64_t size)
{
	uint8_t bytes[VARINT_MAXIMUM];

	buffer_bytes(buffer, bytes, (size_t)(put_varint(bytes, size) - bytes));
}

/* Events being put together, in room of just their size. */
struct merged {
	uint8_t *at, *end;
	bool failed;
};

static inline void put_part(struct merged *merged, const uint8_t *bytes, size_t size)
{
	if (!bytes || (size_t)(merged->end - merged->at) < size) {
		merged->failed = true;
		return;
	}
	memcpy(merged->at, bytes, size);
	merged->at += size;
}

#endif
