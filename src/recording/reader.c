#include "recording/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "recording/columns.h"
#include "recording/cursor.h"
#include "recording/sorted.h"

static enum recording_status fail(struct reader *reader, enum recording_status status, uint64_t offset)
{
	reader->error = (struct recording_error){.status = status, .offset = offset};
	return status;
}

enum recording_status reader_fail(
        struct reader *reader, const struct section *section, enum recording_status status)
{
	return fail(reader, status, section->offset);
}

static enum recording_status fail_system(struct reader *reader)
{
	reader->error = (struct recording_error){.status = RECORDING_SYSTEM, .number = errno};
	return RECORDING_SYSTEM;
}

/* All of it, or RECORDING_TRUNCATED. */
static enum recording_status read_at(struct reader *reader, uint64_t offset, void *bytes, size_t size)
{
	uint64_t at = offset;

	if (offset > reader->size || size > reader->size - offset)
		return fail(reader, RECORDING_TRUNCATED, offset);
	while (size) {
		ssize_t got = pread(reader->fd, bytes, size, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_system(reader);
		if (got == 0) /* it became shorter since it was opened */
			return fail(reader, RECORDING_TRUNCATED, offset);
		bytes = (uint8_t *)bytes + got;
		at += (size_t)got;
		size -= (size_t)got;
	}
	return RECORDING_OK;
}

/* ---- the file's header ---- */

static enum recording_status check_header(struct reader *reader)
{
	if (reader->header.minimum_reader > CONTAINER_VERSION)
		return fail(reader, RECORDING_VERSION, 0);
	if (reader->header.required & ~(uint64_t)CONTAINER_REQUIRED_KNOWN)
		return fail(reader, RECORDING_FEATURES, 0);
	return RECORDING_OK;
}

static enum recording_status read_header(struct reader *reader)
{
	uint8_t bytes[CONTAINER_HEADER_SIZE_MAXIMUM];
	uint32_t size;

	if (reader->size < CONTAINER_START_SIZE)
		return fail(reader, RECORDING_FOREIGN, 0);
	enum recording_status status = read_at(reader, 0, bytes, CONTAINER_START_SIZE);
	if (status)
		return status;
	if (!container_start_decode(bytes, &size))
		return fail(reader, RECORDING_FOREIGN, 0);
	if (size < CONTAINER_HEADER_SIZE || size > sizeof bytes)
		return fail(reader, RECORDING_DAMAGED, 0);
	status = read_at(reader, 0, bytes, size);
	if (status)
		return status;
	if (!container_header_decode(&reader->header, bytes, size))
		return fail(reader, RECORDING_DAMAGED, 0);
	return check_header(reader);
}

/* ---- the list of sections ---- */

static enum recording_status add_section(struct reader *reader, const struct section *section)
{
	if (reader->count == reader->capacity) {
		size_t larger = reader->capacity ? 2 * reader->capacity : 64;
		struct section *sections = realloc(reader->sections, larger * sizeof *sections);
		if (!sections)
			return fail(reader, RECORDING_MEMORY, 0);
		reader->sections = sections;
		reader->capacity = larger;
	}
	reader->sections[reader->count++] = *section;
	return RECORDING_OK;
}

static uint64_t section_end(const struct section *section)
{
	return section->offset + SECTION_HEADER_SIZE + section->stored_size;
}

static enum recording_status read_section(struct reader *reader, uint64_t offset, struct section *section)
{
	uint8_t bytes[SECTION_HEADER_SIZE];
	enum recording_status status = read_at(reader, offset, bytes, sizeof bytes);

	if (status)
		return status;
	if (!section_header_decode(section, bytes))
		return fail(reader, RECORDING_DAMAGED, offset);
	section->offset = offset;
	if (section->stored_size > reader->size - offset - SECTION_HEADER_SIZE)
		return fail(reader, RECORDING_TRUNCATED, offset);
	return RECORDING_OK;
}

/* One section after the other, up to the index or to where the file is not whole. */
static enum recording_status scan(struct reader *reader)
{
	uint64_t offset = reader->header.size;
	struct section section;
	enum recording_status status;

