#include "recording/packing.h"

#include <zstd.h>

#include "recording/columns.h"
#include "recording/sorted.h"

/* Columns of at least so many bytes get a frame, and with it statistics, of their own. */
#define OWN_FRAME 2048

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

/* Columns are of different natures: a frame for each, smaller ones together with what comes next. */
static bool compress_apart(const struct sorted *sorted, int level, struct buffer *room, size_t *stored)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	const uint8_t *bytes = sorted->bytes.bytes;
	size_t from = 0, packed = 0;

	*stored = 0;
	for (unsigned i = 0; context && i < SORTED_COLUMNS && !ZSTD_isError(packed); i++) {
		size_t size = sorted->ends[i] - from;
		if (size < OWN_FRAME && i < SORTED_COLUMNS - 1)
			continue;
		packed = ZSTD_compressCCtx(
		        context, room->bytes + *stored, room->capacity - *stored, bytes + from, size, level);
		*stored += packed;
		from = sorted->ends[i];
	}
	ZSTD_freeCCtx(context);
	return context && !ZSTD_isError(packed);
}

/* False also where the events are none, or others than encode.h would write. */
static bool compress_sorted(
        struct section *section, const void *bytes, size_t size, int level, struct buffer *room)
{
	struct sorted sorted;
	/* of a frame alone the bound is at most so much more than its share of all of them */
	bool done = sorted_split(bytes, size, &sorted) &&
	            buffer_reserve(room,
	                    ZSTD_compressBound(sorted.bytes.size) + SORTED_COLUMNS * ZSTD_COMPRESSBOUND(0)) &&
	            compress_apart(&sorted, level, room, &section->stored_size) &&
	            section->stored_size < size;

	sorted_deinit(&sorted);
	return done;
}

const void *section_pack(
        struct section *section, const void *bytes, size_t size, int level, struct buffer *room)
{
	section->raw_size = section->stored_size = size;
	if (section->codec == CODEC_SORTED && !compress_sorted(section, bytes, size, level, room))
		section->codec = CODEC_COLUMNS;
	if (section->codec == CODEC_COLUMNS && !compress_columns(section, bytes, size, level, room))
		section->codec = CODEC_ZSTD;
	if (section->codec == CODEC_ZSTD && !compress(section, bytes, size, level, room))
		section->codec = CODEC_NONE;
	if (section->codec == CODEC_NONE)
		section->stored_size = size;
	else
		bytes = room->bytes;
	section->checksum = container_checksum(bytes, section->stored_size);
	return bytes;
}
