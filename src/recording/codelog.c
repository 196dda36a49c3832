#include "recording/codelog.h"

#include <stdlib.h>
#include <string.h>

#include "recording/typed.h"

#define FLAG_CHECKSUM 1

void codelog_deinit(struct codelog *log)
{
	for (uint32_t i = 0; i < log->count; i++) {
		free(log->files[i].path);
		free(log->files[i].mappings);
	}
	free(log->files);
	*log = (struct codelog){0};
}

/* ---- the list ---- */

struct codelog_file *codelog_find(const struct codelog *log, uint32_t number)
{
	return number < log->count ? &log->files[number] : NULL;
}

/* Room grows in powers of two, which the count tells. */
static bool is_full(uint32_t count)
{
	return !(count & (count - 1));
}

static void *grow(void *items, uint32_t count, size_t size)
{
	return realloc(items, (count ? 2 * (size_t)count : 1) * size);
}

bool codelog_add_mapping(struct codelog_file *file, const struct codelog_mapping *mapping)
{
	if (is_full(file->mapping_count)) {
		struct codelog_mapping *mappings =
		        grow(file->mappings, file->mapping_count, sizeof *mappings);
		if (!mappings)
			return false;
		file->mappings = mappings;
	}
	file->mappings[file->mapping_count++] = *mapping;
	return true;
}

/* The file without its mappings. */
static struct codelog_file *append(struct codelog *log, const struct codelog_file *file)
{
	struct codelog_file copy = *file;

	if (is_full(log->count)) {
		struct codelog_file *files = grow(log->files, log->count, sizeof *files);
		if (!files)
			return NULL;
		log->files = files;
	}
	copy.number = log->count;
	copy.mappings = NULL;
	copy.mapping_count = 0;
	copy.path = strdup(file->path);
	if (!copy.path)
		return NULL;
	log->files[log->count] = copy;
	return &log->files[log->count++];
}

bool codelog_add(struct codelog *log, const struct codelog_file *file)
{
	struct codelog_file *to = codelog_find(log, file->number);

	if (!to)
		to = append(log, file);
	if (to && file->has_checksum) {
		to->has_checksum = true;
		to->checksum = file->checksum;
	}
	for (uint32_t i = 0; to && i < file->mapping_count; i++)
		if (!codelog_add_mapping(to, &file->mappings[i]))
			return false;
	return to != NULL;
}

/* ---- bytes ---- */

static void encode_mapping(const struct codelog_mapping *mapping, struct buffer *buffer)
{
	buffer_u64(buffer, mapping->address);
	buffer_u64(buffer, mapping->length);
	buffer_u64(buffer, mapping->offset);
	buffer_u64(buffer, mapping->order);
	buffer_u32(buffer, mapping->protection);
}

static void encode_file(const struct codelog_file *file, struct buffer *buffer)
{
	buffer_u32(buffer, file->number);
	buffer_u32(buffer, file->has_checksum ? FLAG_CHECKSUM : 0);
	buffer_u64(buffer, file->device);
	buffer_u64(buffer, file->inode);
	buffer_u64(buffer, file->size);
	buffer_u64(buffer, (uint64_t)file->modified);
	buffer_u64(buffer, file->has_checksum ? file->checksum : 0);
	buffer_sized(buffer, file->build_id.bytes, file->build_id.size);
	buffer_sized(buffer, file->path, (uint32_t)strlen(file->path));
	buffer_u32(buffer, file->mapping_count);
	for (uint32_t i = 0; i < file->mapping_count; i++)
		encode_mapping(&file->mappings[i], buffer);
}

/* Each file's record is preceded by its size: readers skip what later versions add at its end. */
void codelog_encode(const struct codelog *log, struct buffer *buffer)
{
	buffer_u32(buffer, log->count);
	for (uint32_t i = 0; i < log->count; i++) {
		struct buffer record = {0};
		encode_file(&log->files[i], &record);
		buffer->failed |= record.failed;
		buffer_sized(buffer, record.bytes, (uint32_t)record.size);
		buffer_deinit(&record);
	}
}

static enum recording_status decode_mappings(struct cursor *cursor, struct codelog_file *file)
{
	for (uint32_t left = cursor_u32(cursor); left; left--) {
		struct codelog_mapping mapping = {
		        .address = cursor_u64(cursor),
		        .length = cursor_u64(cursor),
		        .offset = cursor_u64(cursor),
		        .order = cursor_u64(cursor),
		        .protection = cursor_u32(cursor),
		};
		if (cursor->state)
			return RECORDING_MALFORMED;
		if (!codelog_add_mapping(file, &mapping))
			return RECORDING_MEMORY;
	}
	return cursor->state ? RECORDING_MALFORMED : RECORDING_OK;
}

static enum recording_status decode_build_id(struct cursor *cursor, struct build_id *id)
{
	id->size = cursor_u32(cursor);
	const uint8_t *bytes = id->size <= sizeof id->bytes ? cursor_bytes(cursor, id->size) : NULL;
	if (!bytes)
		return RECORDING_MALFORMED;
	memcpy(id->bytes, bytes, id->size);
	return RECORDING_OK;
}

static enum recording_status decode_file(struct cursor *cursor, struct codelog_file *file)
{
	file->number = cursor_u32(cursor);
	file->has_checksum = cursor_u32(cursor) & FLAG_CHECKSUM;
	file->device = cursor_u64(cursor);
	file->inode = cursor_u64(cursor);
	file->size = cursor_u64(cursor);
	file->modified = (int64_t)cursor_u64(cursor);
	file->checksum = cursor_u64(cursor);
	enum recording_status status = decode_build_id(cursor, &file->build_id);
	if (!status)
		status = typed_text(cursor, cursor_u32(cursor), &file->path);
	return status ? status : decode_mappings(cursor, file);
}

static enum recording_status decode_record(struct cursor *cursor, struct codelog *log)
{
	struct codelog_file file = {0};
	uint32_t size = cursor_u32(cursor);
	const uint8_t *bytes = cursor_bytes(cursor, size);

	if (!bytes)
		return RECORDING_MALFORMED;
	struct cursor record = cursor_of(bytes, size);
	enum recording_status status = decode_file(&record, &file);
	if (!status && file.number > log->count)
		status = RECORDING_MALFORMED;
	if (!status && !codelog_add(log, &file))
		status = RECORDING_MEMORY;
	free(file.path);
	free(file.mappings);
	return status;
}

enum recording_status codelog_decode(struct codelog *log, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = cursor_of(bytes, size);
	enum recording_status status = RECORDING_OK;

	for (uint32_t left = cursor_u32(&cursor); left && !status; left--)
		status = decode_record(&cursor, log);
	if (!status && (cursor.state || cursor_left(&cursor)))
		status = RECORDING_MALFORMED;
	return status;
}

enum recording_status codelog_write(struct writer *writer, const struct codelog *log)
{
	struct buffer buffer = {0};

	codelog_encode(log, &buffer);
	return typed_write(writer, SECTION_CODELOG, 0, &buffer);
}

static enum recording_status decode(void *log, const uint8_t *bytes, size_t size)
{
	return codelog_decode(log, bytes, size);
}

enum recording_status codelog_read(struct reader *reader, struct codelog *log)
{
	return typed_read_all(reader, SECTION_CODELOG, decode, log);
}
