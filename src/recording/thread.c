#include "recording/thread.h"

#include <string.h>

#include "recording/typed.h"

void thread_record_encode(const struct thread_record *record, struct buffer *buffer)
{
	buffer_u32(buffer, record->id);
	buffer_u32(buffer, (uint32_t)record->tid);
	buffer_u32(buffer, record->parent);
	buffer_u32(buffer, record->end_kind);
	buffer_u32(buffer, (uint32_t)record->end_status);
	buffer_u64(buffer, record->start_time);
	buffer_u64(buffer, record->end_time);
	buffer_u64(buffer, record->first_position);
	buffer_u64(buffer, record->last_position);
	buffer_bytes(buffer, record->name, sizeof record->name);
}

/* Later versions may add to its end. */
enum recording_status thread_record_decode(struct thread_record *record, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = cursor_of(bytes, size);

	record->id = cursor_u32(&cursor);
	record->tid = (int32_t)cursor_u32(&cursor);
	record->parent = cursor_u32(&cursor);
	record->end_kind = cursor_u32(&cursor);
	record->end_status = (int32_t)cursor_u32(&cursor);
	record->start_time = cursor_u64(&cursor);
	record->end_time = cursor_u64(&cursor);
	record->first_position = cursor_u64(&cursor);
	record->last_position = cursor_u64(&cursor);
	const uint8_t *name = cursor_bytes(&cursor, sizeof record->name);
	if (!name || name[sizeof record->name - 1])
		return RECORDING_MALFORMED;
	memcpy(record->name, name, sizeof record->name);
	return RECORDING_OK;
}

enum recording_status thread_record_write(struct writer *writer, const struct thread_record *record)
{
	struct buffer buffer = {0};

	thread_record_encode(record, &buffer);
	return typed_write(writer, SECTION_THREAD, record->id, &buffer);
}

static enum recording_status decode(void *record, const uint8_t *bytes, size_t size)
{
	return thread_record_decode(record, bytes, size);
}

enum recording_status thread_record_read(
        struct reader *reader, const struct section *section, struct thread_record *record)
{
	enum recording_status status = typed_read(reader, section, decode, record);

	if (!status && record->id != section->id)
		status = reader_fail(reader, section, RECORDING_MALFORMED);
	return status;
}
