#include "record/kept_code.h"

#include <stdlib.h>
#include <string.h>

#include "record/index.h"
#include "record/vector.h"

#define PAGE       4096u
#define SOME_COUNT 1024u
#define SOME_BYTES (UINT64_C(1) << 20)

void kept_code_deinit(struct kept_code *code)
{
	code_history_deinit(&code->history);
	vector_free(&code->gone);
	vector_free(&code->mappings);
}

static void add_piece(struct code_history *history, const struct code_piece *piece)
{
	if (!code_history_add(history, piece))
		abort();
}

void kept_code_add(struct kept_code *code, const struct code_news *news)
{
	const struct code_history *pieces = news->pieces;

	for (uint32_t i = 0; i < news->gone_count; i++)
		vector_push(&code->gone, news->gone[i]);
	for (uint32_t i = 0; i < news->mapping_count; i++)
		vector_push(&code->mappings, news->mappings[i]);
	uint32_t first = code->history.next;
	for (uint32_t i = 0; i < pieces->count; i++) {
		code_history_skip(&code->history, first + pieces->pieces[i].number - code->history.next);
		add_piece(&code->history, &pieces->pieces[i]);
	}
	code_history_skip(&code->history, first + pieces->next - code->history.next);
}

void kept_code_add_mappings(const struct kept_code *code, struct codelog *log)
{
	for (uint32_t i = 0; i < code->mappings.count; i++) {
		struct codelog_file *file = codelog_find(log, code->mappings.items[i].file);
		if (file && !codelog_add_mapping(file, &code->mappings.items[i].mapping))
			abort();
	}
}

bool kept_code_grew(const struct kept_code *code)
{
	return code->history.count > 2 * code->least_count + SOME_COUNT ||
	       code->history.byte_count > 2 * code->least_bytes + SOME_BYTES;
}

uint64_t kept_code_size(const struct kept_code *code)
{
	return code->history.byte_count + code->history.count * sizeof(struct code_piece) +
	       code->gone.count * sizeof(struct code_gone) +
	       code->mappings.count * sizeof(struct gone_mapping);
}

/* ---- what later pieces cover ---- */

struct covered_page {
	uint8_t bytes[PAGE / 8]; /* a bit for each */
};

/* Pieces that are within a page byte by byte, the others as a list, since there are few. */
struct coverage {
	struct index page_index;
	VECTOR(struct covered_page) pages;
	VECTOR(const struct code_piece *) long_pieces;
};

static void coverage_deinit(struct coverage *coverage)
{
	index_deinit(&coverage->page_index);
	vector_free(&coverage->pages);
	vector_free(&coverage->long_pieces);
}

static bool is_long(const struct code_piece *piece)
{
	return piece->address % PAGE + piece->size > PAGE;
}

static bool is_inside(const struct code_piece *piece, const struct code_piece *other)
{
	return piece->address >= other->address &&
	       piece->address + piece->size <= other->address + other->size;
}

static bool is_covered(const struct coverage *coverage, const struct code_piece *piece)
{
	for (uint32_t i = 0; i < coverage->long_pieces.count; i++) {
		if (is_inside(piece, coverage->long_pieces.items[i]))
			return true;
	}
	uint32_t found = is_long(piece) ? INDEX_NONE
	                                : index_find(&coverage->page_index, piece->address & -(uint64_t)PAGE);
	if (found == INDEX_NONE)
		return false;
	const struct covered_page *page = &coverage->pages.items[found];
	for (uint32_t i = 0; i < piece->size; i++) {
		uint32_t at = (uint32_t)(piece->address % PAGE) + i;
		if (!(page->bytes[at / 8] >> at % 8 & 1))
			return false;
	}
	return true;
}

static void cover(struct coverage *coverage, const struct code_piece *piece)
{
	uint64_t address = piece->address & -(uint64_t)PAGE;

	if (is_long(piece)) {
		vector_push(&coverage->long_pieces, piece);
		return;
	}
	uint32_t found = index_find(&coverage->page_index, address);
	if (found == INDEX_NONE) {
		found = vector_push(&coverage->pages, (struct covered_page){{0}});
		index_add(&coverage->page_index, address, found);
	}
	struct covered_page *page = &coverage->pages.items[found];
	for (uint32_t i = 0; i < piece->size; i++) {
		uint32_t at = (uint32_t)(piece->address % PAGE) + i;
		page->bytes[at / 8] |= (uint8_t)(1u << at % 8);
	}
}

