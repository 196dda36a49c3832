#include "recording/typed.h"

#include <stdlib.h>
#include <string.h>

enum recording_status typed_text(struct cursor *cursor, uint32_t size, char **text)
{
	const uint8_t *bytes = cursor_bytes(cursor, size);

	if (!bytes || memchr(bytes, 0, size))
		return RECORDING_MALFORMED;
	*text = strndup((const char *)bytes, size);
	return *text ? RECORDING_OK : RECORDING_MEMORY;
}

enum recording_status typed_write(
        struct writer *writer, enum section_type type, uint64_t id, struct buffer *buffer)
{
	const struct section what = {.type = type, .codec = CODEC_ZSTD, .id = id};
	enum recording_status status = RECORDING_MEMORY;

	if (buffer->failed)
		writer->error = (struct recording_error){.status = status, .offset = writer->size};
	else
		status = writer_add(writer, &what, buffer->bytes, buffer->size);
	buffer_deinit(buffer);
	return status;
}

enum recording_status typed_read(
        struct reader *reader, const struct section *section, typed_decoder *decode, void *to)
{
	uint8_t *bytes;

	if (section->raw_size > TYPED_LIMIT)
		return reader_fail(reader, section, RECORDING_TOO_LARGE);
	enum recording_status status = reader_load(reader, section, &bytes);
	if (status)
		return status;
	status = decode(to, bytes, section->raw_size);
	free(bytes);
	return status ? reader_fail(reader, section, status) : RECORDING_OK;
}

enum recording_status typed_read_all(
        struct reader *reader, enum section_type type, typed_decoder *decode, void *to)
{
	const struct section *section = reader_find(reader, type, 0, NULL);
	enum recording_status status = RECORDING_OK;

	if (!section) {
		reader->error = (struct recording_error){.status = RECORDING_MISSING};
		return RECORDING_MISSING;
	}
	for (; section && !status; section = reader_find(reader, type, 0, section))
		status = typed_read(reader, section, decode, to);
	return status;
}
