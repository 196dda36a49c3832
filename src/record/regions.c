/*
 * Regions: placed translations and the program bytes they came from. When those
 * bytes may have changed, the region goes dormant: nothing leads to it any more.
 * It is kept, because programs that generate code tend to open a page, change
 * one function and close it again; the others come back to life when their bytes
 * turn out to be the same.
 *
 * How code on a page is kept true:
 *
 *   not writable               the stub tells of every change of mappings
 *   writable, private          watched: write permission taken away, the fault tells
 *   written too often, or by
 *   its own code, or shared    self-checking code: compares its source at every block
 */
#include "record/library.h"
#include "record/space_private.h"
#include "target/feed.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAULTS_BEFORE_SELF_CHECK 64
#define MAX_INSTRUCTIONS         128
#define INSTRUCTION_BYTES        15
#define FORESIGHT                1024 /* requests of earlier processes to look ahead */

/* How code on a page is to be kept true. */
enum code_mode { CODE_UNREADABLE, CODE_PLAIN, CODE_PROTECT, CODE_SELF_CHECK };

/* ---- pages ---- */

struct space_page *page_for(struct space *space, uint64_t page, bool create)
{
	uint32_t number = index_find(&space->page_index, page);

	if (number == INDEX_NONE) {
		if (!create)
			return NULL;
		number = vector_push(&space->pages, (struct space_page){.page = page});
		index_add(&space->page_index, page, number);
	}
	return &space->pages.items[number];
}

static enum code_mode page_mode(struct space *space, struct memory *memory, uint64_t pc)
{
	const struct mapping *mapping = memory_mapping(memory, pc);

	if (!mapping || !mapping->executable)
		return CODE_UNREADABLE;
	if (mapping->shared)
		return CODE_SELF_CHECK;
	/* A page that was watched once may be written to by the program whatever the kernel says at the
	 * moment. */
	const struct space_page *page = page_for(space, pc / CODE_PAGE, false);
	if (!mapping->writable && !(page && page->was_watched))
		return CODE_PLAIN;
	if (page && page->self_check)
		return CODE_SELF_CHECK;
	if (page && page->watch == PAGE_WATCHED)
		return CODE_PLAIN;
	bool has_room = (page && page->was_watched) || space_info(space, 0)->watched_count < MAX_WATCHED;
	return has_room ? CODE_PROTECT : CODE_SELF_CHECK;
}

/*
 * May the program write there, although we may have taken the permission away? Such pages are listed. The
 * list is whole whenever we are killed: a page may be on it twice for a moment, but never be missing.
 */
static void set_was_watched(struct space *space, struct space_page *page, bool was_watched)
{
	struct info *info = space_info(space, 0);

	if (page->was_watched == was_watched)
		return;
	page->was_watched = was_watched;
	if (was_watched) {
		page->watched_at = info->watched_count;
		info->watched[page->watched_at] = page->page * CODE_PAGE;
		__atomic_store_n(&info->watched_count, page->watched_at + 1, __ATOMIC_SEQ_CST);
	} else {
		uint32_t last = info->watched_count - 1;
		struct space_page *moved = page_for(space, info->watched[last] / CODE_PAGE, false);
		moved->watched_at = page->watched_at;
		__atomic_store_n(
		        &info->watched[moved->watched_at], moved->page * CODE_PAGE, __ATOMIC_SEQ_CST);
		__atomic_store_n(&info->watched_count, last, __ATOMIC_SEQ_CST);
	}
}

static void set_watch(struct memory *memory, struct space_page *page, enum page_watch watch)
{
	memory_forget(memory, page->page * CODE_PAGE);
	page->watch = watch;
}

/* Watching costs more than comparing here, or cannot be done. */
static void start_self_check(struct space *space, struct space_page *page)
{
	if (!page->self_check)
		space->counters.self_check_pages++;
	page->self_check = true;
}

/* ---- the ranges the stub looks at, to know which changes of mappings to tell ---- */

static void drop_smallest_gap(struct info *info)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i + 1 < info->range_count; i++) {
		if (info->ranges[i + 1].start - info->ranges[i].end <
		        info->ranges[best + 1].start - info->ranges[best].end)
			best = i;
	}
	__atomic_store_n(&info->ranges[best].end, info->ranges[best + 1].end, __ATOMIC_SEQ_CST);
	memmove(&info->ranges[best + 1], &info->ranges[best + 2],
	        (info->range_count - best - 2) * sizeof *info->ranges);
	info->range_count--;
}

static void cover_range(struct space *space, uint64_t start, uint64_t end)
{
	struct info *info = space_info(space, 0);
	struct range ranges[MAX_RANGES + 1];
	uint32_t count = info->range_count, at = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (info->ranges[i].start <= start && end <= info->ranges[i].end)
			return;
	}
	/* While the list is rewritten, say that anything may be code. */
	__atomic_store_n(&info->range_count, MAX_RANGES + 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < count; i++) {
		if (info->ranges[i].end < start || info->ranges[i].start > end) {
			ranges[at++] = info->ranges[i];
		} else {
			start = info->ranges[i].start < start ? info->ranges[i].start : start;
			end = info->ranges[i].end > end ? info->ranges[i].end : end;
		}
	}
	uint32_t position = 0;
	while (position < at && ranges[position].start < start)
		position++;
	memmove(&ranges[position + 1], &ranges[position], (at - position) * sizeof *ranges);
	ranges[position] = (struct range){start, end};
	at++;
	struct info scratch = {.range_count = at < MAX_RANGES ? at : MAX_RANGES};
	if (at > MAX_RANGES) { /* join the last two */
		ranges[MAX_RANGES - 1].end = ranges[MAX_RANGES].end;
		at = MAX_RANGES;
	}
	memcpy(scratch.ranges, ranges, at * sizeof *ranges);
	scratch.range_count = at;
	if (at == MAX_RANGES)
		drop_smallest_gap(&scratch);
	memcpy(info->ranges, scratch.ranges, scratch.range_count * sizeof *ranges);
	__atomic_store_n(&info->range_count, scratch.range_count, __ATOMIC_SEQ_CST);
}