/* Was the piece gone when there were `low` of them? */
static bool is_gone(const struct kept_code *code, const struct code_piece *piece, uint32_t low)
{
	for (uint32_t i = code->gone.count; i-- > 0;) {
		const struct code_gone *gone = &code->gone.items[i];
		if (gone->as_of <= piece->number)
			break; /* they are in their order */
		if (gone->as_of <= low && piece->address >= gone->start &&
		        piece->address + piece->size <= gone->end)
			return true;
	}
	return false;
}

/* Of the first `end` pieces, those that no later one of them covers as a whole, and that were there as of
 * `low`. */
static void mark_visible(const struct kept_code *code, uint32_t end, uint32_t low, bool *marks)
{
	const struct code_history *history = &code->history;
	struct coverage coverage = {0};

	for (uint32_t i = end; i-- > 0;) {
		const struct code_piece *piece = &history->pieces[i];
		if (is_covered(&coverage, piece) || is_gone(code, piece, low))
			continue;
		marks[i] = true;
		cover(&coverage, piece);
	}
	coverage_deinit(&coverage);
}

/* ---- dropping ---- */

static int compare_needs(const void *a, const void *b)
{
	uint32_t left = ((const struct code_need *)a)->low, right = ((const struct code_need *)b)->low;

	return (left > right) - (left < right);
}

/*
 * Needs that touch become one. What is visible as of the later one's low is visible as of the
 * earlier one's, or lies in between and is kept anyway.
 */
static uint32_t merge(struct code_need *needs, uint32_t count)
{
	uint32_t merged = 0;

	qsort(needs, count, sizeof *needs, compare_needs);
	for (uint32_t i = 0; i < count; i++) {
		if (needs[i].low > needs[i].high)
			continue;
		if (!merged || needs[i].low > needs[merged - 1].high)
			needs[merged++] = needs[i];
		else if (needs[i].high > needs[merged - 1].high)
			needs[merged - 1].high = needs[i].high;
	}
	return merged;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct code_piece *x = *(const struct code_piece *const *)a,
	                        *y = *(const struct code_piece *const *)b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Is there still a piece that went then? */
static bool has_pieces(
        const struct code_piece *const *by_address, uint32_t count, const struct code_gone *gone)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (by_address[middle]->address < gone->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < count && by_address[low]->address < gone->end; low++) {
		if (by_address[low]->number < gone->as_of)
			return true;
	}
	return false;
}

/* What went and has no pieces any more is forgotten, with its mappings. */
static void forget_gone(struct kept_code *code)
{
	const struct code_history *history = &code->history;
	const struct code_piece **by_address = malloc((history->count + 1) * sizeof *by_address);
	uint32_t kept = 0, kept_mappings = 0, mapping = 0;

	if (!by_address)
		abort();
	for (uint32_t i = 0; i < history->count; i++)
		by_address[i] = &history->pieces[i];
	qsort(by_address, history->count, sizeof *by_address, compare_addresses);
	for (uint32_t i = 0; i < code->gone.count; i++) {
		struct code_gone gone = code->gone.items[i];
		bool stays = has_pieces(by_address, history->count, &gone);
		for (; mapping < code->mappings.count && code->mappings.items[mapping].as_of <= gone.as_of;
		        mapping++) {
			if (stays)
				code->mappings.items[kept_mappings++] = code->mappings.items[mapping];
		}
		if (stays)
			code->gone.items[kept++] = gone;
	}
	code->gone.count = kept;
	code->mappings.count = kept_mappings;
	free(by_address);
}

void kept_code_drop(struct kept_code *code, struct code_need *needs, uint32_t count)
{
	struct code_history *old = &code->history, new = {0};
	bool *marks = calloc(old->count + 1, sizeof *marks);

	if (!marks)
		abort();
	count = merge(needs, count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = code_history_index(old, needs[i].low);
		uint32_t last = code_history_index(old, needs[i].high);
		mark_visible(code, first, needs[i].low, marks);
		memset(marks + first, true, last - first);
	}
	for (uint32_t i = 0; i < old->count; i++) {
		if (!marks[i])
			continue;
		code_history_skip(&new, old->pieces[i].number - new.next);
		add_piece(&new, &old->pieces[i]);
	}
	code_history_skip(&new, old->next - new.next);
	code_history_deinit(old);
	*old = new;
	free(marks);
	forget_gone(code);
	code->least_count = old->count;
	code->least_bytes = old->byte_count;
}
