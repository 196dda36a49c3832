/*
 * The program's mappings, and which pages of them are open, while whole pages are logged (pages.c).
 */
#include "target/pages.h"

/* The first one that ends behind the address. */
uint32_t page_range_behind(uint64_t address)
{
	const struct page_range *ranges = pages()->ranges;
	uint32_t low = 0, high = memory()->page_range_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct page_range *page_range_at(uint64_t address)
{
	uint32_t n = page_range_behind(address);
	struct page_range *range = &pages()->ranges[n];

	return n < memory()->page_range_count && range->start <= address ? range : NULL;
}

static void move_ranges(struct page_range *to, const struct page_range *from, uint32_t count)
{
	if (to < from) {
		for (uint32_t i = 0; i < count; i++)
			to[i] = from[i];
	} else {
		while (count-- > 0)
			to[count] = from[count];
	}
}

void page_ranges_change(void)
{
	__atomic_fetch_add(&memory()->page_sequence, 1, __ATOMIC_SEQ_CST);
}

/* Splits the range that has the address inside of it. */
void page_ranges_split(uint64_t address)
{
	uint32_t n = page_range_behind(address), count = memory()->page_range_count;
	struct page_range *range = &pages()->ranges[n];

	if (n == count || range->start >= address)
		return;
	if (count == RANGES)
		stub_panic("too many mappings", count); /* see pages_mapped */
	move_ranges(range + 1, range, count - n);
	range[0].end = range[1].start = address;
	memory()->page_range_count++;
}

/* Nothing is in [start, end) any more. */
void page_ranges_remove(uint64_t start, uint64_t end)
{
	page_ranges_split(start);
	page_ranges_split(end);
	uint32_t first = page_range_behind(start), last = first;

	while (last < memory()->page_range_count && pages()->ranges[last].end <= end)
		last++;
	move_ranges(&pages()->ranges[first], &pages()->ranges[last], memory()->page_range_count - last);
	memory()->page_range_count -= last - first;
}

void page_ranges_insert(struct page_range range)
{
	uint32_t n = page_range_behind(range.start), count = memory()->page_range_count;

	if (count == RANGES)
		stub_panic("too many mappings", count);
	move_ranges(&pages()->ranges[n + 1], &pages()->ranges[n], count - n);
	pages()->ranges[n] = range;
	memory()->page_range_count++;
}

/* ---- open pages ---- */

struct region *page_region(uint64_t page, bool make)
{
	struct pages *p = pages();
	uint64_t number = page / PAGE / REGION_PAGES + 1;

	for (uint32_t i = (uint32_t)(number * 0x9e3779b97f4a7c15ul >> 40);; i++) {
		struct region *region = &p->regions[i % REGIONS];
		if (region->number == number)
			return region;
		if (region->number)
			continue;
		if (!make || p->region_count >= REGIONS_FULL)
			return NULL;
		region->number = number;
		p->region_count++;
		return region;
	}
}

bool page_is_open(uint64_t page)
{
	const struct region *region = page_region(page, false);
	uint64_t n = page / PAGE % REGION_PAGES;

	return region && region->open[n / 64] >> (n & 63) & 1;
}

void page_set_open(uint64_t page, bool open)
{
	struct region *region = page_region(page, false);
	uint64_t n = page / PAGE % REGION_PAGES, bit = 1ul << (n & 63);

	if (region)
		region->open[n / 64] = open ? region->open[n / 64] | bit : region->open[n / 64] & ~bit;
}

void pages_forget_open(uint64_t start, uint64_t end)
{
	if (end - start <= PAGE * REGIONS) {
		for (uint64_t page = start; page < end; page += PAGE)
			page_set_open(page, false);
		return;
	}
	for (uint32_t i = 0; i < REGIONS; i++) {
		uint64_t at = (pages()->regions[i].number - 1) * REGION_PAGES * PAGE;
		for (uint64_t n = 0; pages()->regions[i].number && n < REGION_PAGES; n++) {
			if (at + n * PAGE >= start && at + n * PAGE < end)
				pages()->regions[i].open[n / 64] &= ~(1ul << (n & 63));
		}
	}
}

long page_protect(uint64_t start, uint64_t end, uint32_t protection)
{
	return start < end ? syscall3(__NR_mprotect, start, end - start, protection) : 0;
}

/* What is closed of the range is without access again, and what is open as the program has it. False: there
 * are too many mappings for that. */
bool page_close_rest(const struct page_range *range)
{
	uint64_t from = range->start, page;
	bool done = true;

	for (page = range->start; page < range->end; page += PAGE) {
		if (!page_is_open(page))
			continue;
		done &= page_protect(from, page, K_PROT_NONE) == 0 &&
		        page_protect(page, page + PAGE, range->protection) == 0;
		from = page + PAGE;
	}
	return page_protect(from, page, K_PROT_NONE) == 0 && done;
}

bool page_ranges_alike(const struct page_range *a, const struct page_range *b)
{
	return a->protection == b->protection && a->fresh == b->fresh && a->stale == b->stale &&
	       a->file == b->file && a->shared == b->shared && a->copied == b->copied && a->whole == b->whole;
}

/* One for those that touch and are alike. */
void page_ranges_merge(void)
{
	struct page_range *ranges = pages()->ranges;
	uint32_t count = 0;

	for (uint32_t n = 0; n < memory()->page_range_count; n++) {
		if (count && ranges[count - 1].end == ranges[n].start &&
		        page_ranges_alike(&ranges[count - 1], &ranges[n]))
			ranges[count - 1].end = ranges[n].end;
		else
			ranges[count++] = ranges[n];
	}
	memory()->page_range_count = count;
}