	for (;;) {
		status = read_section(reader, offset, &section);
		if (status || section.type == SECTION_INDEX)
			break;
		status = add_section(reader, &section);
		if (status)
			return status;
		offset = section_end(&section);
	}
	if (status == RECORDING_SYSTEM)
		return status;
	reader->end = status ? reader->error : (struct recording_error){0};
	if (!status && section_end(&section) != reader->size)
		reader->end = (struct recording_error){
		        .status = RECORDING_MALFORMED, .offset = section_end(&section)};
	return RECORDING_OK;
}

/* Entries of an index lie before it, or the index is wrong. */
static bool add_entry(struct reader *reader, struct cursor *cursor, uint64_t index_offset)
{
	struct section section = {.offset = cursor_u64(cursor)};
	const uint8_t *header = cursor_bytes(cursor, SECTION_HEADER_SIZE);
	uint64_t offset = section.offset;

	if (!section_header_decode(&section, header))
		return false;
	section.offset = offset;
	return offset >= reader->header.size && offset <= index_offset - SECTION_HEADER_SIZE &&
	       section.stored_size <= index_offset - SECTION_HEADER_SIZE - offset &&
	       !add_section(reader, &section);
}

static bool find_index(struct reader *reader, struct section *index)
{
	uint8_t tail[INDEX_TAIL_SIZE];
	uint64_t offset;

	return reader->size >= reader->header.size + SECTION_HEADER_SIZE + sizeof tail &&
	       !read_at(reader, reader->size - sizeof tail, tail, sizeof tail) &&
	       index_tail_decode(&offset, tail) && offset >= reader->header.size &&
	       !read_section(reader, offset, index) && index->type == SECTION_INDEX &&
	       index->codec == CODEC_NONE && section_end(index) == reader->size &&
	       index->stored_size % INDEX_ENTRY_SIZE == INDEX_TAIL_SIZE;
}

/* Whatever is wrong with the index, the sections can be found without it. */
static bool read_index(struct reader *reader)
{
	struct section index;
	uint8_t *bytes;

	if (!find_index(reader, &index) || reader_load(reader, &index, &bytes))
		return false;
	struct cursor cursor = cursor_of(bytes, index.raw_size - INDEX_TAIL_SIZE);
	bool good = true;
	while (good && cursor_left(&cursor))
		good = add_entry(reader, &cursor, index.offset);
	free(bytes);
	if (!good)
		reader->count = 0;
	return good;
}

/* ---- opening ---- */

static enum recording_status open_file(struct reader *reader)
{
	struct stat status;