/* ---- life and death of a region ---- */

static void region_sleep(struct space *space, uint32_t number)
{
	struct space_region *region = &space->regions.items[number];

	if (region->state != REGION_LIVE)
		return;
	region->state = REGION_DORMANT;
	space->counters.invalidated++;
	for (uint32_t i = 0; i < region->entry_count; i++) {
		struct region_entry *own = &space->region_entries.items[region->first_entry + i];
		struct space_entry *entry = &space->entries.items[own->entry];
		if (own->thunk)
			unchain_thunk(space, own->thunk - 1);
		if (entry->code == own->code + 1 && entry->segment == region->segment)
			entry_unlink(space, own->entry);
	}
}

static int region_wake(struct space *space, uint32_t number)
{
	struct space_region *region = &space->regions.items[number];
	int error = 0;

	region->state = REGION_LIVE;
	for (uint32_t i = 0; i < region->entry_count && !error; i++) {
		struct region_entry *own = &space->region_entries.items[region->first_entry + i];
		struct space_entry *entry = &space->entries.items[own->entry];
		if (!entry->code) { /* else another region has it, and stays responsible */
			entry->region = number + 1;
			error = entry_link(space, own->entry, region->segment, own->code);
		}
		if (own->thunk && !is_reachable(space, &space->thunks.items[own->thunk - 1]))
			chain_thunk(space, own->thunk - 1);
	}
	return error;
}

static bool source_unchanged(
        const struct memory_source *source, uint64_t start, const uint8_t *expected, uint32_t size)
{
	uint8_t bytes[CODE_PAGE];

	for (uint32_t done = 0; done < size;) {
		uint32_t part = size - done < sizeof bytes ? size - done : (uint32_t)sizeof bytes;
		if (source->read(source->context, start + done, bytes, part) != part ||
		        memcmp(bytes, expected + done, part) != 0)
			return false;
		done += part;
	}
	return true;
}

/* Are the program's bytes at pc, which must be executable, those that were translated? */
static bool bytes_unchanged(
        struct space *space, struct memory *memory, uint64_t start, const uint8_t *expected, uint32_t size)
{
	if (memory->source)
		return source_unchanged(memory->source, start, expected, size);
	for (uint32_t done = 0; done < size;) {
		uint64_t pc = start + done, page = pc & -CODE_PAGE;
		enum code_mode mode = page_mode(space, memory, pc);
		if (mode == CODE_UNREADABLE)
			return false;
		const uint8_t *bytes = memory_page(memory, page, mode == CODE_PLAIN);
		if (!bytes)
			return false;
		uint32_t part = (uint32_t)(CODE_PAGE - (pc - page));
		if (part > size - done)
			part = size - done;
		if (memcmp(bytes + (pc - page), expected + done, part) != 0)
			return false;
		done += part;
	}
	return true;
}

/* Would a change of any of the region's bytes be told? */
static bool region_is_guarded(struct space *space, struct memory *memory, const struct space_region *region)
{
	for (uint32_t i = 0; i < region->source_count; i++) {
		const struct region_source *source = &space->sources.items[region->first_source + i];
		uint64_t last = source->pc + source->size - 1;
		for (uint64_t page = source->pc / CODE_PAGE; page <= last / CODE_PAGE; page++) {
			if (page_mode(space, memory, page * CODE_PAGE) != CODE_PLAIN)
				return false;
		}
	}
	return true;
}

static bool region_unchanged(struct space *space, struct memory *memory, const struct space_region *region)
{
	for (uint32_t i = 0; i < region->source_count; i++) {
		const struct region_source *source = &space->sources.items[region->first_source + i];
		if (!bytes_unchanged(space, memory, source->pc, space->source_bytes.items + source->bytes,
		            source->size))
			return false;
	}
	return true;
}

/* A thread may still be in it, so its code stays; but nothing will lead there again. */
static int region_discard(struct space *space, uint32_t number)
{
	struct space_region *region = &space->regions.items[number];
	int error = 0;

	if (region->state != REGION_DORMANT)
		return 0;
	region->state = REGION_DEAD;
	for (uint32_t i = 0; i < region->site_count && !error; i++)
		error = remove_site(space, region->first_site + i);
	return error;
}

bool region_revive(struct space *space, struct memory *memory, uint32_t number)
{
	struct space_region *region = &space->regions.items[number];

	if (region->state != REGION_DORMANT || !region_unchanged(space, memory, region))
		return false;
	if (!region->self_check && !region_is_guarded(space, memory, region))
		return false;
	space->counters.revived++;
	return region_wake(space, number) == 0;
}

