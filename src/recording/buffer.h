/*
 * Bytes being put together. Running out of memory marks the buffer and makes later calls
 * do nothing; callers ask once at the end.
 */
#ifndef BUGNET_RECORDING_BUFFER_H
#define BUGNET_RECORDING_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *bytes;
	size_t size, capacity;
	bool failed;
};

void buffer_deinit(struct buffer *buffer);
/* Make room for `more` bytes behind those there are. */
bool buffer_reserve(struct buffer *buffer, size_t more);

void buffer_bytes(struct buffer *buffer, const void *bytes, size_t size);
void buffer_u8(struct buffer *buffer, uint8_t value);
void buffer_u32(struct buffer *buffer, uint32_t value);
void buffer_u64(struct buffer *buffer, uint64_t value);

/* The size as 32 bits, then the bytes. */
void buffer_sized(struct buffer *buffer, const void *bytes, uint32_t size);

#endif
