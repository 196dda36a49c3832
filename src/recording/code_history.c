#include "recording/code_history.h"

#include <stdlib.h>
#include <string.h>

#include "recording/typed.h"

#define SECTION_SIZE (UINT32_C(4) << 20)  /* content of a section, up to one more piece */
#define BLOCK_SIZE   (UINT32_C(64) << 10) /* of bytes that are kept together */

/* ---- the list ---- */

struct code_bytes {
	struct code_bytes *next;
	size_t used, size;
	uint8_t bytes[];
};

void code_history_deinit(struct code_history *history)
{
	while (history->bytes) {
		struct code_bytes *next = history->bytes->next;
		free(history->bytes);
		history->bytes = next;
	}
	free(history->pieces);
	*history = (struct code_history){0};
}

/* Room for these bytes, which stay where they are until the end. */
static uint8_t *allocate(struct code_history *history, size_t size)
{
	struct code_bytes *block = history->bytes;

	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		block = malloc(sizeof *block + room);
		if (!block)
			return NULL;
		*block = (struct code_bytes){.next = history->bytes, .size = room};
		history->bytes = block;
	}
	block->used += size;
	history->byte_count += size;
	return block->bytes + block->used - size;
}

/* Room grows in powers of two, which the count tells. */
static bool make_room(struct code_history *history)
{
	if (history->count & (history->count - 1))
		return true;
	size_t larger = history->count ? 2 * (size_t)history->count : 1;
	struct code_piece *pieces = realloc(history->pieces, larger * sizeof *pieces);
	if (!pieces)
		return false;
	history->pieces = pieces;
	return true;
}

static bool append(struct code_history *history, struct code_piece piece)
{
	if (!make_room(history))
		return false;
	if (piece.file == EVENT_FILE_NONE) {
		uint8_t *bytes = allocate(history, piece.size);
		if (!bytes)
			return false;
		memcpy(bytes, piece.bytes, piece.size);
		piece.bytes = bytes;
		piece.offset = 0;
	} else {
		piece.bytes = NULL;
	}
	piece.number = history->next++;
	history->pieces[history->count++] = piece;
	return true;
}

void code_history_skip(struct code_history *history, uint32_t count)
{
	history->next += count;
}

bool code_history_add(struct code_history *history, const struct code_piece *piece)
{
	struct code_piece part = *piece;

	if (piece->file != EVENT_FILE_NONE)
		return append(history, part);
	for (uint64_t done = 0; done < piece->size; done += part.size) {
		part.address = piece->address + done;
		part.bytes = piece->bytes + done;
		part.size = piece->size - done;
		if (part.size > CODE_PIECE_MAXIMUM)
			part.size = CODE_PIECE_MAXIMUM;
		if (!append(history, part))
			return false;
	}
	return true;
}

/* ---- search ---- */