	if (reader->fd < 0 || fstat(reader->fd, &status))
		return fail_system(reader);
	if (!S_ISREG(status.st_mode))
		return fail(reader, RECORDING_NOT_REGULAR, 0);
	reader->size = (uint64_t)status.st_size;
	enum recording_status result = read_header(reader);
	if (result)
		return result;
	reader->indexed = read_index(reader);
	return reader->indexed ? RECORDING_OK : scan(reader);
}

enum recording_status reader_open_fd(struct reader *reader, int fd)
{
	*reader = (struct reader){.fd = fd, .limit = READER_DEFAULT_LIMIT};
	enum recording_status status = open_file(reader);
	if (status)
		reader_deinit(reader);
	return status;
}

enum recording_status reader_open(struct reader *reader, const char *path)
{
	/* a pipe without a writer must not keep us waiting */
	return reader_open_fd(reader, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

void reader_deinit(struct reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	reader->fd = -1;
	free(reader->sections);
	reader->sections = NULL;
	reader->count = reader->capacity = 0;
}

/* ---- sections ---- */

const struct section *reader_find(
        const struct reader *reader, enum section_type type, uint64_t id, const struct section *after)
{
	for (size_t i = after ? (size_t)(after - reader->sections) + 1 : 0; i < reader->count; i++)
		if (reader->sections[i].type == type && reader->sections[i].id == id)
			return &reader->sections[i];
	return NULL;
}

/* A zstd block of at least four bytes makes at most 128 KB: more than that is a lie. */
static bool frame_is_possible(const struct section *section, uint64_t size)
{
	return size >> 17 <= section->stored_size / 4;
}

static bool size_is_possible(const struct section *section)
{
	return section->codec == CODEC_NONE ? section->raw_size == section->stored_size
	                                    : frame_is_possible(section, section->raw_size);
}

static enum recording_status check_sizes(struct reader *reader, const struct section *section)
{
	if (section->codec > CODEC_SORTED)
		return reader_fail(reader, section, RECORDING_FEATURES);
	if (!size_is_possible(section))
		return reader_fail(reader, section, RECORDING_MALFORMED);
	if (section->raw_size > reader->limit)
		return reader_fail(reader, section, RECORDING_TOO_LARGE);
	return RECORDING_OK;
}

enum recording_status reader_load_stored(
        struct reader *reader, const struct section *section, uint8_t **bytes)
{
	if (section->stored_size > reader->limit)
		return reader_fail(reader, section, RECORDING_TOO_LARGE);
	*bytes = malloc(section->stored_size ? section->stored_size : 1);
	if (!*bytes)
		return reader_fail(reader, section, RECORDING_MEMORY);
	enum recording_status status =
	        read_at(reader, section->offset + SECTION_HEADER_SIZE, *bytes, section->stored_size);
	if (!status && !container_checksum_matches(*bytes, section->stored_size, section->checksum))
		status = reader_fail(reader, section, RECORDING_DAMAGED);
	if (status)
		free(*bytes);
	return status;
}

/* How large the frame of a section may be whose content is stored in another order: 0 for all others. */
static uint64_t reordered_limit(const struct section *section)
{
	switch (section->codec) {
	case CODEC_COLUMNS:
		return COLUMNS_SIZE_LIMIT(section->raw_size);
	case CODEC_SORTED:
		return SORTED_SIZE_LIMIT(section->raw_size);
	}
	return 0;
}

/* What frames, one behind the other up to the end of the bytes, say that they make; false: they are none. */
static bool size_of_frames(const uint8_t *bytes, size_t size, uint64_t *sum)
{
	for (*sum = 0; size;) {
		unsigned long long content = ZSTD_getFrameContentSize(bytes, size);
		size_t frame = ZSTD_findFrameCompressedSize(bytes, size);
		if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN ||
		        content > UINT64_MAX - *sum || ZSTD_isError(frame))
			return false;
		*sum += content;
		bytes += frame;
		size -= frame;
	}
	return true;
}

/* One frame that says its size, or several: that of the content, or what its other order makes of that. */
static enum recording_status decompress(struct reader *reader, const struct section *section,
        const uint8_t *stored, size_t *size, uint8_t **bytes)
{
	size_t stored_size = section->stored_size;
	uint64_t frames;
	bool good = size_of_frames(stored, stored_size, &frames) &&
	            (section->codec == CODEC_SORTED ||
	                    ZSTD_findFrameCompressedSize(stored, stored_size) == stored_size);

	if (frames <= reordered_limit(section) && frame_is_possible(section, frames))
		*size = frames;
	if (!good || frames != *size)
		return reader_fail(reader, section, RECORDING_COMPRESSION);
	if (*size > reader->limit)
		return reader_fail(reader, section, RECORDING_TOO_LARGE);
	*bytes = malloc(*size ? *size : 1);
	if (!*bytes)
		return reader_fail(reader, section, RECORDING_MEMORY);
	if (ZSTD_decompress(*bytes, *size, stored, stored_size) == *size)
		return RECORDING_OK;
	free(*bytes);
	return reader_fail(reader, section, RECORDING_COMPRESSION);
}

static enum recording_status merge(
        struct reader *reader, const struct section *section, uint8_t *stored, size_t size, uint8_t **bytes)
{
	enum recording_status status = RECORDING_OK;

	*bytes = malloc(section->raw_size ? section->raw_size : 1);
	if (!*bytes)
		status = RECORDING_MEMORY;
	else if (section->codec == CODEC_SORTED ? !sorted_merge(stored, size, *bytes, section->raw_size)
	                                        : !columns_merge(stored, size, *bytes, section->raw_size))
		status = RECORDING_MALFORMED;
	free(stored);
	if (!status)
		return status;
	free(*bytes);
	return reader_fail(reader, section, status);
}

enum recording_status reader_load(struct reader *reader, const struct section *section, uint8_t **bytes)
{
	uint8_t *stored;
	enum recording_status status = check_sizes(reader, section);

	if (!status)
		status = reader_load_stored(reader, section, &stored);
	if (status)
		return status;
	if (section->codec == CODEC_NONE) {
		*bytes = stored;
		return RECORDING_OK;
	}
	size_t size = section->raw_size;
	status = decompress(reader, section, stored, &size, bytes);
	free(stored);
	return !status && reordered_limit(section) ? merge(reader, section, *bytes, size, bytes) : status;
}
