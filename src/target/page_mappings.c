/*
 * What system calls do to the program's mappings, while whole pages are logged (pages.c): the ranges follow,
 * also where a call fails half-way, and what it has opened by the way is closed again.
 */
#include "target/pages.h"

#define IMMUTABLE "/usr/" /* files that are replaced, and never written to */

bool path_begins_with(const char *text, const char *start)
{
	while (*start && *text == *start)
		text++, start++;
	return !*start;
}

/* Is what lies at the path never written to? */
bool path_is_immutable(const char *path)
{
	return path_begins_with(path, "/etc/ld.so.cache") ||
	       (path_begins_with(path, IMMUTABLE) && !path_begins_with(path, IMMUTABLE "local/") &&
	               !path_begins_with(path, IMMUTABLE "src/"));
}

#define K_F_GETFL   3
#define K_O_ACCMODE 3

static bool is_immutable_file(struct thread *thread, uint64_t fd)
{
	char link[40] = "/proc/self/fd/", path[32] = {0};
	unsigned at = 14;
	char digits[20];
	unsigned count = 0;

	for (uint32_t number = (uint32_t)fd; count == 0 || number; number /= 10)
		digits[count++] = (char)('0' + number % 10);
	while (count)
		link[at++] = digits[--count];
	link[at] = 0;
	/* Who has it to write to it may do so. */
	return (int32_t)fd >= 0 && (own_call2(thread, __NR_fcntl, fd, K_F_GETFL) & K_O_ACCMODE) == 0 &&
	       own_call3(thread, __NR_readlink, link, path, sizeof path - 1) > 0 && path_is_immutable(path);
}

/* A program or library, which nobody changes in its place. */
static bool is_image(struct thread *thread, uint64_t fd)
{
	uint32_t magic = 0;

	return own_call4(thread, __NR_pread64, fd, &magic, sizeof magic, 0) == sizeof magic &&
	       magic == ELF_MAGIC;
}

#define K_MAP_LOCKED  0x2000
#define K_MAP_HUGETLB 0x40000
#define MAP_KIND      0xf

bool pages_may_stay(uint64_t flags)
{
	return !(flags & (K_MAP_GROWSDOWN | K_MAP_HUGETLB | K_MAP_LOCKED));
}

bool pages_may_map(struct thread *thread, const uint64_t arguments[6])
{
	uint64_t protection = arguments[2], flags = arguments[3];

	if (!pages_may_stay(flags) || (flags & K_MAP_ANONYMOUS && protection & K_PROT_EXEC))
		return false;
	/* What others write to a file is seen, or not, as long as a page is not the program's own. */
	if ((flags & MAP_KIND) == K_MAP_PRIVATE)
		return flags & K_MAP_ANONYMOUS || is_immutable_file(thread, arguments[4]) ||
		       is_image(thread, arguments[4]);
	return !(flags & K_MAP_ANONYMOUS) && !(protection & K_PROT_WRITE) &&
	       is_immutable_file(thread, arguments[4]);
}

/* It fails half-way where a mapping may not be written to, and what it has done until then is not known. */
bool pages_may_protect(const uint64_t arguments[6])
{
	uint64_t start = arguments[0], end = start + arguments[1];

	for (uint32_t n = page_range_behind(start); n < memory()->page_range_count; n++) {
		const struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (range->shared && arguments[2] & K_PROT_WRITE)
			return false;
	}
	return true;
}

/*
 * Of pages that are opened one by one the kernel makes one mapping again only if all have been parts of one
 * when the first of them was written to.
 */
static void make_mergeable(uint64_t start, uint32_t protection)
{
	if (protection & K_PROT_WRITE)
		probe_write((void *)start, 1);
}

static void map(struct thread *thread, const uint64_t arguments[6], uint64_t start, uint64_t end)
{
	bool anonymous = arguments[3] & K_MAP_ANONYMOUS;

	page_ranges_remove(start, end);
	pages_forget_open(start, end);
	page_ranges_insert((struct page_range){.start = start,
	        .end = end,
	        .protection = (uint32_t)arguments[2] & 7,
	        .fresh = anonymous,
	        .file = !anonymous,
	        .shared = (arguments[3] & MAP_KIND) != K_MAP_PRIVATE,
	        .copied = !anonymous && !is_immutable_file(thread, arguments[4])});
	if (!anonymous)
		page_protect(start, end, K_PROT_NONE);
	else
		make_mergeable(start, (uint32_t)arguments[2]);
}

