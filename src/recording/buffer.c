#include "recording/buffer.h"

#include <stdlib.h>
#include <string.h>

void buffer_deinit(struct buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct buffer){0};
}

bool buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t larger = buffer->capacity ? buffer->capacity : 256;

	if (buffer->failed)
		return false;
	if (buffer->capacity - buffer->size >= more)
		return true;
	while (larger - buffer->size < more) {
		if (larger > SIZE_MAX / 2) {
			buffer->failed = true;
			return false;
		}
		larger *= 2;
	}
	uint8_t *bytes = realloc(buffer->bytes, larger);
	if (!bytes) {
		buffer->failed = true;
		return false;
	}
	buffer->bytes = bytes;
	buffer->capacity = larger;
	return true;
}

void buffer_bytes(struct buffer *buffer, const void *bytes, size_t size)
{
	if (!size || !buffer_reserve(buffer, size))
		return;
	memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size += size;
}

void buffer_u8(struct buffer *buffer, uint8_t value)
{
	buffer_bytes(buffer, &value, sizeof value);
}

void buffer_u32(struct buffer *buffer, uint32_t value)
{
	buffer_bytes(buffer, &value, sizeof value);
}

void buffer_u64(struct buffer *buffer, uint64_t value)
{
	buffer_bytes(buffer, &value, sizeof value);
}

void buffer_sized(struct buffer *buffer, const void *bytes, uint32_t size)
{
	buffer_u32(buffer, size);
	buffer_bytes(buffer, bytes, size);
}
