/*
 * The first code from a mapping of a file brings one piece for the whole mapping, so that
 * files cost nothing however much of them is run. Code that the file does not have there
 * (relocated, patched, made at run time) brings its bytes.
 *
 * What is known by bytes is kept by page. It lies on top of the extents, because a piece
 * of bytes is always younger than the extent under it, except when the file is noted
 * later: then these bytes are told once more.
 */
#include "record/code_view.h"

#include <stdlib.h>
#include <string.h>

struct code_page {
	uint64_t address;
	/* The mapping that the bytes came from: what is known of another one is not worth telling again. */
	uint64_t inode, origin;
	uint8_t bytes[CODE_PAGE];
	bool known[CODE_PAGE];
};

/* Who is about to run what; the same for all parts of it. */
struct runner {
	uint32_t thread;
	uint64_t position;
	struct memory *memory;
};

void code_view_deinit(struct code_view *view)
{
	for (uint32_t i = 0; i < view->pages.count; i++)
		free(view->pages.items[i]);
	vector_free(&view->pages);
	vector_free(&view->extents);
	index_deinit(&view->page_index);
	code_history_deinit(&view->news);
	vector_free(&view->gone);
	mapped_files_deinit(&view->files);
}

static void add_piece(
        struct code_view *view, const struct runner *runner, struct code_piece piece, bool replaces)
{
	uint32_t before = view->news.count;

	piece.thread = runner->thread;
	piece.position = runner->position;
	if (!code_history_add(&view->news, &piece))
		abort();
	view->count += view->news.count - before;
	if (replaces)
		view->replaced = view->count;
}

/* ---- bytes ---- */

static struct code_page *find_page(const struct code_view *view, uint64_t address)
{
	uint32_t found = index_find(&view->page_index, address & -CODE_PAGE);

	return found == INDEX_NONE ? NULL : view->pages.items[found];
}

static struct code_page *get_page(struct code_view *view, uint64_t address)
{
	struct code_page *page = find_page(view, address);

	if (page)
		return page;
	page = calloc(1, sizeof *page);
	if (!page)
		abort();
	page->address = address & -CODE_PAGE;
	index_add(&view->page_index, page->address, vector_push(&view->pages, page));
	return page;
}

static uint32_t first_behind(const struct code_view *view, uint64_t address);

static bool page_has_code(const struct code_page *page, uint64_t start, uint64_t end)
{
	uint64_t at = page->address;
	uint64_t from = start > at ? start - at : 0, to = end - at < CODE_PAGE ? end - at : CODE_PAGE;

	return memchr(page->known + from, true, to - from);
}

/* Is there code in [start, end), as far as is known? */
static bool has_code(const struct code_view *view, uint64_t start, uint64_t end)
{
	uint32_t extent = first_behind(view, start);

	if (extent < view->extents.count && view->extents.items[extent].start < end)
		return true;
	if ((end - start) / CODE_PAGE > view->pages.count) {
		for (uint32_t i = 0; i < view->pages.count; i++) {
			const struct code_page *page = view->pages.items[i];
			if (page->address < end && start < page->address + CODE_PAGE &&
			        page_has_code(page, start, end))
				return true;
		}
		return false;
	}
	for (uint64_t at = start & -CODE_PAGE; at < end; at += CODE_PAGE) {
		const struct code_page *page = find_page(view, at);
		if (page && page_has_code(page, start, end))
			return true;
	}
	return false;
}

/* Is there, or was there once? */
static bool is_known(const struct code_view *view, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < view->buried_count; i++) {
		if (view->buried[i].start < end && start < view->buried[i].end)
			return true;
	}
	return has_code(view, start, end);
}

static void add_bytes(struct code_view *view, const struct runner *runner, const struct mapping *mapping,
        uint64_t address, const uint8_t *bytes, uint32_t size)
{
	struct code_page *page = get_page(view, address);
	uint32_t offset = address % CODE_PAGE;
	bool replaces = is_known(view, address, address + size);

	page->inode = mapping ? mapping->inode : 0;
	page->origin = mapping && mapping->inode ? mapping->start - mapping->offset : 0;
	memcpy(page->bytes + offset, bytes, size);
	memset(page->known + offset, true, size);
	add_piece(view, runner,
	        (struct code_piece){
	                .address = address, .size = size, .file = EVENT_FILE_NONE, .bytes = bytes},
	        replaces);
}

/* ---- files ---- */