/* The kernel has changed the protection of whole ranges, closed pages or not: these are closed again. */
static void restore(struct thread *thread, uint64_t here, uint64_t start, uint64_t end)
{
	for (uint32_t n = page_range_behind(start); n < memory()->page_range_count; n++) {
		struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (range->fresh)
			page_protect(range->start, range->end, range->protection);
		else if (!range->whole && !page_close_rest(range))
			pages_open_range(thread, here, range);
	}
}

/* Where nothing is mapped, at `start` or behind it. */
static uint64_t first_hole(uint64_t start, uint64_t end)
{
	const struct page_range *range;

	while (start < end && (range = page_range_at(start)))
		start = range->end;
	return start;
}

static void change_protection(
        struct thread *thread, uint64_t here, uint64_t start, uint64_t end, uint32_t protection)
{
	page_ranges_split(start);
	page_ranges_split(end);
	for (uint32_t n = page_range_behind(start); n < memory()->page_range_count; n++) {
		struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		range->protection = protection & 7;
		if (range->fresh && !range->file)
			make_mergeable(range->start, protection);
	}
	restore(thread, here, start, end);
}

/* What comes before a hole the kernel has changed when it finds that; whatever else it may have done before
 * it failed is undone. */
static void fail_to_protect(struct thread *thread, uint64_t here, uint64_t start, uint64_t end,
        uint32_t protection, uint64_t result)
{
	uint64_t hole = start & (PAGE - 1) ? start : first_hole(start, end);

	if (result == (uint64_t)-K_ENOMEM && hole < end)
		change_protection(thread, here, start, hole, protection);
	else
		restore(thread, here, start, end);
}

/*
 * Anonymous memory is zero now, and so it is in replay, which empties it when the call succeeds; a file's is
 * that of the file. A call that fails because of a hole has done it to the rest.
 */
static void discard(uint64_t start, uint64_t end, bool failed)
{
	page_ranges_split(start);
	page_ranges_split(end);
	for (uint32_t n = page_range_behind(start); n < memory()->page_range_count; n++) {
		struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (range->whole || (range->fresh && !range->file && !failed))
			continue;
		range->fresh = 0;
		range->stale |= failed;
		pages_forget_open(range->start, range->end);
		page_protect(range->start, range->end, K_PROT_NONE);
	}
}

static void move_break(uint64_t end)
{
	struct pages *p = pages();
	uint64_t old = (p->brk + PAGE - 1) & -PAGE, new = (end + PAGE - 1) & -PAGE,
	         most = (p->brk_most + PAGE - 1) & -PAGE;

	p->brk = end;
	if (end > p->brk_most)
		p->brk_most = end;
	if (new < old) {
		page_ranges_remove(new, old);
		pages_forget_open(new, old);
	}
	/* What was there before, replay still has. */
	uint64_t known = most < new ? most : new;
	if (old < known) {
		page_ranges_insert((struct page_range){
		        .start = old, .end = known, .protection = K_PROT_READ | K_PROT_WRITE, .stale = 1});
		page_protect(old, known, K_PROT_NONE);
	}
	if (known < old)
		known = old;
	if (known < new) {
		struct page_range *before = page_range_at(known - 1);
		if (before && before->fresh && before->protection == (K_PROT_READ | K_PROT_WRITE))
			before->end = new;
		else
			page_ranges_insert((struct page_range){.start = known,
			        .end = new,
			        .protection = K_PROT_READ | K_PROT_WRITE,
			        .fresh = 1});
	}
}

/* The kernel may move one mapping only: what the program has as one has to be one. */
void pages_before_remap(uint64_t start, uint64_t end)
{
	if (start & (PAGE - 1))
		return; /* it will fail */
	page_ranges_change();
	page_ranges_split(start);
	page_ranges_split(end);
	for (uint32_t n = page_range_behind(start); n < memory()->page_range_count; n++) {
		const struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (!range->fresh && !range->whole)
			page_protect(range->start, range->end, range->protection);
	}
	page_ranges_change();
}

