#include "recording/columns.h"

#include "recording/decode.h"
#include "recording/parts.h"

enum column {
	COLUMN_HEADS,     /* the first byte of every event */
	COLUMN_POSITIONS, /* of patches, as the other parts are */
	COLUMN_LINES,
	COLUMN_FORMS,  /* which words, and in which form */
	COLUMN_OTHERS, /* the other kinds: a size, and what is behind the first byte */
	COLUMN_WORDS,  /* the last one: its size is what is left */
	COLUMN_COUNT,
};

/* ---- the parts of a patch ---- */

static const uint8_t *form_bytes(struct cursor *cursor, unsigned head, size_t *size)
{
	const uint8_t *at = cursor->at;

	switch (head & 3) {
	case WORDS_ALL:
		*size = form_code_bytes(0xff);
		break;
	case WORDS_SOME:
		*size = 1 + (cursor_left(cursor) ? form_code_bytes(*at) : 0);
		break;
	default:
		*size = 1;
	}
	return cursor_bytes(cursor, *size);
}

static size_t word_size(unsigned form, size_t place_size)
{
	return form == FORM_DICTIONARY ? place_size : form == FORM_RAW ? 8 : form;
}

/* How many bytes the words take that have these forms. */
static size_t words_size(unsigned head, const uint8_t *forms, size_t place_size)
{
	unsigned mask = 0xff;
	uint32_t codes = 0;
	size_t size = 0;

	if ((head & 3) == WORDS_ONE)
		return word_size(*forms & FORM_MASK, place_size);
	if ((head & 3) == WORDS_SOME)
		mask = *forms++;
	memcpy(&codes, forms, form_code_bytes(mask));
	for (; mask; mask &= mask - 1, codes >>= FORM_BITS)
		size += word_size(codes & FORM_MASK, place_size);
	return size;
}

/* ---- to columns ---- */

static void split_patch(struct cursor *cursor, struct buffer columns[COLUMN_COUNT])
{
	const uint8_t *part;
	size_t size;
	unsigned head = cursor_u8(cursor);

	buffer_u8(&columns[COLUMN_HEADS], (uint8_t)head);
	part = varint_bytes(cursor, &size);
	buffer_bytes(&columns[COLUMN_POSITIONS], part, size);
	part = line_bytes(cursor, head, &size);
	buffer_bytes(&columns[COLUMN_LINES], part, size);
	part = form_bytes(cursor, head, &size);
	buffer_bytes(&columns[COLUMN_FORMS], part, size);
	buffer_bytes(&columns[COLUMN_WORDS], cursor->at, cursor_left(cursor));
}

static void split_other(const uint8_t *event, size_t size, struct buffer columns[COLUMN_COUNT])
{
	buffer_u8(&columns[COLUMN_HEADS], *event);
	put_size(&columns[COLUMN_OTHERS], size - 1);
	buffer_bytes(&columns[COLUMN_OTHERS], event + 1, size - 1);
}

static bool split_events(const uint8_t *events, size_t size, struct buffer columns[COLUMN_COUNT])
{
	struct decoder decoder;
	struct event event;
	enum decode_status status;

	decoder_init(&decoder, events, size);
	while ((status = decoder_next(&decoder, &event)) == DECODE_EVENT) {
		const uint8_t *at = events + decoder.event_offset;
		struct cursor cursor = cursor_of(at, (size_t)(decoder.cursor.at - at));
		if (event.kind == EVENT_PATCH)
			split_patch(&cursor, columns);
		else
			split_other(at, cursor_left(&cursor), columns);
	}
	return status == DECODE_END;
}

bool columns_split(const uint8_t *events, size_t size, struct buffer *to)
{
	struct buffer columns[COLUMN_COUNT] = {0};
	bool done = split_events(events, size, columns);

	for (unsigned i = 0; i < COLUMN_COUNT - 1; i++)
		put_size(to, columns[i].size);
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		done &= !columns[i].failed;
		buffer_bytes(to, columns[i].bytes, columns[i].size);
		buffer_deinit(&columns[i]);
	}
	return done && !to->failed;
}

/* ---- from columns ---- */

static void merge_patch(
        struct merged *merged, struct cursor columns[COLUMN_COUNT], unsigned head, size_t place_size)
{
	const uint8_t *part, *forms;
	size_t size;

	if ((head & 3) > WORDS_SOME) {
		merged->failed = true;
		return;
	}
	part = varint_bytes(&columns[COLUMN_POSITIONS], &size);
	put_part(merged, part, size);
	part = line_bytes(&columns[COLUMN_LINES], head, &size);
	put_part(merged, part, size);
	forms = form_bytes(&columns[COLUMN_FORMS], head, &size);
	put_part(merged, forms, size);
	if (merged->failed)
		return;
	size = words_size(head, forms, place_size);
	put_part(merged, cursor_bytes(&columns[COLUMN_WORDS], size), size);
}

static void merge_other(
        struct merged *merged, struct cursor columns[COLUMN_COUNT], unsigned head, size_t *place_size)
{
	uint64_t size = cursor_varint(&columns[COLUMN_OTHERS]);
	const uint8_t *rest = cursor_bytes(&columns[COLUMN_OTHERS], size);

	put_part(merged, rest, size);
	if (rest && head == EVENT_KEYFRAME && size > KEYFRAME_DICTIONARY) {
		const struct dictionary dictionary = {.bits = rest[KEYFRAME_DICTIONARY]};
		*place_size = dictionary_index_bytes(&dictionary);
	}
}

static bool open_columns(const uint8_t *bytes, size_t size, struct cursor columns[COLUMN_COUNT])
{
	struct cursor all = cursor_of(bytes, size);
	uint64_t sizes[COLUMN_COUNT - 1];

	for (unsigned i = 0; i < COLUMN_COUNT - 1; i++)
		sizes[i] = cursor_varint(&all);
	for (unsigned i = 0; i < COLUMN_COUNT - 1; i++) {
		const uint8_t *column = cursor_bytes(&all, sizes[i]);
		if (!column)
			return false;
		columns[i] = cursor_of(column, sizes[i]);
	}
	columns[COLUMN_WORDS] = cursor_of(all.at, cursor_left(&all));
	return true;
}

bool columns_merge(const uint8_t *bytes, size_t size, uint8_t *events, size_t events_size)
{
	struct cursor columns[COLUMN_COUNT];
	struct merged merged = {events, events + events_size, false};
	size_t place_size = 1;

	if (!open_columns(bytes, size, columns))
		return false;
	while (cursor_left(&columns[COLUMN_HEADS]) && !merged.failed) {
		uint8_t head = cursor_u8(&columns[COLUMN_HEADS]);
		put_part(&merged, &head, 1);
		if (head & PATCH_HEAD)
			merge_patch(&merged, columns, head, place_size);
		else
			merge_other(&merged, columns, head, &place_size);
	}
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		if (columns[i].state != CURSOR_GOOD || cursor_left(&columns[i]))
			return false;
	}
	return !merged.failed && merged.at == merged.end;
}