/* Calls `each` for the regions on the page, and forgets those that are dead. */
static void for_page_regions(struct space *space, struct memory *memory, struct space_page *page,
        void (*each)(struct space *, struct memory *, uint32_t region))
{
	uint32_t *link = &page->uses;

	while (*link) {
		struct page_use *use = &space->page_uses.items[*link - 1];
		if (space->regions.items[use->region].state == REGION_DEAD) {
			*link = use->next;
		} else {
			each(space, memory, use->region);
			link = &use->next;
		}
	}
}

static void add_page_use(struct space *space, uint64_t address, uint32_t region)
{
	struct space_page *page = page_for(space, address / CODE_PAGE, true);

	if (page->uses && space->page_uses.items[page->uses - 1].region == region)
		return;
	page->uses = vector_push(&space->page_uses, (struct page_use){region, page->uses}) + 1;
}

static void add_sources(struct space *space, struct space_region *region, uint32_t number,
        const struct translation *translation)
{
	uint32_t bytes = space->source_bytes.count;

	region->first_source = space->sources.count;
	region->source_count = translation->source_count;
	space->source_bytes.items = vector_grow(space->source_bytes.items, &space->source_bytes.capacity,
	        bytes + translation->source_byte_count, 1);
	memcpy(space->source_bytes.items + bytes, translation->source_bytes, translation->source_byte_count);
	space->source_bytes.count += translation->source_byte_count;
	for (uint32_t i = 0; i < translation->source_count; i++) {
		const struct source *source = &translation->sources[i];
		uint64_t pc = translation->pc + source->pc;
		vector_push(&space->sources, (struct region_source){pc, source->size, bytes + source->bytes});
		for (uint64_t page = pc / CODE_PAGE; page <= (pc + source->size - 1) / CODE_PAGE; page++)
			add_page_use(space, page * CODE_PAGE, number);
	}
}

/* The table in which returns to the entry will look for it. */
static uint8_t home_of(const struct translation *translation, const struct entry *entry)
{
	if (entry->callee == TABLE_OF_JUMPS)
		return 0;
	return BRANCH_TABLE_OF(translation->pc + (uint64_t)entry->callee);
}

static void add_entries(struct space *space, struct space_region *region,
        const struct translation *translation, uint32_t code)
{
	region->first_entry = space->region_entries.count;
	region->entry_count = translation->entry_count;
	for (uint32_t i = 0; i < translation->entry_count; i++) {
		const struct entry *from = &translation->entries[i];
		struct region_entry own = {
		        .entry = entry_for(space, translation->pc + from->pc), .code = code + from->offset};
		if (from->thunk)
			own.thunk = vector_push(&space->thunks, (struct space_thunk){.entry = own.entry,
			                                                .offset = code + from->thunk,
			                                                .next_field = code + from->thunk_next,
			                                                .home = home_of(translation, from),
			                                                .segment = region->segment}) +
			            1;
		vector_push(&space->region_entries, own);
	}
}

int region_add(struct space *space, unsigned segment, const struct translation *translation, uint32_t code)
{
	uint32_t number = space->regions.count;
	struct space_region region = {
	        .pc = translation->pc, .segment = (uint8_t)segment, .state = REGION_DORMANT};

	add_sources(space, &region, number, translation);
	add_entries(space, &region, translation, code);
	region.first_site = space->sites.count;
	region.site_count = translation->site_count;
	vector_push(&space->regions, region);
	for (uint32_t i = 0; i < translation->site_count; i++) {
		const struct site *site = &translation->sites[i];
		int error =
		        add_site(space, segment, code + site->offset, site->exit ? code + site->exit + 1 : 0,
		                entry_for(space, translation->pc + site->target));
		if (error)
			return error;
	}
	space->counters.regions++;
	space->counters.blocks += translation->block_count;
	space->counters.instructions += translation->instruction_count;
	return region_wake(space, number);
}

/* ---- requests ---- */

static uint64_t nanoseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct reading {
	struct space *space;
	struct memory *memory;
	enum code_mode mode; /* of the page the request is for; others are left for later */
	uint64_t pc;         /* what the request is for */
	bool replaced;       /* some of what was read will be replaced, see struct memory_source */
	bool writable;       /* the program can write to some of what was read */
};

/*
 * How far a region may read on the page: to its end, or only as far as the one
 * instruction goes that lies across the edge of two pages of different modes.
 * Code that checks itself may come from any page.
 */
static uint64_t readable_end(const struct reading *reading, uint64_t address, enum code_mode mode)
{
	uint64_t page = address & -CODE_PAGE;

	if (mode == reading->mode)
		return page + CODE_PAGE;
	if (reading->mode != CODE_SELF_CHECK || mode == CODE_UNREADABLE)
		return address;
	if (address - reading->pc < INSTRUCTION_BYTES)
		return page + CODE_PAGE;
	return address < page + INSTRUCTION_BYTES - 1 ? page + INSTRUCTION_BYTES - 1 : address;
}

static bool is_writable(struct space *space, uint64_t pc, enum code_mode mode)
{
	const struct space_page *page = page_for(space, pc / CODE_PAGE, false);

	return mode != CODE_PLAIN || (page && page->was_watched);
}

