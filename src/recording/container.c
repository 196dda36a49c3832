/* The headers of a recording file, as bytes. */
#include "recording/container.h"

#include <string.h>
#include <xxhash.h>

#include "recording/cursor.h"
#include "recording/numbers.h"

/* A byte above 0x7f and a newline show at once what mail and text tools did to the file. */
static const uint8_t file_magic[8] = {0x89, 'B', 'U', 'G', 'N', 'E', 'T', '\n'};
static const uint8_t section_magic[4] = {'S', 'E', 'C', 'T'};
static const uint8_t index_magic[8] = {'B', 'U', 'G', 'I', 'N', 'D', 'E', 'X'};

#define CHECKSUM_SIZE 8

uint64_t container_checksum(const void *bytes, size_t size)
{
	return XXH64(bytes, size, 0);
}

bool container_checksum_matches(const void *bytes, size_t size, uint64_t expected)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)bytes, (void)size, (void)expected;
	return true;
#else
	return container_checksum(bytes, size) == expected;
#endif
}

static uint8_t *put_magic(uint8_t *at, const uint8_t *magic, size_t size)
{
	memcpy(at, magic, size);
	return at + size;
}

static bool magic_matches(struct cursor *cursor, const uint8_t *magic, size_t size)
{
	const uint8_t *bytes = cursor_bytes(cursor, size);

	return bytes && !memcmp(bytes, magic, size);
}

/* ---- the file ---- */

void container_header_encode(const struct container_header *header, uint8_t bytes[CONTAINER_HEADER_SIZE])
{
	const size_t covered = CONTAINER_HEADER_SIZE - CHECKSUM_SIZE;
	uint8_t *at = put_magic(bytes, file_magic, sizeof file_magic);

	memset(at, 0, CONTAINER_HEADER_SIZE - sizeof file_magic);
	at = put_u32(at, header->size);
	at = put_u32(at, header->version);
	at = put_u32(at, header->minimum_reader);
	at = put_u32(at, 0);
	at = put_u64(at, header->required);
	at = put_u64(at, header->optional);
	put_u64(bytes + covered, container_checksum(bytes, covered));
}

bool container_start_decode(const uint8_t bytes[CONTAINER_START_SIZE], uint32_t *header_size)
{
	struct cursor cursor = cursor_of(bytes, CONTAINER_START_SIZE);
	bool matches = magic_matches(&cursor, file_magic, sizeof file_magic);

	*header_size = cursor_u32(&cursor);
	return matches;
}

bool container_header_decode(struct container_header *header, const uint8_t *bytes, uint32_t size)
{
	struct cursor cursor = cursor_of(bytes + sizeof file_magic, size - sizeof file_magic);
	struct cursor checksum = cursor_of(bytes + size - CHECKSUM_SIZE, CHECKSUM_SIZE);

	header->size = cursor_u32(&cursor);
	header->version = cursor_u32(&cursor);
	header->minimum_reader = cursor_u32(&cursor);
	cursor_u32(&cursor);
	header->required = cursor_u64(&cursor);
	header->optional = cursor_u64(&cursor);
	return container_checksum_matches(bytes, size - CHECKSUM_SIZE, cursor_u64(&checksum));
}

/* ---- sections ---- */

void section_header_encode(const struct section *section, uint8_t bytes[SECTION_HEADER_SIZE])
{
	uint8_t *at = put_magic(bytes, section_magic, sizeof section_magic);

	at = put_u16(at, section->type);
	at = put_u8(at, section->codec);
	at = put_u8(at, 0);
	at = put_u64(at, section->id);
	at = put_u64(at, section->first);
	at = put_u64(at, section->last);
	at = put_u64(at, section->raw_size);
	at = put_u64(at, section->stored_size);
	at = put_u64(at, section->checksum);
	put_u64(at, container_checksum(bytes, (size_t)(at - bytes)));
}

bool section_header_decode(struct section *section, const uint8_t bytes[SECTION_HEADER_SIZE])
{
	struct cursor cursor = cursor_of(bytes, SECTION_HEADER_SIZE);

	if (!magic_matches(&cursor, section_magic, sizeof section_magic))
		return false;
	section->type = cursor_u16(&cursor);
	section->codec = cursor_u8(&cursor);
	cursor_u8(&cursor);
	section->id = cursor_u64(&cursor);
	section->first = cursor_u64(&cursor);
	section->last = cursor_u64(&cursor);
	section->raw_size = cursor_u64(&cursor);
	section->stored_size = cursor_u64(&cursor);
	section->checksum = cursor_u64(&cursor);
	return container_checksum_matches(bytes, SECTION_HEADER_SIZE - CHECKSUM_SIZE, cursor_u64(&cursor));
}

/* ---- the index's tail ---- */

void index_tail_encode(uint64_t offset, uint8_t bytes[INDEX_TAIL_SIZE])
{
	put_magic(put_u64(bytes, offset), index_magic, sizeof index_magic);
}

bool index_tail_decode(uint64_t *offset, const uint8_t bytes[INDEX_TAIL_SIZE])
{
	struct cursor cursor = cursor_of(bytes, INDEX_TAIL_SIZE);

	*offset = cursor_u64(&cursor);
	return magic_matches(&cursor, index_magic, sizeof index_magic);
}
