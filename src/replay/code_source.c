#include "replay/code_source.h"

#include <stdlib.h>
#include <string.h>

#include "record/index.h"
#include "record/vector.h"

#define PAGE       4096ul
#define LONG_PIECE (64 * PAGE) /* pieces of this size and more are not listed by page */

/* A page with pieces that are not long. For each byte the number of a piece + 1, or 0. */
struct source_page {
	uint64_t page;
	uint32_t owners[PAGE]; /* the latest that is in force */
	uint32_t firsts[PAGE]; /* the first of all */
};

struct code_source {
	const struct code_history *history;
	const struct code_files *files;
	struct index page_index;
	VECTOR(struct source_page *) pages;
	VECTOR(uint32_t) long_pieces;
	bool *changes;    /* for each piece: it is not what was there before */
	bool *replaced;   /* another one takes its place later */
	uint32_t current; /* pieces that are in force */
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
	uint64_t at = address - piece->address;

	if (piece->bytes) {
		memcpy(bytes, piece->bytes + at, size);
		return;
	}
	const struct code_file *file = &source->files->files[piece->file];
	at += piece->offset;
	size_t part = at >= file->size ? 0 : size < file->size - at ? size : file->size - at;
	memcpy(bytes, file->bytes + at, part);
	memset(bytes + part, 0, size - part);
}

/* ---- owners ---- */

/* Two pieces of one file at the same distance are the same code. */
static bool same_mapping(const struct code_piece *a, const struct code_piece *b)
{
	return a->file == b->file && a->file != EVENT_FILE_NONE &&
	       a->address - a->offset == b->address - b->offset;
}

/* What one piece has is not what was there before: code made of that must go when it comes. */
static void compare_byte(struct code_source *source, uint32_t earlier, uint32_t later, uint64_t address)
{
	const struct code_piece *a = piece_at(source, earlier), *b = piece_at(source, later);

	if (same_mapping(a, b) || byte_of(source, a, address) == byte_of(source, b, address))
		return;
	source->changes[later] = source->replaced[earlier] = true;
}

/* The piece becomes the owner of its bytes on the page; `compare`: with those that were. */
static void paint_page(struct code_source *source, struct source_page *page, uint32_t number, bool compare)
{
	const struct code_piece *piece = piece_at(source, number);
	uint64_t start = page->page * PAGE, end = start + PAGE;
	uint64_t from = piece->address > start ? piece->address : start;
	uint64_t to = piece->address + piece->size < end ? piece->address + piece->size : end;

	for (uint64_t at = from; at < to; at++) {
		uint32_t *owner = &page->owners[at - start];
		if (compare && *owner)
			compare_byte(source, *owner - 1, number, at);
		else if (compare)
			page->firsts[at - start] = number + 1;
		*owner = number + 1;
	}
}

static struct source_page *page_of(struct code_source *source, uint64_t address, bool create);

static void paint(struct code_source *source, uint32_t number, bool compare)
{
	const struct code_piece *piece = piece_at(source, number);
	uint64_t first = piece->address / PAGE, last = (piece->address + piece->size - 1) / PAGE;

	if (last - first < source->pages.count) {
		for (uint64_t page = first; page <= last; page++) {
			struct source_page *found = page_of(source, page * PAGE, false);
			if (found)
				paint_page(source, found, number, compare);
		}
		return;
	}
	for (uint32_t i = 0; i < source->pages.count; i++) {
		struct source_page *page = source->pages.items[i];
		if (page->page >= first && page->page <= last)
			paint_page(source, page, number, compare);
	}
}

static void paint_up_to(struct code_source *source, uint32_t pieces, bool compare)
{
	if (pieces < source->current) {
		for (uint32_t i = 0; i < source->pages.count; i++)
			memset(source->pages.items[i]->owners, 0, sizeof source->pages.items[i]->owners);
		source->current = 0;
	}
	while (source->current < pieces)
		paint(source, source->current++, compare);
}

/* ---- making it ---- */

static struct source_page *page_of(struct code_source *source, uint64_t address, bool create)
{
	uint64_t page = address / PAGE;
	uint32_t number = index_find(&source->page_index, page);

	if (number == INDEX_NONE) {
		if (!create)
			return NULL;
		struct source_page *made = calloc(1, sizeof *made);
		if (!made)
			abort();
		made->page = page;
		number = vector_push(&source->pages, made);
		index_add(&source->page_index, page, number);
	}
	return source->pages.items[number];
}