static size_t read_code(void *context, uint64_t pc, uint8_t *bytes, size_t size)
{
	struct reading *reading = context;
	const struct memory_source *source = reading->memory->source;
	size_t done = 0;

	if (source) {
		done = source->read(source->context, pc, bytes, size);
		reading->replaced |= source->is_replaced(source->context, pc, done);
		return done;
	}
	while (done < size) {
		uint64_t address = pc + done, page = address & -CODE_PAGE;
		enum code_mode mode = page_mode(reading->space, reading->memory, address);
		size_t part = readable_end(reading, address, mode) - address;
		const uint8_t *from = part ? memory_page(reading->memory, page, mode == CODE_PLAIN) : NULL;
		if (!from)
			break;
		if (part > size - done)
			part = size - done;
		memcpy(bytes + done, from + (address - page), part);
		reading->writable |= is_writable(reading->space, address, mode);
		done += part;
		if (part < size && (pc + done) % CODE_PAGE)
			break;
	}
	return done;
}

/* Its place in the set, or the set's count. */
static uint32_t find_in(const struct pc_set *set, uint64_t pc)
{
	uint32_t at = 0;

	while (at < set->count && set->items[at] != pc)
		at++;
	return at;
}

static bool is_in(const struct pc_set *set, uint64_t pc)
{
	return find_in(set, pc) < set->count;
}

bool space_is_stop(const struct space *space, uint64_t pc)
{
	return is_in(&space->stops, pc);
}

static bool is_known(void *context, uint64_t pc)
{
	struct reading *reading = context;
	uint32_t bit = known_bit(pc);

	if (space_is_stop(reading->space, pc))
		return true; /* it will be asked for */
	if (!(reading->space->known_filter[bit / 8] >> bit % 8 & 1))
		return false;
	uint32_t entry = index_find(&reading->space->entry_index, pc);

	return entry != INDEX_NONE && reading->space->entries.items[entry].code;
}

static unsigned nearest_segment(const struct space *space, uint64_t pc)
{
	unsigned best = 0;
	uint64_t best_distance = -1ul;

	for (unsigned i = 0; i < space->segment_count; i++) {
		uint64_t base = space->segments[i].layout.base;
		uint64_t distance = pc > base ? pc - base : base - pc;
		if (distance < best_distance) {
			best = i;
			best_distance = distance;
		}
	}
	return best;
}

static int add_translation(struct space *space, const struct translation *translation)
{
	unsigned segment = nearest_segment(space, translation->pc);
	uint32_t code;
	int error = place(space, segment, translation, &code);

	space->approximates |= translation->approximates;
	return error ? error : region_add(space, segment, translation, code);
}

/* A private mapping of a file, which other processes may have too. */
static const struct mapping *library_mapping(struct space *space, const struct reading *reading, uint64_t pc)
{
	const struct mapping *mapping = memory_mapping(reading->memory, pc);

	if (!space->library || reading->mode != CODE_PLAIN || !mapping || !mapping->inode ||
	        mapping->writable)
		return NULL;
	return mapping;
}

/* What an earlier process had translated there, if it is the same code and fits; returns whether it was
 * added. */
static bool take_from_library(
        struct space *space, struct reading *reading, uint64_t pc, struct translation *out)
{
	const struct mapping *mapping = library_mapping(space, reading, pc);
	const struct translation *found = mapping ? library_find(space->library, mapping, pc) : NULL;

	if (!found)
		return false;
	for (uint32_t i = 0; i < found->source_count; i++) {
		const struct source *source = &found->sources[i];
		if (!bytes_unchanged(space, reading->memory, pc + (uint64_t)source->pc,
		            found->source_bytes + source->bytes, source->size))
			return false;
	}
	*out = *found;
	out->pc = pc;
	if (add_translation(space, out))
		return false;
	space->counters.shared++;
	return true;
}

static void sleep_if_changed(struct space *space, struct memory *memory, uint32_t region)
{
	if (space->regions.items[region].state == REGION_LIVE &&
	        !region_unchanged(space, memory, &space->regions.items[region]))
		region_sleep(space, region);
}

/* Was the region made of other bytes, where it was made of the same addresses? */
static bool contradicts(
        const struct space *space, const struct space_region *region, const struct region_source *told)
{
	for (uint32_t i = 0; i < region->source_count; i++) {
		const struct region_source *source = &space->sources.items[region->first_source + i];
		uint64_t start = source->pc > told->pc ? source->pc : told->pc;
		uint64_t source_end = source->pc + source->size, told_end = told->pc + told->size;
		uint64_t end = source_end < told_end ? source_end : told_end;

		if (start < end &&
		        memcmp(space->source_bytes.items + source->bytes + (start - source->pc),
		                space->source_bytes.items + told->bytes + (start - told->pc), end - start))
			return true;
	}
	return false;
}

/*
 * Code that checks itself may become what it was before without our knowing. While recording, the history
 * must tell when: what does not fit to the code that is told now has to be asked for again.
 */
static void sleep_overwritten(struct space *space, const struct region_source *told)
{
	for (uint64_t number = told->pc / CODE_PAGE; number <= (told->pc + told->size - 1) / CODE_PAGE;
	        number++) {
		struct space_page *page = page_for(space, number, false);
		uint32_t *link = page ? &page->uses : NULL;

		while (link && *link) {
			struct page_use *use = &space->page_uses.items[*link - 1];
			const struct space_region *region = &space->regions.items[use->region];

			/* What was overwritten rarely comes back: it goes, or the list would only grow. */
			if (region->state != REGION_DEAD && contradicts(space, region, told)) {
				region_sleep(space, use->region);
				if (region_discard(space, use->region))
					break; /* the cache is full: it is about to be begun anew */
			}
			if (region->state == REGION_DEAD)
				*link = use->next;
			else
				link = &use->next;
		}
	}
}

