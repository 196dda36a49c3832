#include "recording/meta.h"

#include <stdlib.h>
#include <string.h>

#include "recording/typed.h"

static void free_texts(char **texts)
{
	for (char **text = texts; text && *text; text++)
		free(*text);
	free(texts);
}

void meta_deinit(struct meta *meta)
{
	for (size_t i = 0; i < meta->count; i++) {
		free(meta->entries[i].key);
		free_texts(meta->entries[i].texts);
	}
	free(meta->entries);
	*meta = (struct meta){0};
}

/* ---- keys ---- */

static struct meta_entry *find(const struct meta *meta, const char *key)
{
	for (size_t i = 0; i < meta->count; i++)
		if (!strcmp(meta->entries[i].key, key))
			return &meta->entries[i];
	return NULL;
}

/* Takes the texts over, also when it fails. */
static bool set(struct meta *meta, const char *key, struct meta_entry value)
{
	struct meta_entry *entry = find(meta, key);

	if (!entry) {
		struct meta_entry *entries = realloc(meta->entries, (meta->count + 1) * sizeof *entries);
		if (entries)
			meta->entries = entries;
		value.key = entries ? strdup(key) : NULL;
		if (!value.key) {
			free_texts(value.texts);
			return false;
		}
		meta->entries[meta->count++] = value;
		return true;
	}
	free_texts(entry->texts);
	value.key = entry->key;
	*entry = value;
	return true;
}

bool meta_set_number(struct meta *meta, const char *key, uint64_t number)
{
	return set(meta, key, (struct meta_entry){.type = META_NUMBER, .number = number});
}

static bool set_texts(
        struct meta *meta, const char *key, enum meta_type type, const char *const *texts, uint32_t count)
{
	char **copies = calloc((size_t)count + 1, sizeof *copies);

	if (!copies)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		copies[i] = strdup(texts[i]);
		if (!copies[i]) {
			free_texts(copies);
			return false;
		}
	}
	return set(meta, key, (struct meta_entry){.type = type, .texts = copies, .count = count});
}

bool meta_set_text(struct meta *meta, const char *key, const char *text)
{
	return set_texts(meta, key, META_TEXT, &text, 1);
}

bool meta_set_texts(struct meta *meta, const char *key, const char *const *texts, uint32_t count)
{
	return set_texts(meta, key, META_TEXTS, texts, count);
}

bool meta_number(const struct meta *meta, const char *key, uint64_t *number)
{
	const struct meta_entry *entry = find(meta, key);

	if (!entry || entry->type != META_NUMBER)
		return false;
	*number = entry->number;
	return true;
}

const char *meta_text(const struct meta *meta, const char *key)
{
	const struct meta_entry *entry = find(meta, key);

	return entry && entry->type == META_TEXT ? entry->texts[0] : NULL;
}

char *const *meta_texts(const struct meta *meta, const char *key, uint32_t *count)
{
	const struct meta_entry *entry = find(meta, key);

	if (!entry || entry->type != META_TEXTS)
		return NULL;
	*count = entry->count;
	return entry->texts;
}

/* ---- bytes ---- */

static void encode_entry(const struct meta_entry *entry, struct buffer *buffer)
{
	buffer_u8(buffer, (uint8_t)entry->type);
	buffer_u8(buffer, (uint8_t)strlen(entry->key));
	buffer_bytes(buffer, entry->key, strlen(entry->key));
	if (entry->type == META_NUMBER) {
		buffer_u64(buffer, entry->number);
		return;
	}
	if (entry->type == META_TEXTS)
		buffer_u32(buffer, entry->count);
	for (uint32_t i = 0; i < entry->count; i++)
		buffer_sized(buffer, entry->texts[i], (uint32_t)strlen(entry->texts[i]));
}

void meta_encode(const struct meta *meta, struct buffer *buffer)
{
	buffer_u32(buffer, (uint32_t)meta->count);
	for (size_t i = 0; i < meta->count; i++)
		encode_entry(&meta->entries[i], buffer);
}

static enum recording_status decode_texts(struct cursor *cursor, uint32_t count, struct meta_entry *entry)
{
	/* each takes at least its size */
	if (count > cursor_left(cursor) / 4)
		return RECORDING_MALFORMED;
	entry->texts = calloc((size_t)count + 1, sizeof *entry->texts);
	if (!entry->texts)
		return RECORDING_MEMORY;
	for (; entry->count < count; entry->count++) {
		enum recording_status status =
		        typed_text(cursor, cursor_u32(cursor), &entry->texts[entry->count]);
		if (status)
			return status;
	}
	return RECORDING_OK;
}

static enum recording_status decode_value(struct cursor *cursor, struct meta_entry *entry)
{
	switch (entry->type) {
	case META_NUMBER:
		entry->number = cursor_u64(cursor);
		return cursor->state ? RECORDING_MALFORMED : RECORDING_OK;
	case META_TEXT:
		return decode_texts(cursor, 1, entry);
	case META_TEXTS:
		return decode_texts(cursor, cursor_u32(cursor), entry);
	}
	return RECORDING_MALFORMED;
}

static enum recording_status decode_entry(struct cursor *cursor, struct meta *meta)
{
	struct meta_entry entry = {.type = (enum meta_type)cursor_u8(cursor)};
	char *key;
	enum recording_status status = typed_text(cursor, cursor_u8(cursor), &key);

	if (status)
		return status;
	status = *key ? decode_value(cursor, &entry) : RECORDING_MALFORMED;
	if (status)
		free_texts(entry.texts);
	else if (!set(meta, key, entry))
		status = RECORDING_MEMORY;
	free(key);
	return status;
}

enum recording_status meta_decode(struct meta *meta, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = cursor_of(bytes, size);
	enum recording_status status = RECORDING_OK;
	uint32_t count = cursor_u32(&cursor);

	if (meta->count + count > META_MAXIMUM) /* keys are searched one by one */
		return RECORDING_MALFORMED;
	while (count-- && !status)
		status = decode_entry(&cursor, meta);
	if (!status && (cursor.state || cursor_left(&cursor)))
		status = RECORDING_MALFORMED;
	return status;
}

enum recording_status meta_write(struct writer *writer, const struct meta *meta)
{
	struct buffer buffer = {0};

	meta_encode(meta, &buffer);
	return typed_write(writer, SECTION_META, 0, &buffer);
}

static enum recording_status decode(void *meta, const uint8_t *bytes, size_t size)
{
	return meta_decode(meta, bytes, size);
}

enum recording_status meta_read(struct reader *reader, struct meta *meta)
{
	return typed_read_all(reader, SECTION_META, decode, meta);
}