uint32_t code_history_index(const struct code_history *history, uint32_t number)
{
	uint32_t low = 0, high = history->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (history->pieces[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool covers(const struct code_piece *piece, uint64_t address)
{
	return address - piece->address < piece->size;
}

static uint32_t first_later(const struct code_history *history, uint32_t thread, uint64_t position)
{
	uint32_t i = 0;

	while (i < history->count &&
	        (history->pieces[i].thread != thread || history->pieces[i].position <= position))
		i++;
	return i;
}

const struct code_piece *code_history_find(
        const struct code_history *history, uint32_t thread, uint64_t position, uint64_t address)
{
	uint32_t later = first_later(history, thread, position);

	for (uint32_t i = later; i-- > 0;)
		if (covers(&history->pieces[i], address))
			return &history->pieces[i];
	for (uint32_t i = later; i < history->count; i++)
		if (history->pieces[i].thread != thread && covers(&history->pieces[i], address))
			return &history->pieces[i];
	return NULL;
}

/* ---- bytes ---- */

static void encode_piece(const struct code_piece *piece, struct buffer *buffer)
{
	buffer_u32(buffer, piece->thread);
	buffer_u64(buffer, piece->position);
	buffer_u64(buffer, piece->address);
	buffer_u64(buffer, piece->size);
	buffer_u32(buffer, piece->file);
	if (piece->file == EVENT_FILE_NONE)
		buffer_bytes(buffer, piece->bytes, piece->size);
	else
		buffer_u64(buffer, piece->offset);
}

/* A piece of no size stands for those that are left out. */
static void encode_gap(uint32_t left_out, struct buffer *buffer)
{
	encode_piece(&(struct code_piece){.address = left_out, .file = EVENT_FILE_NONE}, buffer);
}

/* Pieces from `first` on, until there are none left or the content is large enough; returns the next one. */
static uint32_t encode_some(
        const struct code_history *history, uint32_t first, size_t enough, struct buffer *buffer)
{
	size_t count_offset = buffer->size;
	uint32_t i = first, count = 0, next = first ? history->pieces[first - 1].number + 1 : 0;

	buffer_u32(buffer, 0);
	for (; i < history->count && !buffer->failed && buffer->size < enough; i++) {
		const struct code_piece *piece = &history->pieces[i];
		if (piece->number != next) {
			encode_gap(piece->number - next, buffer);
			count++;
		}
		encode_piece(piece, buffer);
		count++;
		next = piece->number + 1;
	}
	if (!buffer->failed)
		memcpy(buffer->bytes + count_offset, &count, sizeof count);
	return i;
}

void code_history_encode(const struct code_history *history, struct buffer *buffer)
{
	encode_some(history, 0, SIZE_MAX, buffer);
}

enum recording_status code_history_write(struct writer *writer, const struct code_history *history)
{
	enum recording_status status = RECORDING_OK;

	for (uint32_t next = 0; next < history->count && !status;) {
		struct buffer buffer = {0};
		next = encode_some(history, next, SECTION_SIZE, &buffer);
		status = typed_write(writer, SECTION_CODE, 0, &buffer);
	}
	return status;
}

/* Neither the addresses nor the offsets may go around the end of 64 bits. */
static bool is_possible(const struct code_piece *piece)
{
	if (!piece->size || piece->address > UINT64_MAX - piece->size)
		return false;
	return piece->file == EVENT_FILE_NONE ? piece->size <= CODE_PIECE_MAXIMUM
	                                      : piece->offset <= UINT64_MAX - piece->size;
}

static enum recording_status decode_piece(struct cursor *cursor, struct code_history *history)
{
	struct code_piece piece = {
	        .thread = cursor_u32(cursor),
	        .position = cursor_u64(cursor),
	        .address = cursor_u64(cursor),
	        .size = cursor_u64(cursor),
	        .file = cursor_u32(cursor),
	};

	if (piece.file == EVENT_FILE_NONE)
		piece.bytes = cursor_bytes(cursor, piece.size);
	else
		piece.offset = cursor_u64(cursor);
	if (cursor->state)
		return RECORDING_MALFORMED;
	if (!piece.size && piece.file == EVENT_FILE_NONE && piece.address && !piece.thread &&
	        !piece.position && piece.address <= UINT32_MAX - history->next) {
		code_history_skip(history, (uint32_t)piece.address);
		return RECORDING_OK;
	}
	if (!is_possible(&piece))
		return RECORDING_MALFORMED;
	return append(history, piece) ? RECORDING_OK : RECORDING_MEMORY;
}

enum recording_status code_history_decode(struct code_history *history, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = cursor_of(bytes, size);
	enum recording_status status = RECORDING_OK;

	for (uint32_t left = cursor_u32(&cursor); left && !status; left--)
		status = decode_piece(&cursor, history);
	if (!status && (cursor.state || cursor_left(&cursor)))
		status = RECORDING_MALFORMED;
	return status;
}

static enum recording_status decode(void *history, const uint8_t *bytes, size_t size)
{
	return code_history_decode(history, bytes, size);
}

enum recording_status code_history_read(struct reader *reader, struct code_history *history)
{
	const struct section *section = NULL;
	enum recording_status status = RECORDING_OK;
	uint64_t total = 0;

	while (!status && (section = reader_find(reader, SECTION_CODE, 0, section))) {
		total += section->raw_size > reader->limit ? reader->limit : section->raw_size;
		status = total > reader->limit ? reader_fail(reader, section, RECORDING_TOO_LARGE)
		                               : typed_read(reader, section, decode, history);
	}
	return status;
}
