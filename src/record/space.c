/*
 * Making, copying and discarding spaces. See space.h for what one is, and
 * place.c, link.c and regions.c for what happens in it.
 */
#include "record/space_private.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t next_id = 1;

uint64_t space_plan(struct segment_layout *layouts, unsigned count, uint64_t threads, uint64_t code_size,
        uint64_t reserved_code, uint64_t logs_size)
{
	uint64_t file = 0, directory = code_size / 2, records = code_size * 2;
	uint64_t spare = (reserved_code - code_size) / 2 * 7; /* code, directory and records */

	for (unsigned i = 0; i < count; i++) {
		struct segment_layout *layout = &layouts[i];
		layout->file = file;
		layout->code = LAYOUT_THREADS + threads * THREAD_STRIDE;
		layout->code_size = code_size;
		layout->directory = layout->code + code_size;
		layout->directory_size = directory;
		layout->records = layout->directory + layout->directory_size;
		layout->records_size = records;
		layout->logs = layout->records + layout->records_size;
		layout->logs_size = i == 0 ? logs_size : 0;
		layout->size = layout->logs + layout->logs_size + spare;
		file += layout->size;
	}
	return file;
}

struct info *space_info(const struct space *space, unsigned segment)
{
	return (struct info *)(space->segments[segment].memory + LAYOUT_INFO);
}

/* Components the kernel enabled beyond what we offer must be kept out of the program's xsave areas. */
static uint64_t needed_xstate_mask(uint64_t offered)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return ((uint64_t)high << 32 | low) & ~offered ? offered : 0;
}

static bool is_amd(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx;
}

/* Where translated code leaves to: the stub itself, or veneers in segments that are far from it. */
static int make_routines(struct space *space, unsigned number)
{
	struct space_segment *segment = &space->segments[number];
	const struct segment_layout *first = &space->segments[0].layout;

	for (unsigned i = 0; i < ROUTINE_COUNT; i++) {
		uint64_t address = first->base + space->header.routines[i];
		struct translation veneer;
		uint32_t code;
		if (number == 0) {
			segment->routines[i] = address;
			continue;
		}
		int error = translate_veneer(i, first->base + LAYOUT_THREADS, address, &veneer);
		if (error)
			return error;
		error = place(space, number, &veneer, &code);
		translation_free(&veneer);
		if (error)
			return error;
		segment->routines[i] = code_address(segment, code);
	}
	return 0;
}

static int make_segment(struct space *space, unsigned number)
{
	struct space_segment *segment = &space->segments[number];
	struct info *info = (struct info *)(segment->memory + LAYOUT_INFO);
	uint64_t *table = (uint64_t *)(segment->memory + LAYOUT_TABLE);

	if (!segment->chains)
		segment->chains = malloc(BRANCH_TABLES * BRANCH_TABLE_ENTRIES * sizeof *segment->chains);
	if (!segment->chains)
		return -ENOMEM;
	memset(segment->chains, 0, BRANCH_TABLE_ENTRIES * sizeof *segment->chains);
	segment->chained = 0;
	segment->spread = false;
	for (unsigned i = 0; i < BRANCH_TABLES; i++)
		info->table_base[i] = (segment->layout.base + LAYOUT_TABLE) / 8;
	int error = make_routines(space, number);
	info->miss = segment->routines[ROUTINE_MISS];
	for (unsigned i = 0; !error && i < BRANCH_TABLE_ENTRIES; i++)
		table[i] = segment->routines[ROUTINE_MISS];
	return error;
}

/* Maps the memfd; the caller fills in the segments' memory. */
static struct space *space_map(int memfd, uint64_t size)
{
	struct space *space = calloc(1, sizeof *space);

	if (!space)
		return NULL;
	space->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
	if (space->memory == MAP_FAILED) {
		free(space);
		return NULL;
	}
	space->known_filter = calloc(1, KNOWN_FILTER_BYTES);
	if (!space->known_filter)
		abort();
	space->memory_size = size;
	space->memfd = memfd;
	space->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	return space;
}

struct space *space_create(int memfd, const struct segment_layout *layouts, unsigned count, const void *stub,
        const struct stub_header *header, uint64_t vectors)
{
	uint64_t size = layouts[count - 1].file + layouts[count - 1].size;
	struct space *space = space_map(memfd, size);

	if (!space)
		return NULL;
	space->xstate_mask = needed_xstate_mask(vectors);
	space->wide_vectors = vectors & VECTORS_AVX512;
	space->loop_is_fast = is_amd();
	space->segment_count = count;
	space->header = *header;
	memcpy(space->memory, stub, header->size);
	for (unsigned i = 0; i < count; i++) {
		space->segments[i].layout = layouts[i];
		space->segments[i].memory = space->memory + layouts[i].file;
	}
	for (unsigned i = 0; i < count; i++) {
		int error = make_segment(space, i);
		if (error) {
			space_destroy(space);
			errno = -error;
			return NULL;
		}
	}
	return space;
}