static void tell_sources(struct space *space, struct memory *memory, const struct space_region *region)
{
	for (uint32_t i = 0; space->on_code && i < region->source_count; i++) {
		const struct region_source *source = &space->sources.items[region->first_source + i];
		if (region->self_check)
			sleep_overwritten(space, source);
		space->on_code(space->on_code_context, memory, source->pc,
		        space->source_bytes.items + source->bytes, source->size);
	}
}

void space_tell_code(struct space *space, struct memory *memory)
{
	for (uint32_t i = 0; i < space->regions.count; i++) {
		const struct space_region *region = &space->regions.items[i];
		const struct region_source *source = &space->sources.items[region->first_source];
		for (uint32_t k = 0; region->state == REGION_LIVE && k < region->source_count; k++)
			space->on_code(space->on_code_context, memory, source[k].pc,
			        space->source_bytes.items + source[k].bytes, source[k].size);
	}
}

static bool is_probed(void *context, uint64_t pc)
{
	return is_in(&((const struct reading *)context)->space->probes, pc);
}

/* Its code reads memory that changes by itself. */
static bool is_vdso(struct memory *memory, uint64_t pc)
{
	const struct mapping *mapping = memory_mapping(memory, pc);

	return mapping && strcmp(mapping->path, "[vdso]") == 0;
}

static struct translate_request request_for(struct space *space, struct reading *reading, uint64_t pc)
{
	const struct space_segment *segment = &space->segments[nearest_segment(space, pc)];

	reading->replaced |= space->exact_flags;
	return (struct translate_request){
	        .pc = pc,
	        .read = read_code,
	        .known = is_known,
	        .context = reading,
	        .reach_low = segment->layout.base,
	        .reach_high = segment->layout.base + segment->layout.code + segment->layout.code_size,
	        .max_instructions = MAX_INSTRUCTIONS,
	        .self_check = reading->mode == CODE_SELF_CHECK,
	        .xstate_mask = space->xstate_mask,
	        .wide_vectors = space->wide_vectors,
	        .loop_is_fast = space->loop_is_fast,
	        .count = space->count,
	        .count_loads = space->count_loads,
	        .mode = space->mode,
	        .keep_flags = &reading->replaced,
	        .counter = SLOT_POSITIONS,
	        .writable = &reading->writable,
	        .whole_state = space->whole_state,
	        .low_memory = space->low_memory,
	        .low_stack = space->low_stack,
	        .pages = space->by_pages && !is_vdso(reading->memory, pc),
	        .trace_filter = space->trace_filter,
	        .trace_stack = space->trace_stack,
	        .known_table = space->known_table,
	        .probed = space->probes.count ? is_probed : NULL,
	};
}

static int translate_anew(
        struct space *space, struct reading *reading, uint64_t pc, bool indirect, struct translation *out)
{
	struct translate_request request = request_for(space, reading, pc);

	request.indirect = indirect;
	int error = translate(&request, out);

	if (error)
		return error;
	error = add_translation(space, out);
	if (error)
		translation_free(out);
	else
		space->regions.items[space->regions.count - 1].self_check = request.self_check;
	if (!error)
		tell_sources(space, reading->memory, &space->regions.items[space->regions.count - 1]);
	return error;
}

/* Where control may go on from a translation, other than inside it. */
static void queue_targets(struct space *space, const struct translation *translation)
{
	for (uint32_t i = 0; i < translation->site_count && space->ahead_end < AHEAD_TARGETS; i++) {
		if (translation->sites[i].exit)
			space->ahead[space->ahead_end++] =
			        translation->pc + (uint64_t)translation->sites[i].target;
	}
}

/* Adds one region, from the library or translated now, and queues what may come after it. */
static int translate_region(struct space *space, struct reading *reading, uint64_t pc, bool indirect)
{
	struct translation translation;

	if (take_from_library(space, reading, pc, &translation)) {
		queue_targets(space, &translation);
		return 0;
	}
	int error = translate_anew(space, reading, pc, indirect, &translation);
	if (error)
		return error;
	queue_targets(space, &translation);
	const struct mapping *mapping = library_mapping(space, reading, pc);
	if (mapping)
		library_keep(space->library, mapping, pc, &translation);
	else
		translation_free(&translation);
	return 0;
}

/* Remembers the order of requests for the processes to come. */
static void note_request(struct space *space, struct memory *memory, uint64_t pc, bool indirect)
{
	struct reading reading = {.space = space, .memory = memory, .mode = CODE_PLAIN, .pc = pc};
	const struct mapping *mapping = library_mapping(space, &reading, pc);
	uint32_t number = mapping ? library_number(space->library, mapping, pc, indirect) : LIBRARY_NONE;

	if (number == LIBRARY_NONE)
		return;
	if (space->asked)
		library_follows(space->library, space->asked - 1, number);
	space->asked = number + 1;
	space->expected = library_next(space->library, number) + 1;
	space->foresight = FORESIGHT;
}

