/*
 * Reading from bytes that nobody vouches for. A read that fails gives zero and marks the
 * cursor, and so do all later ones; callers read a whole record and ask once.
 */
#ifndef BUGNET_RECORDING_CURSOR_H
#define BUGNET_RECORDING_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum cursor_state {
	CURSOR_GOOD,
	CURSOR_SHORT,    /* the bytes end inside what was to be read */
	CURSOR_OVERLONG, /* a variable number of more than 64 bits */
};

struct cursor {
	const uint8_t *at; /* on failure: what could not be read */
	const uint8_t *end;
	enum cursor_state state;
};

/* NULL will do for no bytes. */
static inline struct cursor cursor_of(const uint8_t *bytes, size_t size)
{
	return (struct cursor){bytes, size ? bytes + size : bytes, CURSOR_GOOD};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* The next bytes, where they lie, or NULL. */
static inline const uint8_t *cursor_bytes(struct cursor *cursor, size_t size)
{
	const uint8_t *bytes = cursor->at;

	if (cursor->state != CURSOR_GOOD)
		return NULL;
	if (cursor_left(cursor) < size) {
		cursor->state = CURSOR_SHORT;
		return NULL;
	}
	cursor->at += size;
	return bytes;
}

/* A number of 1 to 8 bytes. Away from the end all of them are read at once and cut to size, without a call.
 */
static inline uint64_t cursor_fixed(struct cursor *cursor, size_t size)
{
	uint64_t value = 0;

	if (cursor->state == CURSOR_GOOD && cursor_left(cursor) >= sizeof value) {
		memcpy(&value, cursor->at, sizeof value);
		cursor->at += size;
		return value & UINT64_MAX >> (64 - 8 * size);
	}
	const uint8_t *bytes = cursor_bytes(cursor, size);
	if (bytes)
		memcpy(&value, bytes, size);
	return value;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	return (uint8_t)cursor_fixed(cursor, 1);
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
	return (uint16_t)cursor_fixed(cursor, 2);
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
	return (uint32_t)cursor_fixed(cursor, 4);
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
	return cursor_fixed(cursor, 8);
}

static inline uint64_t cursor_varint(struct cursor *cursor)
{
	const uint8_t *at = cursor->at;
	uint64_t value = 0;

	if (cursor->state != CURSOR_GOOD)
		return 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (at == cursor->end) {
			cursor->state = CURSOR_SHORT;
			return 0;
		}
		uint64_t bits = *at & 0x7f;
		if (bits << shift >> shift != bits)
			break;
		value |= bits << shift;
		if (!(*at++ & 0x80)) {
			cursor->at = at;
			return value;
		}
	}
	cursor->state = CURSOR_OVERLONG;
	return 0;
}

#endif