static void copy_segment(struct space_segment *to, const struct space_segment *from)
{
	const struct segment_layout *layout = &from->layout;
	uint8_t *memory = to->memory;

	to->memory = memory;
	to->allocated = 0;
	uint64_t tables = from->spread ? BRANCH_TABLES : 1;
	memcpy(memory + LAYOUT_INFO, from->memory + LAYOUT_INFO,
	        LAYOUT_TABLE - LAYOUT_INFO + tables * BRANCH_TABLE_BYTES);
	memcpy(memory + layout->code, from->memory + layout->code, from->code_used);
	memcpy(memory + layout->directory, from->memory + layout->directory,
	        from->directory_count * sizeof(struct code_range));
	memcpy(memory + layout->records, from->memory + layout->records,
	        from->records_used * sizeof(struct placed_record));
	to->chains = malloc(BRANCH_TABLES * BRANCH_TABLE_ENTRIES * sizeof *to->chains);
	if (!to->chains)
		abort();
	memcpy(to->chains, from->chains, tables * BRANCH_TABLE_ENTRIES * sizeof *to->chains);
}

struct space *space_clone(const struct space *from, int memfd)
{
	struct space *mapped = space_map(memfd, from->memory_size);
	if (!mapped)
		return NULL;

	struct space *space = malloc(sizeof *space);
	if (!space)
		abort();
	*space = *from;
	space->id = mapped->id;
	space->memory = mapped->memory;
	space->patterns = NULL;
	space->known_filter = mapped->known_filter;
	memcpy(space->known_filter, from->known_filter, KNOWN_FILTER_BYTES);
	space->memfd = memfd;
	space->users = 0;
	space->counters = (struct space_counters){0};
	free(mapped);
	for (unsigned i = 0; i < space->segment_count; i++) {
		space->segments[i].memory = space->memory + from->segments[i].layout.file;
		copy_segment(&space->segments[i], &from->segments[i]);
	}
	index_copy(&space->entry_index, &from->entry_index);
	index_copy(&space->page_index, &from->page_index);
	vector_unshare(&space->entries);
	vector_unshare(&space->sites);
	vector_unshare(&space->thunks);
	vector_unshare(&space->bridges);
	vector_unshare(&space->regions);
	vector_unshare(&space->region_entries);
	vector_unshare(&space->sources);
	vector_unshare(&space->source_bytes);
	vector_unshare(&space->pages);
	vector_unshare(&space->page_uses);
	vector_unshare(&space->probes);
	vector_unshare(&space->stops);
	vector_unshare(&space->steps);
	return space;
}

/* Nothing is made of any page now. Of those that were watched, or cannot be, this stays known. */
static void forget_pages(struct space *space)
{
	uint32_t kept = 0;

	index_deinit(&space->page_index);
	for (uint32_t i = 0; i < space->pages.count; i++) {
		struct space_page *page = &space->pages.items[i];
		page->uses = 0;
		if (page->watch == PAGE_FREE && !page->was_watched && !page->self_check)
			continue;
		index_add(&space->page_index, page->page, kept);
		space->pages.items[kept++] = *page;
	}
	space->pages.count = kept;
}

int space_reset(struct space *space)
{
	int error = 0;

	index_deinit(&space->entry_index);
	memset(space->known_filter, 0, KNOWN_FILTER_BYTES);
	space->entries.count = space->sites.count = space->thunks.count = space->bridges.count = 0;
	space->regions.count = space->region_entries.count = space->sources.count = 0;
	space->source_bytes.count = space->page_uses.count = space->steps.count = 0;
	space->ahead_first = space->ahead_end = space->asked = space->expected = 0;
	forget_pages(space);
	for (unsigned i = 0; i < space->segment_count; i++) {
		struct space_segment *segment = &space->segments[i];
		segment->code_used = segment->directory_count = segment->records_used = 0;
		__atomic_store_n(&space_info(space, i)->directory_count, 0, __ATOMIC_SEQ_CST);
	}
	for (unsigned i = 0; i < space->segment_count && !error; i++)
		error = make_segment(space, i);
	space->exhausted = false;
	space->counters.resets++;
	return error;
}

void space_destroy(struct space *space)
{
	for (unsigned i = 0; i < space->segment_count; i++)
		free(space->segments[i].chains);
	index_deinit(&space->entry_index);
	index_deinit(&space->page_index);
	vector_free(&space->entries);
	vector_free(&space->sites);
	vector_free(&space->thunks);
	vector_free(&space->bridges);
	vector_free(&space->regions);
	vector_free(&space->region_entries);
	vector_free(&space->sources);
	vector_free(&space->source_bytes);
	vector_free(&space->pages);
	vector_free(&space->page_uses);
	vector_free(&space->probes);
	vector_free(&space->stops);
	vector_free(&space->steps);
	free_patterns(space);
	free(space->known_filter);
	munmap(space->memory, space->memory_size);
	close(space->memfd);
	free(space);
}