#define K_MREMAP_FIXED 2

/* It may have made room before it failed. */
static void forget_unmapped(uint64_t start, uint64_t end)
{
	uint8_t resident;

	for (uint64_t page = start; page < end; page += PAGE) {
		if (page_range_at(page) && syscall3(__NR_mincore, page, PAGE, &resident) == -K_ENOMEM) {
			page_ranges_remove(page, page + PAGE);
			pages_forget_open(page, page + PAGE);
		}
	}
}

/* What was at `from`, in one or several ranges, is at `to`, where replay may have anything. */
static void move_pages(struct page_range from, uint64_t to, uint64_t size)
{
	page_ranges_remove(from.start, from.end);
	pages_forget_open(from.start, from.end);
	from.start = to;
	from.end = to + size;
	from.fresh = 0;
	from.stale = 1;
	page_ranges_insert(from);
	page_protect(from.start, from.end, K_PROT_NONE);
}

static void after_remap(struct thread *thread, uint64_t here, const uint64_t arguments[6], uint64_t result)
{
	uint64_t start = arguments[0], old = (arguments[1] + PAGE - 1) & -PAGE,
	         new = (arguments[2] + PAGE - 1) & -PAGE;

	if (is_error(result)) {
		if (arguments[3] & K_MREMAP_FIXED && !(arguments[4] & (PAGE - 1)))
			forget_unmapped(arguments[4], arguments[4] + new);
		forget_unmapped(start, start + old);
		restore(thread, here, start, start + old);
		return;
	}
	if (result == start) {
		struct page_range grown = *page_range_at(start + (old < new ? old : new) - 1);
		page_ranges_remove(start + new, start + old);
		pages_forget_open(start + new, start + old);
		restore(thread, here, start, start + old);
		grown.start = start + old;
		grown.end = start + new;
		grown.fresh = 0;
		grown.stale = 1;
		if (old < new) {
			page_ranges_insert(grown);
			page_protect(grown.start, grown.end, K_PROT_NONE);
		}
		return;
	}
	page_ranges_remove(result, result + new);
	pages_forget_open(result, result + new);
	/* There may be holes between them. */
	for (uint64_t at = start, end = start + old; at < end;) {
		uint32_t n = page_range_behind(at);
		if (n == memory()->page_range_count || pages()->ranges[n].start >= end)
			break;
		struct page_range from = pages()->ranges[n];
		uint64_t offset = from.start - start, size = from.end - from.start;
		if (offset >= new)
			break;
		move_pages(
		        from, result + offset, from.end == end || offset + size > new ? new - offset : size);
		at = from.end;
	}
	page_ranges_remove(start, start + old); /* it was made smaller on the way */
	pages_forget_open(start, start + old);
}

void pages_mapped(
        struct thread *thread, uint64_t here, uint64_t number, const uint64_t arguments[6], uint64_t result)
{
	uint64_t start = arguments[0], end = start + ((arguments[1] + PAGE - 1) & -PAGE);

	page_ranges_change();
	switch (number) {
	case __NR_mremap:
		after_remap(thread, here, arguments, result);
		break;
	case __NR_brk:
		move_break(result);
		break;
	case __NR_mmap:
		if (!is_error(result))
			map(thread, arguments, result, result + end - start);
		break;
	case __NR_munmap:
		if (!is_error(result)) {
			page_ranges_remove(start, end);
			pages_forget_open(start, end);
		}
		break;
	case __NR_mprotect:
		if (is_error(result))
			fail_to_protect(thread, here, start, end, (uint32_t)arguments[2], result);
		else
			change_protection(thread, here, start, end, (uint32_t)arguments[2]);
		break;
	case __NR_madvise:
		if (arguments[2] == K_MADV_DONTNEED && !(start & (PAGE - 1)))
			discard(start, end, is_error(result));
		break;
	}
	page_ranges_change();
	if (memory()->page_range_count > RANGES - RANGES_LEFT)
		thread->leaves_pages = LEAVES_FOR_MAPPINGS;
}
