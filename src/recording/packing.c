#include "recording/packing.h"

#include <zstd.h>

#include "recording/columns.h"

/* Into the room. False where that is not possible or does not make it smaller. */
static bool compress(struct section *section, const void *bytes, size_t size, int level, struct buffer *room)
{
	if (!buffer_reserve(room, ZSTD_compressBound(size)))
		return false;
	size_t packed = ZSTD_compress(room->bytes, room->capacity, bytes, size, level);
	if (ZSTD_isError(packed) || packed >= size)
		return false;
	section->stored_size = packed;
	return true;
}

/* The same, by way of columns. False also where the bytes are no events. */
static bool compress_columns(
        struct section *section, const void *bytes, size_t size, int level, struct buffer *room)
{
	struct buffer columns = {0};
	bool done = columns_split(bytes, size, &columns) &&
	            compress(section, columns.bytes, columns.size, level, room) &&
	            section->stored_size < size;

	buffer_deinit(&columns);
	return done;
}

const void *section_pack(
        struct section *section, const void *bytes, size_t size, int level, struct buffer *room)
{
	section->raw_size = section->stored_size = size;
	if (section->codec == CODEC_COLUMNS && compress_columns(section, bytes, size, level, room)) {
		bytes = room->bytes;
	} else if (section->codec != CODEC_NONE) {
		section->codec = compress(section, bytes, size, level, room) ? CODEC_ZSTD : CODEC_NONE;
		bytes = section->codec == CODEC_NONE ? bytes : room->bytes;
	}
	section->checksum = container_checksum(bytes, section->stored_size);
	return bytes;
}