/* While the program runs what it asked for, the supervisor goes on with what it may ask for next. */
static bool make_ahead(struct space *space, struct memory *memory, uint64_t pc)
{
	struct reading reading = {.space = space, .memory = memory, .mode = CODE_PLAIN, .pc = pc};

	const struct mapping *mapping = space->on_code ? memory_mapping(memory, pc) : NULL;

	if (is_known(&reading, pc) || page_mode(space, memory, pc) != CODE_PLAIN)
		return false;
	/* What is not in a file is recorded with the request for it. */
	if (space->on_code && (!mapping || !mapping->inode))
		return false;
	uint64_t start = nanoseconds();
	if (translate_region(space, &reading, pc, false)) {
		/* Nobody asked for it: whoever does will hear why not. */
		space->ahead_first = space->ahead_end;
		space->expected = 0;
	}
	space->counters.ahead++;
	space->counters.translate_nanoseconds += nanoseconds() - start;
	return true;
}

bool space_translate_expected(struct space *space, struct memory *memory)
{
	/* The order may go round in a circle. */
	while (space->expected && !memory->maps_stale && space->foresight) {
		space->foresight--;
		uint32_t number = space->expected - 1;
		uint64_t pc = library_pc(space->library, number, &memory->maps);
		if (!pc) /* not mapped yet: it must be asked for */
			space->expected = 0;
		else
			space->expected = library_next(space->library, number) + 1;
		if (!pc)
			continue;
		space->asked = number + 1;
		bool made = make_ahead(space, memory, pc);
		if (library_indirect(space->library, number)) {
			uint32_t entry = entry_for(space, pc);
			if (space->entries.items[entry].code && make_indirect(space, entry, INDIRECT(0, 0)))
				space->expected = 0;
		}
		if (made)
			return true;
	}
	return false;
}

/* What follows by direct branches, nearest first. */
bool space_translate_ahead(struct space *space, struct memory *memory)
{
	while (space->ahead_first < space->ahead_end) {
		if (make_ahead(space, memory, space->ahead[space->ahead_first++]))
			return true;
	}
	return false;
}

static enum status obtain(struct space *space, struct memory *memory, uint64_t pc, bool indirect,
        unsigned how, uint64_t reply[2])
{
	struct reading reading = {
	        .space = space, .memory = memory, .mode = page_mode(space, memory, pc), .pc = pc};
	uint32_t entry = entry_for(space, pc);

	/* The vsyscall page is executable and nobody can read it; the translator knows what is in it. */
	if (reading.mode == CODE_UNREADABLE && pc >> 12 != 0xffffffffff600ul)
		return STATUS_FAULT;
	if (reading.mode == CODE_PROTECT && (how & TRANSLATE_UNWATCHED)) {
		start_self_check(space, page_for(space, pc / CODE_PAGE, true));
		reading.mode = CODE_SELF_CHECK;
	}
	if (reading.mode == CODE_PROTECT) {
		struct space_page *page = page_for(space, pc / CODE_PAGE, true);
		set_was_watched(space, page, true);
		cover_range(space, pc & -CODE_PAGE, (pc & -CODE_PAGE) + CODE_PAGE);
		if (page->watch != PAGE_PENDING || !(how & TRANSLATE_PROTECTED)) {
			set_watch(memory, page, PAGE_PENDING);
			reply[0] = pc & -CODE_PAGE;
			reply[1] = reply[0] + CODE_PAGE;
			return STATUS_PROTECT;
		}
		set_watch(memory, page, PAGE_WATCHED);
		reading.mode = page_mode(space, memory, pc);
	}
	const struct mapping *mapping = memory_mapping(memory, pc);
	if (mapping)
		cover_range(space, mapping->start, mapping->end);
	uint32_t region = space->entries.items[entry].region;
	bool revived = region && region_revive(space, memory, region - 1);
	if (revived)
		tell_sources(space, memory, &space->regions.items[region - 1]);
	if (revived && space->entries.items[entry].code)
		return STATUS_OK;
	int error = region ? region_discard(space, region - 1) : 0;
	space->ahead_first = space->ahead_end = 0;
	if (!error)
		error = translate_region(space, &reading, pc, indirect);
	if (error == -EFAULT &&
	        reading.mode == CODE_PLAIN) { /* an instruction that ends on another kind of page? */
		reading.mode = CODE_SELF_CHECK;
		error = translate_region(space, &reading, pc, indirect);
	}
	switch (error) {
	case 0:
		return STATUS_OK;
	case -EFAULT:
		return STATUS_FAULT;
	default:
		space->counters.full++;
		return STATUS_RELEASE;
	}
}

enum status space_translate(struct space *space, struct memory *memory, uint64_t pc, uint64_t indirect,
        unsigned how, uint64_t reply[2])
{
	uint64_t start = nanoseconds();
	uint32_t entry = entry_for(space, pc);
	enum status status = STATUS_OK;

	space->counters.requests++;
	/* A thread that comes here for an entry of self-checking code found it changed. */
	if (space->entries.items[entry].code && !indirect) {
		const struct space_region *region =
		        &space->regions.items[space->entries.items[entry].region - 1];
		if (region->self_check && !region_unchanged(space, memory, region))
			region_sleep(space, space->entries.items[entry].region - 1);
	}
	if (!space->entries.items[entry].code)
		status = obtain(space, memory, pc, indirect, how, reply);
	if (status == STATUS_OK && !space->entries.items[entry].code)
		status = STATUS_AGAIN; /* it has changed meanwhile, see sleep_overwritten */
	if (status == STATUS_OK && indirect && make_indirect(space, entry, indirect))
		status = STATUS_RELEASE;
	if (status == STATUS_OK) {
		note_request(space, memory, pc, indirect);
		const struct space_entry *found = &space->entries.items[entry];
		reply[0] = code_address(&space->segments[found->segment], found->code - 1);
	}
	space->counters.translate_nanoseconds += nanoseconds() - start;
	return status;
}

