#include "replay/code_source.h"

#include <stdlib.h>
#include <string.h>

#include "record/index.h"
#include "record/vector.h"

#define PAGE 4096ul
#define LONG_PIECE (64 * PAGE) /* pieces of this size and more are not listed by page */

/* The pieces that have something on a page, in ascending order. */
struct source_page {
	uint64_t page;
	VECTOR(uint32_t) pieces;
};

struct code_source {
	const struct code_history *history;
	const struct code_files *files;
	struct index page_index;
	VECTOR(struct source_page) pages;
	VECTOR(uint32_t) long_pieces;
	bool *changes; /* for each piece */
	uint32_t thread, later;
};

static const struct code_piece *piece_at(const struct code_source *source, uint32_t number)
{
	return &source->history->pieces[number];
}

static bool covers(const struct code_piece *piece, uint64_t address)
{
	return address - piece->address < piece->size;
}

/* A byte of a piece; what a mapping has behind the end of its file is zero. */
static uint8_t byte_of(const struct code_source *source, const struct code_piece *piece, uint64_t address)
{
	uint64_t at = address - piece->address;

	if (piece->bytes)
		return piece->bytes[at];
	const struct code_file *file = &source->files->files[piece->file];
	at += piece->offset;
	return at < file->size ? file->bytes[at] : 0;
}

static void copy_bytes(const struct code_source *source, const struct code_piece *piece, uint64_t address,
        uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_of(source, piece, address + i);
}

/* ---- which pieces differ ---- */

/* Two pieces of one file at the same distance are the same code. */
static bool same_mapping(const struct code_piece *a, const struct code_piece *b)
{
	return a->file == b->file && a->file != EVENT_FILE_NONE &&
	       a->address - a->offset == b->address - b->offset;
}

static void compare_pieces(struct code_source *source, uint32_t earlier, uint32_t later)
{
	const struct code_piece *a = piece_at(source, earlier), *b = piece_at(source, later);
	uint64_t start = a->address > b->address ? a->address : b->address;
	uint64_t a_end = a->address + a->size, b_end = b->address + b->size;
	uint64_t end = a_end < b_end ? a_end : b_end;

	if (start >= end || same_mapping(a, b) || (source->changes[earlier] && source->changes[later]))
		return;
	for (uint64_t at = start; at < end; at++) {
		if (byte_of(source, a, at) != byte_of(source, b, at)) {
			source->changes[earlier] = source->changes[later] = true;
			return;
		}
	}
}

/* ---- making it ---- */

static struct source_page *page_of(struct code_source *source, uint64_t address, bool create)
{
	uint64_t page = address / PAGE;
	uint32_t number = index_find(&source->page_index, page);

	if (number == INDEX_NONE) {
		if (!create)
			return NULL;
		number = vector_push(&source->pages, (struct source_page){.page = page});
		index_add(&source->page_index, page, number);
	}
	return &source->pages.items[number];
}

static void add_to_pages(struct code_source *source, uint32_t number)
{
	const struct code_piece *piece = piece_at(source, number);
	uint64_t last = (piece->address + piece->size - 1) / PAGE;

	for (uint64_t page = piece->address / PAGE; page <= last; page++) {
		struct source_page *found = page_of(source, page * PAGE, true);
		for (uint32_t i = 0; i < found->pieces.count; i++)
			compare_pieces(source, found->pieces.items[i], number);
		vector_push(&found->pieces, number);
	}
}

static void add_piece(struct code_source *source, uint32_t number)
{
	const struct code_piece *piece = piece_at(source, number);

	for (uint32_t i = 0; i < source->long_pieces.count; i++)
		compare_pieces(source, source->long_pieces.items[i], number);
	if (piece->size < LONG_PIECE) {
		add_to_pages(source, number);
		return;
	}
	for (uint32_t i = 0; i < source->pages.count; i++) {
		struct source_page *page = &source->pages.items[i];
		for (uint32_t k = 0; k < page->pieces.count; k++)
			compare_pieces(source, page->pieces.items[k], number);
	}
	vector_push(&source->long_pieces, number);
}

struct code_source *code_source_create(const struct code_history *history, const struct code_files *files)
{
	struct code_source *source = calloc(1, sizeof *source);