/* Index of the first extent that ends behind the address. */
static uint32_t first_behind(const struct code_view *view, uint64_t address)
{
	uint32_t low = 0, high = view->extents.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (view->extents.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct code_extent *find_extent(const struct code_view *view, uint64_t address)
{
	uint32_t i = first_behind(view, address);

	return i < view->extents.count && view->extents.items[i].start <= address ? &view->extents.items[i]
	                                                                          : NULL;
}

static struct code_extent cut(struct code_extent extent, uint64_t start, uint64_t end)
{
	extent.offset += start - extent.start;
	extent.start = start;
	extent.end = end;
	return extent;
}

/* The new extent, or NULL, replaces what others say about [start, end). */
static void replace_extents(
        struct code_view *view, uint64_t start, uint64_t end, const struct code_extent *new)
{
	struct code_view before = *view;

	memset(&view->extents, 0, sizeof view->extents);
	for (uint32_t i = 0; i < before.extents.count; i++) {
		struct code_extent old = before.extents.items[i];
		if (old.start < start)
			vector_push(&view->extents, cut(old, old.start, old.end < start ? old.end : start));
	}
	if (new)
		vector_push(&view->extents, *new);
	for (uint32_t i = 0; i < before.extents.count; i++) {
		struct code_extent old = before.extents.items[i];
		if (old.end > end)
			vector_push(&view->extents, cut(old, old.start > end ? old.start : end, old.end));
	}
	vector_free(&before.extents);
}

/* Code of this very mapping that the file does not have stays what it is: say so again, behind the file. */
static void add_known(
        struct code_view *view, const struct runner *runner, const struct code_page *page, uint64_t end)
{
	for (uint32_t i = 0, next; i < CODE_PAGE && page->address + i < end; i = next) {
		for (next = i + 1; next < CODE_PAGE && page->known[next] == page->known[i];)
			next++;
		if (page->known[i])
			add_piece(view, runner,
			        (struct code_piece){.address = page->address + i,
			                .size = next - i,
			                .file = EVENT_FILE_NONE,
			                .bytes = page->bytes + i},
			        true);
	}
}

static void settle_pages(struct code_view *view, const struct runner *runner,
        const struct code_extent *extent, const struct mapping *mapping)
{
	for (uint32_t i = 0; i < view->pages.count; i++) {
		struct code_page *page = view->pages.items[i];
		if (page->address < extent->start || page->address >= extent->end)
			continue;
		if (page->inode == mapping->inode && page->origin == mapping->start - mapping->offset)
			add_known(view, runner, page, extent->end);
		else
			memset(page->known, false, sizeof page->known);
	}
}

/* Up to the file's end: what a mapping shows behind it is not in the file. */
static struct code_extent extent_of(
        const struct code_view *view, const struct mapping *mapping, uint32_t file)
{
	uint64_t size = mapped_files_size(&view->files, file);
	uint64_t length = mapping->end - mapping->start;
	uint64_t left = size > mapping->offset ? size - mapping->offset : 0;

	return (struct code_extent){
	        .start = mapping->start,
	        .end = mapping->start + (length < left ? length : left),
	        .offset = mapping->offset,
	        .file = file,
	};
}

static bool extent_is_known(
        const struct code_view *view, uint64_t address, uint32_t file, const struct mapping *mapping)
{
	const struct code_extent *extent = find_extent(view, address);

	return extent && extent->file == file &&
	       extent->start - extent->offset == mapping->start - mapping->offset;
}

/* A file that is mapped there, has these bytes, and is news: one piece for all of the mapping. */
static bool add_file(struct code_view *view, const struct runner *runner, const struct mapping *mapping,
        uint64_t address, const uint8_t *bytes, uint32_t size)
{
	uint32_t file = mapped_files_find(&view->files, mapping);

	if (file == EVENT_FILE_NONE || extent_is_known(view, address, file, mapping))
		return false;
	struct code_extent extent = extent_of(view, mapping, file);
	if (address < extent.start || address + size > extent.end ||
	        !mapped_files_have(&view->files, file, extent.offset + (address - extent.start), bytes, size))
		return false;
	bool replaces = is_known(view, extent.start, extent.end);
	mapped_files_note(&view->files, file, &runner->memory->maps);
	replace_extents(view, extent.start, extent.end, &extent);
	add_piece(view, runner,
	        (struct code_piece){.address = extent.start,
	                .size = extent.end - extent.start,
	                .file = file,
	                .offset = extent.offset},
	        replaces);
	settle_pages(view, runner, &extent, mapping);
	return true;
}

/* ---- what goes ---- */

static void forget_page(struct code_view *view, uint32_t number)
{
	struct code_page *page = view->pages.items[number], *last = view->pages.items[--view->pages.count];

	index_remove(&view->page_index, page->address);
	if (page != last) {
		view->pages.items[number] = last;
		index_change(&view->page_index, last->address, number);
	}
	free(page);
}

static void forget_pages(struct code_view *view, uint64_t start, uint64_t end)
{
	if ((end - start) / CODE_PAGE < view->pages.count) {
		for (uint64_t at = start; at < end; at += CODE_PAGE) {
			uint32_t found = index_find(&view->page_index, at);
			if (found != INDEX_NONE)
				forget_page(view, found);
		}
		return;
	}
	for (uint32_t i = view->pages.count; i-- > 0;) {
		if (view->pages.items[i]->address >= start && view->pages.items[i]->address < end)
			forget_page(view, i);
	}
}

/* Two that are next to each other become one, with what lies between them: those that are closest. */
static void bury_closer(struct code_view *view)
{
	uint32_t best = 0;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i + 1 < view->buried_count; i++) {
		uint64_t between = view->buried[i + 1].start - view->buried[i].end;
		if (between < least) {
			least = between;
			best = i;
		}
	}
	view->buried[best].end = view->buried[best + 1].end;
	memmove(&view->buried[best + 1], &view->buried[best + 2],
	        (--view->buried_count - best - 1) * sizeof view->buried[0]);
}

static void bury(struct code_view *view, uint64_t start, uint64_t end)
{
	struct range *buried = view->buried;
	uint32_t first = 0, last;

	if (view->buried_count == CODE_VIEW_BURIED)
		bury_closer(view);
	while (first < view->buried_count && buried[first].end < start)
		first++;
	/* [first, last) touch it, and become one with it */
	for (last = first; last < view->buried_count && buried[last].start <= end; last++) {
		start = buried[last].start < start ? buried[last].start : start;
		end = buried[last].end > end ? buried[last].end : end;
	}
	memmove(&buried[first + 1], &buried[last], (view->buried_count - last) * sizeof *buried);
	view->buried_count += 1 - (last - first);
	buried[first] = (struct range){start, end};
}

void code_view_gone(struct code_view *view, uint64_t start, uint64_t end)
{
	if (!has_code(view, start, end))
		return;
	replace_extents(view, start, end, NULL);
	forget_pages(view, start, end);
	bury(view, start, end);
	if (!view->keeps_gone)
		return;
	/* Who made a keyframe before this needs what was there, who makes one from now on does not. */
	code_history_skip(&view->news, 1);
	view->replaced = ++view->count;
	vector_push(&view->gone, (struct code_gone){start, end, view->count});
	mapped_files_gone(&view->files, start, end, view->count);
}

/* ---- all of it ---- */

/* How many bytes from the start, and from the end, are what the view says. Within one page. */
static void find_difference(struct code_view *view, uint64_t address, const uint8_t *bytes, uint32_t size,
        uint32_t *first, uint32_t *last)
{
	const struct code_extent *extent = find_extent(view, address);
	const struct code_page *page = find_page(view, address);
	uint32_t offset = address % CODE_PAGE, in_file = 0;
	uint8_t there[CODE_PAGE];

	if (extent && address < extent->end) {
		uint64_t left = extent->end - address;
		in_file = mapped_files_read(&view->files, extent->file,
		        extent->offset + (address - extent->start), there,
		        size < left ? size : (uint32_t)left);
	}
	*first = size;
	*last = 0;
	if (!page && in_file == size && memcmp(there, bytes, size) == 0)
		return;
	for (uint32_t i = 0; i < size; i++) {
		bool known = page && page->known[offset + i];
		if (known ? page->bytes[offset + i] == bytes[i] : i < in_file && there[i] == bytes[i])
			continue;
		if (*first == size)
			*first = i;
		*last = i;
	}
}

static void run_part(struct code_view *view, const struct runner *runner, uint64_t address,
        const uint8_t *bytes, uint32_t size)
{
	uint32_t first, last;

	find_difference(view, address, bytes, size, &first, &last);
	if (first == size)
		return;
	const struct mapping *mapping = memory_mapping(runner->memory, address);
	if (mapping && add_file(view, runner, mapping, address, bytes, size)) {
		find_difference(view, address, bytes, size, &first, &last);
		if (first == size)
			return;
	}
	add_bytes(view, runner, mapping, address + first, bytes + first, last - first + 1);
}

void code_view_run(struct code_view *view, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size)
{
	const struct runner runner = {thread, position, memory};

	for (uint32_t part; size; size -= part, bytes += part, address += part) {
		part = CODE_PAGE - address % CODE_PAGE;
		if (part > size)
			part = size;
		run_part(view, &runner, address, bytes, part);
	}
}