int space_step(struct space *space, struct memory *memory, uint64_t pc, unsigned count, uint64_t reply[2])
{
	struct reading reading = {.space = space, .memory = memory, .mode = CODE_PLAIN, .pc = pc};
	struct translate_request request = request_for(space, &reading, pc);
	unsigned segment = nearest_segment(space, pc);
	struct translation translation;
	uint32_t code;

	request.exact = count;
	int error = translate(&request, &translation);
	if (error)
		return error;
	error = place(space, segment, &translation, &code);
	if (!error)
		reply[0] = code_address(&space->segments[segment], code + translation.entries[0].offset);
	reply[1] = translation.instruction_count;
	translation_free(&translation);
	return error;
}

static struct stepped *find_stepped(struct space *space, struct memory *memory, uint64_t pc)
{
	uint8_t bytes[sizeof space->steps.items->bytes];

	for (uint32_t i = 0; i < space->steps.count; i++) {
		struct stepped *stepped = &space->steps.items[i];
		if (stepped->pc != pc)
			continue;
		if (pread(memory->mem_fd, bytes, stepped->size, (off_t)pc) == (ssize_t)stepped->size &&
		        memcmp(bytes, stepped->bytes, stepped->size) == 0)
			return stepped;
		*stepped = space->steps.items[--space->steps.count];
		i--;
	}
	return NULL;
}

static int add_stepped(struct space *space, struct memory *memory, uint64_t pc, enum code_mode mode)
{
	struct reading reading = {.space = space, .memory = memory, .mode = mode, .pc = pc};
	struct translate_request request = request_for(space, &reading, pc);
	struct stepped stepped = {.pc = pc};
	unsigned segment = nearest_segment(space, pc);
	struct translation translation;
	uint32_t code;

	request.exact = 1;
	int error = translate(&request, &translation);
	if (error)
		return error;
	error = place(space, segment, &translation, &code);
	if (!error && translation.source_count == 1 && translation.sources[0].size <= sizeof stepped.bytes) {
		stepped.code = code_address(&space->segments[segment], code + translation.entries[0].offset);
		stepped.size = translation.sources[0].size;
		memcpy(stepped.bytes, translation.source_bytes + translation.sources[0].bytes, stepped.size);
		vector_push(&space->steps, stepped);
	} else if (!error) {
		error = -EINVAL;
	}
	translation_free(&translation);
	return error;
}

enum status space_single(struct space *space, struct memory *memory, uint64_t pc, uint64_t reply[2])
{
	struct stepped *stepped = find_stepped(space, memory, pc);
	enum code_mode mode = page_mode(space, memory, pc);
	int error = stepped ? 0 : add_stepped(space, memory, pc, mode);

	if (error == -EFAULT && mode != CODE_UNREADABLE && mode != CODE_SELF_CHECK)
		error = add_stepped(space, memory, pc, CODE_SELF_CHECK); /* into a page of another kind */
	if (error == -EFAULT)
		return STATUS_FAULT;
	if (error) {
		space->exhausted |= error == -ENOMEM || error == -ENOSPC;
		return STATUS_RELEASE;
	}
	if (!stepped)
		stepped = &space->steps.items[space->steps.count - 1];
	if (space->on_code)
		space->on_code(space->on_code_context, memory, pc, stepped->bytes, stepped->size);
	reply[0] = stepped->code;
	reply[1] = 1;
	return STATUS_OK;
}

/* ---- changes ---- */

static void put_to_sleep(struct space *space, struct memory *memory, uint32_t region)
{
	(void)memory;
	region_sleep(space, region);
}

static void look_again(struct space *space, struct memory *memory, uint32_t region)
{
	if (!region_unchanged(space, memory, &space->regions.items[region]))
		region_sleep(space, region);
	else if (region_revive(space, memory, region))
		tell_sources(space, memory, &space->regions.items[region]);
}

static void page_remapped(struct space *space, struct memory *memory, uint32_t number, bool protection_kept)
{
	struct space_page *page = &space->pages.items[number];
	const struct mapping *mapping = memory_mapping(memory, page->page * CODE_PAGE);
	bool plain = mapping && mapping->executable && !mapping->writable && !mapping->shared;

	if (!protection_kept) {
		set_watch(memory, page, PAGE_FREE);
		set_was_watched(space, page, false);
		if (!mapping) /* what comes there is another page */
			page->self_check = false, page->faults = 0;
	} else if (page->was_watched && page->watch != PAGE_WATCHED) {
		plain = false;
	}
	for_page_regions(space, memory, page, plain ? look_again : put_to_sleep);
}

/* What may be executed may be translated any time, so from now on we must hear when it may not any more. */
static void cover_executable(struct space *space, struct memory *memory, uint64_t start, uint64_t end)
{
	memory_mapping(memory, start);
	for (size_t i = 0; i < memory->maps.count; i++) {
		const struct mapping *mapping = &memory->maps.mappings[i];
		if (mapping->executable && mapping->start < end && start < mapping->end)
			cover_range(space, mapping->start > start ? mapping->start : start,
			        mapping->end < end ? mapping->end : end);
	}
}