	if (!source)
		return NULL;
	source->history = history;
	source->files = files;
	source->changes = calloc(history->count + 1, sizeof *source->changes);
	if (!source->changes) {
		free(source);
		return NULL;
	}
	for (uint32_t i = 0; i < history->count; i++)
		add_piece(source, i);
	return source;
}

void code_source_destroy(struct code_source *source)
{
	for (uint32_t i = 0; i < source->pages.count; i++)
		vector_free(&source->pages.items[i].pieces);
	vector_free(&source->pages);
	vector_free(&source->long_pieces);
	index_deinit(&source->page_index);
	free(source->changes);
	free(source);
}

/* ---- the view ---- */

const struct code_history *code_source_history(const struct code_source *source)
{
	return source->history;
}

uint32_t code_source_later(
        const struct code_source *source, uint32_t from, uint32_t thread, uint64_t position)
{
	uint32_t i = from;

	while (i < source->history->count &&
	        (piece_at(source, i)->thread != thread || piece_at(source, i)->position <= position))
		i++;
	return i;
}

void code_source_advance(struct code_source *source, uint64_t position)
{
	source->later = code_source_later(source, source->later, source->thread, position);
}

void code_source_set(struct code_source *source, uint32_t thread, uint32_t later)
{
	source->thread = thread;
	source->later = later;
}

uint32_t code_source_current(const struct code_source *source)
{
	return source->later;
}

bool code_source_piece_changes(const struct code_source *source, uint32_t piece)
{
	return source->changes[piece];
}

bool code_source_changes(const struct code_source *source, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last; i++) {
		if (source->changes[i])
			return true;
	}
	return false;
}

/* ---- reading ---- */

struct choice {
	uint32_t before; /* the latest piece before `later` + 1, or 0 */
	uint32_t behind; /* the first one of another thread from there on + 1, or 0 */
	uint64_t end;    /* up to here the choice is the same */
};

static void consider(const struct code_source *source, uint32_t number, uint64_t address, struct choice *choice)
{
	const struct code_piece *piece = piece_at(source, number);

	if (!covers(piece, address)) {
		if (piece->address > address && piece->address < choice->end)
			choice->end = piece->address;
		return;
	}
	if (piece->address + piece->size < choice->end)
		choice->end = piece->address + piece->size;
	if (number < source->later) {
		if (number + 1 > choice->before)
			choice->before = number + 1;
	} else if (piece->thread != source->thread && (!choice->behind || number + 1 < choice->behind)) {
		choice->behind = number + 1;
	}
}

/* The piece for the address, or NULL, and how far it is the one, at most to the end of the page. */
static const struct code_piece *choose(struct code_source *source, uint64_t address, uint64_t *end)
{
	struct choice choice = {.end = (address & -PAGE) + PAGE};
	const struct source_page *page = page_of(source, address, false);

	for (uint32_t i = 0; i < source->long_pieces.count; i++)
		consider(source, source->long_pieces.items[i], address, &choice);
	for (uint32_t i = 0; page && i < page->pieces.count; i++)
		consider(source, page->pieces.items[i], address, &choice);
	*end = choice.end;
	uint32_t found = choice.before ? choice.before : choice.behind;
	return found ? piece_at(source, found - 1) : NULL;
}

size_t code_source_read(void *context, uint64_t address, uint8_t *bytes, size_t size)
{
	struct code_source *source = context;
	size_t done = 0;

	while (done < size) {
		uint64_t end;
		const struct code_piece *piece = choose(source, address + done, &end);
		if (!piece)
			break;
		size_t part = end - (address + done);
		if (part > size - done)
			part = size - done;
		copy_bytes(source, piece, address + done, bytes + done, part);
		done += part;
	}
	return done;
}

bool code_source_has_page(void *context, uint64_t address)
{
	struct code_source *source = context;
	uint64_t end;

	if (page_of(source, address, false))
		return true;
	return choose(source, address, &end) != NULL;
}

uint32_t code_source_file(struct code_source *source, uint64_t address, uint64_t *offset)
{
	uint64_t end;
	const struct code_piece *piece = choose(source, address, &end);

	if (!piece || piece->file == EVENT_FILE_NONE)
		return EVENT_FILE_NONE;
	*offset = address - piece->address + piece->offset;
	return piece->file;
}