static void list_piece(struct code_source *source, uint32_t number)
{
	const struct code_piece *piece = piece_at(source, number);
	uint64_t last = (piece->address + piece->size - 1) / PAGE;

	if (piece->size >= LONG_PIECE) {
		vector_push(&source->long_pieces, number);
		return;
	}
	for (uint64_t page = piece->address / PAGE; page <= last; page++)
		page_of(source, page * PAGE, true);
}

/* Long pieces over long ones, on pages that have no others. */
static void compare_long(struct code_source *source, uint32_t earlier, uint32_t later)
{
	const struct code_piece *a = piece_at(source, earlier), *b = piece_at(source, later);
	uint64_t start = a->address > b->address ? a->address : b->address;
	uint64_t a_end = a->address + a->size, b_end = b->address + b->size;
	uint64_t end = a_end < b_end ? a_end : b_end;

	for (uint64_t at = start; at < end && !same_mapping(a, b); at++)
		compare_byte(source, earlier, later, at);
}

struct code_source *code_source_create(const struct code_history *history, const struct code_files *files)
{
	struct code_source *source = calloc(1, sizeof *source);

	if (!source)
		return NULL;
	source->history = history;
	source->files = files;
	source->changes = calloc(history->count + 1, sizeof *source->changes);
	source->replaced = calloc(history->count + 1, sizeof *source->replaced);
	if (!source->changes || !source->replaced) {
		free(source->changes);
		free(source->replaced);
		free(source);
		return NULL;
	}
	for (uint32_t i = 0; i < history->count; i++)
		list_piece(source, i);
	paint_up_to(source, history->count, true);
	for (uint32_t i = 0; i < source->long_pieces.count; i++) {
		for (uint32_t k = 0; k < i; k++)
			compare_long(source, source->long_pieces.items[k], source->long_pieces.items[i]);
	}
	return source;
}

void code_source_destroy(struct code_source *source)
{
	for (uint32_t i = 0; i < source->pages.count; i++)
		free(source->pages.items[i]);
	vector_free(&source->pages);
	vector_free(&source->long_pieces);
	index_deinit(&source->page_index);
	free(source->changes);
	free(source->replaced);
	free(source);
}

/* ---- the view ---- */

uint32_t code_source_kept(const struct code_source *source, uint32_t pieces)
{
	return code_history_index(source->history, pieces);
}

void code_source_set(struct code_source *source, uint32_t pieces)
{
	paint_up_to(source, pieces < source->history->count ? pieces : source->history->count, false);
}

uint32_t code_source_current(const struct code_source *source)
{
	return source->current;
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

static uint32_t owner_of(const struct source_page *page, unsigned at)
{
	return page->owners[at] ? page->owners[at] : page->firsts[at];
}

/* On a page that only long pieces have something of, of which there are few. */
static const struct code_piece *choose_long(const struct code_source *source, uint64_t address, uint64_t *end)
{
	const struct code_piece *chosen = NULL;

	*end = (address & -PAGE) + PAGE;
	for (uint32_t i = 0; i < source->long_pieces.count; i++) {
		uint32_t number = source->long_pieces.items[i];
		const struct code_piece *piece = piece_at(source, number);
		uint64_t edge = covers(piece, address) ? piece->address + piece->size : piece->address;
		if (edge > address && edge < *end)
			*end = edge;
		if (covers(piece, address) && (!chosen || number < source->current))
			chosen = piece;
	}
	return chosen;
}

/* The piece for the address, or NULL, and how far it is the one, at most to the end of the page. */
static const struct code_piece *choose(struct code_source *source, uint64_t address, uint64_t *end)
{
	const struct source_page *page = page_of(source, address, false);

	if (!page)
		return choose_long(source, address, end);
	unsigned at = address % PAGE, last = at;
	uint32_t owner = owner_of(page, at);
	while (last < PAGE && owner_of(page, last) == owner)
		last++;
	*end = address - at + last;
	return owner ? piece_at(source, owner - 1) : NULL;
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

void code_source_read_known(
        struct code_source *source, uint64_t address, uint8_t *bytes, uint8_t *known, size_t size)
{
	for (size_t done = 0, part; done < size; done += part) {
		uint64_t end;
		const struct code_piece *piece = choose(source, address + done, &end);
		part = end - (address + done) < size - done ? end - (address + done) : size - done;
		for (size_t i = done; piece && i < done + part; i++) {
			if (known[i])
				continue;
			copy_bytes(source, piece, address + i, bytes + i, 1);
			known[i] = 1;
		}
	}
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

bool code_source_is_replaced(void *context, uint64_t address, size_t size)
{
	struct code_source *source = context;

	for (uint64_t at = address, end; at < address + size; at = end) {
		const struct code_piece *piece = choose(source, at, &end);
		if (piece && source->replaced[piece - source->history->pieces])
			return true;
	}
	return false;
}
