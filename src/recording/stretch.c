#include "recording/stretch.h"

enum recording_status stretch_write(struct writer *writer, uint32_t thread, uint32_t number, uint64_t first,
        uint64_t last, const uint8_t *bytes, size_t size)
{
	const struct section what = {
	        .type = SECTION_STRETCH,
	        .codec = CODEC_SORTED,
	        .id = stretch_id(thread, number),
	        .first = first,
	        .last = last,
	};

	return writer_add(writer, &what, bytes, size);
}

enum recording_status stretch_read(struct reader *reader, const struct section *section, uint8_t **bytes)
{
	if (section->type != SECTION_STRETCH || section->first > section->last)
		return reader_fail(reader, section, RECORDING_MALFORMED);
	return reader_load(reader, section, bytes);
}