/* Of what was in [start, end): where is nothing now? */
static void tell_unmapped(struct space *space, struct memory *memory, uint64_t start, uint64_t end)
{
	uint64_t at = start;

	memory_mapping(memory, start);
	for (size_t i = 0; i < memory->maps.count && at < end; i++) {
		const struct mapping *mapping = &memory->maps.mappings[i];
		if (mapping->end <= at)
			continue;
		uint64_t next = mapping->start < end ? mapping->start : end;
		if (next > at)
			space->on_unmapped(space->on_code_context, at, next);
		at = mapping->end;
	}
	if (at < end)
		space->on_unmapped(space->on_code_context, at, end);
}

void space_remapped(
        struct space *space, struct memory *memory, uint64_t start, uint64_t end, bool protection_kept)
{
	memory_changed(memory);
	if (space->on_unmapped && !protection_kept)
		tell_unmapped(space, memory, start & -CODE_PAGE, (end + CODE_PAGE - 1) & -CODE_PAGE);
	cover_executable(space, memory, start, end);
	if ((end - start) / CODE_PAGE < space->pages.count) {
		for (uint64_t page = start / CODE_PAGE; page * CODE_PAGE < end; page++) {
			uint32_t number = index_find(&space->page_index, page);
			if (number != INDEX_NONE)
				page_remapped(space, memory, number, protection_kept);
		}
		return;
	}
	for (uint32_t i = 0; i < space->pages.count; i++) {
		uint64_t address = space->pages.items[i].page * CODE_PAGE;
		if (address >= (start & -CODE_PAGE) && address < end)
			page_remapped(space, memory, i, protection_kept);
	}
}

void space_changed(struct space *space, struct memory *memory, uint64_t start, uint64_t end)
{
	for (uint64_t address = start & -CODE_PAGE; address < end; address += CODE_PAGE) {
		struct space_page *page = page_for(space, address / CODE_PAGE, false);
		if (page)
			for_page_regions(space, memory, page, sleep_if_changed);
	}
}

static bool covers(const struct space *space, const struct space_region *region, uint64_t pc)
{
	for (uint32_t i = 0; i < region->source_count; i++) {
		const struct region_source *source = &space->sources.items[region->first_source + i];
		if (pc - source->pc < source->size)
			return true;
	}
	return false;
}

/* What was made of the instruction at pc is to be made anew. */
static void discard_covering(struct space *space, uint64_t pc)
{
	struct space_page *page = page_for(space, pc / CODE_PAGE, false);

	for (uint32_t use = page ? page->uses : 0; use; use = space->page_uses.items[use - 1].next) {
		uint32_t number = space->page_uses.items[use - 1].region;
		if (!covers(space, &space->regions.items[number], pc))
			continue;
		region_sleep(space, number);
		if (region_discard(space, number))
			space->exhausted = true;
	}
}

/* Puts the pc in, or takes it out; false: it was so already. */
static bool change_set(struct pc_set *set, uint64_t pc, bool wanted)
{
	uint32_t at = find_in(set, pc);

	if (wanted == (at < set->count))
		return false;
	if (wanted)
		vector_push(set, pc);
	else
		set->items[at] = set->items[--set->count];
	return true;
}

void space_probe(struct space *space, uint64_t pc, bool wanted)
{
	if (change_set(&space->probes, pc, wanted))
		discard_covering(space, pc);
}

/* Code that ends before a stop which is none any more stays: it is true, if slower. */
void space_stop(struct space *space, uint64_t pc, bool wanted)
{
	if (change_set(&space->stops, pc, wanted) && wanted)
		discard_covering(space, pc);
}

static void page_written(
        struct space *space, struct memory *memory, struct space_page *page, uint64_t reply[2])
{
	for_page_regions(space, memory, page, put_to_sleep);
	set_watch(memory, page, PAGE_FREE);
	reply[0] = page->page * CODE_PAGE;
	reply[1] = reply[0] + CODE_PAGE;
}

enum status space_write_fault(
        struct space *space, struct memory *memory, uint64_t address, uint64_t pc, uint64_t reply[2])
{
	struct space_page *page = page_for(space, address / CODE_PAGE, false);

	if (!page || !page->was_watched)
		return STATUS_NONE;
	space->counters.write_faults++;
	if (page->watch != PAGE_FREE && page->faults < 255)
		page->faults++;
	if (page->faults > FAULTS_BEFORE_SELF_CHECK || pc / CODE_PAGE == page->page)
		start_self_check(space, page);
	page_written(space, memory, page, reply);
	return STATUS_OK;
}

enum status space_unwatch(
        struct space *space, struct memory *memory, uint64_t start, uint64_t end, uint64_t reply[2])
{
	for (uint32_t i = 0; i < space->pages.count; i++) {
		struct space_page *page = &space->pages.items[i];
		uint64_t address = page->page * CODE_PAGE;
		if (page->watch == PAGE_FREE || address + CODE_PAGE <= start || address >= end)
			continue;
		page_written(space, memory, page, reply);
		return STATUS_OK;
	}
	return STATUS_NONE;
}

bool space_needs_protection(struct space *space, struct memory *memory, uint64_t pc)
{
	return page_mode(space, memory, pc) == CODE_PROTECT;
}

bool space_is_watched(const struct space *space, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < space->pages.count; i++) {
		uint64_t address = space->pages.items[i].page * CODE_PAGE;
		if (space->pages.items[i].was_watched && address + CODE_PAGE > start && address < end)
			return true;
	}
	return false;
}
