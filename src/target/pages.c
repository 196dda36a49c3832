/*
 * Whole pages: how a program is recorded as long as nobody but it and the kernel changes its memory, which is
 * as long as it has one thread and nothing shared. Its code then needs no checks, and no shadow: it runs on
 * its own memory. Behind a keyframe all of that is closed, that is, without access; the first access to a
 * page faults, and the page is opened and logged as it is. What system calls write to open pages is logged
 * when they return (calls.c). So the invariant of recording is kept another way: what replay has at an open
 * page is what is there.
 *
 *     no range         nothing is there, or new memory of the stack (see grow_stack)
 *     fresh            open as a whole: mapped since the keyframe, and zero then, which is what replay has
 *     else             closed but for the pages whose bit is set
 *
 * What does not fit ends it (pages_leave): threads, shared memory, filters, code that is written,
 * calls that nobody knows the memory of. All code is then translated anew, with checks, from a keyframe on.
 * Where that is over it begins again with a later one (pages_begin_again).
 *
 * The vdso reads memory that changes by itself. Its code is always checked, against a shadow of its own.
 *
 * The ranges and bits lie in the shadow of the code cache, which no program has use for.
 */
#include "target/stub.h"

#define PAGE    0x1000ul
#define LINE    64ul
#define WORDS   8
#define RANGES  8192u
#define REGIONS 8192u /* a power of two */

#define RANGES_LEFT  256 /* room for what one call may add */
#define REGION_PAGES 512
/* Where there are more it is time to compare loads; until that is so there is room for some. */
#define REGIONS_MANY (REGIONS / 2)
#define REGIONS_FULL (REGIONS / 4 * 3)
/* Open pages without open neighbours: each makes two mappings more, which are limited. */
#define LONE_MANY    8192
#define LONE_FULL    12288
#define MAPS_CHUNK   4096
#define LINE_MAXIMUM 512
#define IMMUTABLE    "/usr/" /* files that are replaced, and never written to */

struct region {
	uint64_t number; /* + 1; 0: none */
	uint64_t open[REGION_PAGES / 64];
};

/* What was in memory before a call that may write there. */
#define KEPT       4
#define KEPT_LEAST 256
#define KEPT_BYTES 16384

struct kept {
	uint64_t start, end; /* of whole words */
	uint64_t words[KEPT_BYTES / 8];
};

struct pages {
	uint32_t region_count;
	int32_t lone;
	uint64_t opened;        /* pages, since the keyframe */
	uint64_t brk, brk_most; /* the end of the heap, and where it was at most since the keyframe */
	struct range vdso;
	uint64_t stack; /* its last page */
	bool probes;    /* see probe_stack */
	uint64_t image; /* the file that was mapped last, by its path; see is_of_image */
	struct call_writes writes;
	uint32_t kept_count;
	struct kept kept[KEPT];
	struct page_range ranges[RANGES];
	struct region regions[REGIONS];
};

static struct pages *pages(void)
{
	return (struct pages *)image_range(thread_at(1)).start;
}

static struct process_memory *memory(void)
{
	return &process()->memory;
}

/* ---- ranges ---- */

/* The first one that ends behind the address. */
static uint32_t first_behind(uint64_t address)
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

static struct page_range *range_at(uint64_t address)
{
	uint32_t n = first_behind(address);
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

static void begin_change(void)
{
	__atomic_fetch_add(&memory()->page_sequence, 1, __ATOMIC_SEQ_CST);
}

/* Splits the range that has the address inside of it. */
static void split_at(uint64_t address)
{
	uint32_t n = first_behind(address), count = memory()->page_range_count;
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
static void remove_ranges(uint64_t start, uint64_t end)
{
	split_at(start);
	split_at(end);
	uint32_t first = first_behind(start), last = first;

	while (last < memory()->page_range_count && pages()->ranges[last].end <= end)
		last++;
	move_ranges(&pages()->ranges[first], &pages()->ranges[last], memory()->page_range_count - last);
	memory()->page_range_count -= last - first;
}

static void insert_range(struct page_range range)
{
	uint32_t n = first_behind(range.start), count = memory()->page_range_count;

	if (count == RANGES)
		stub_panic("too many mappings", count);
	move_ranges(&pages()->ranges[n + 1], &pages()->ranges[n], count - n);
	pages()->ranges[n] = range;
	memory()->page_range_count++;
}

/* ---- open pages ---- */

static struct region *region_of(uint64_t page, bool make)
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

static bool is_open(uint64_t page)
{
	const struct region *region = region_of(page, false);
	uint64_t n = page / PAGE % REGION_PAGES;

	return region && region->open[n / 64] >> (n & 63) & 1;
}

static void set_open(uint64_t page, bool open)
{
	struct region *region = region_of(page, false);
	uint64_t n = page / PAGE % REGION_PAGES, bit = 1ul << (n & 63);

	if (region)
		region->open[n / 64] = open ? region->open[n / 64] | bit : region->open[n / 64] & ~bit;
}

static void forget_open(uint64_t start, uint64_t end)
{
	if (end - start <= PAGE * REGIONS) {
		for (uint64_t page = start; page < end; page += PAGE)
			set_open(page, false);
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

static long protect(uint64_t start, uint64_t end, uint32_t protection)
{
	return start < end ? syscall3(__NR_mprotect, start, end - start, protection) : 0;
}

/* What is closed of the range is without access again, and what is open as the program has it. False: there
 * are too many mappings for that. */
static bool close_rest(const struct page_range *range)
{
	uint64_t from = range->start, page;
	bool done = true;

	for (page = range->start; page < range->end; page += PAGE) {
		if (!is_open(page))
			continue;
		done &= protect(from, page, K_PROT_NONE) == 0 &&
		        protect(page, page + PAGE, range->protection) == 0;
		from = page + PAGE;
	}
	return protect(from, page, K_PROT_NONE) == 0 && done;
}

static bool is_alike(const struct page_range *a, const struct page_range *b)
{
	return a->protection == b->protection && a->fresh == b->fresh && a->stale == b->stale &&
	       a->file == b->file && a->shared == b->shared && a->copied == b->copied && a->whole == b->whole;
}

/* One for those that touch and are alike. */
static void merge_ranges(void)
{
	struct page_range *ranges = pages()->ranges;
	uint32_t count = 0;

	for (uint32_t n = 0; n < memory()->page_range_count; n++) {
		if (count && ranges[count - 1].end == ranges[n].start &&
		        is_alike(&ranges[count - 1], &ranges[n]))
			ranges[count - 1].end = ranges[n].end;
		else
			ranges[count++] = ranges[n];
	}
	memory()->page_range_count = count;
}

/* ---- the stack ---- */

/*
 * The kernel lets the stack grow, downwards, to any address that is accessed within the limit, and tells
 * nobody: what is new has the protection of the lowest page. So that one is always closed. It counts for the
 * limit what is of one mapping only, of which closed pages make several: so we count.
 */
#define K_RLIMIT_STACK 3
#define STACK_MOST     (1ul << 33)
#define GROWTH         (16 * PAGE)

static uint64_t stack_start(void)
{
	uint64_t start = pages()->stack;
	const struct page_range *range;

	while ((range = range_at(start)))
		start = range->start - 1;
	return start + 1;
}

static uint64_t stack_limit(void)
{
	struct limit_pair limit = {0, 0};

	syscall4(__NR_prlimit64, 0, K_RLIMIT_STACK, 0, &limit);
	return limit.soft < STACK_MOST ? limit.soft : STACK_MOST;
}

/* The kernel makes it grow to this page, and refuses the access: it is closed. */
static void probe_stack(uint64_t page)
{
	uint8_t byte;

	pages()->probes = true;
	usercopy_direct(&byte, (const void *)page, 1);
	pages()->probes = false;
}

/* It is to reach below the address. False: it does not, or may not. */
static bool grow_stack(struct thread *thread, uint64_t address)
{
	uint64_t end = stack_start(), limit = stack_limit(), top = pages()->stack + PAGE, start = end;
	uint64_t wanted = ((address < end ? address : end) & -PAGE) - GROWTH;
	uint8_t resident;

	if (top - address > limit) {
		/* There it grew, or would, for the kernel sees less of it: once it is one mapping again that
		 * is right. */
		thread->leaves_pages = LEAVES_FOR_STACK;
		return false;
	}
	if (address < end)
		probe_stack(address & -PAGE);
	probe_stack(wanted);
	while (!range_at(start - PAGE) && syscall3(__NR_mincore, start - PAGE, PAGE, &resident) == 0)
		start -= PAGE;
	if (start == end)
		return false;
	struct page_range grown = {.start = start, .end = end, .protection = K_PROT_READ | K_PROT_WRITE};
	struct page_range *above = range_at(end);
	begin_change();
	if (above && above->start == end && is_alike(above, &grown))
		above->start = start;
	else
		insert_range(grown);
	begin_change();
	protect(start, end, K_PROT_NONE);
	return address >= start;
}

static bool is_below_stack(uint64_t address)
{
	return address < pages()->stack && pages()->stack - address < STACK_MOST && address < stack_start();
}

bool pages_is_closed(struct thread *thread, uint64_t address)
{
	if (!by_pages() || pages()->probes)
		return false;
	if (!range_at(address) && is_below_stack(address) && !grow_stack(thread, address))
		return false;
	const struct page_range *range = range_at(address);
	return range && range->protection && !range->fresh && !range->whole && !is_open(address & -PAGE);
}

bool pages_is_vdso(uint64_t address)
{
	return by_pages() && address >= pages()->vdso.start && address < pages()->vdso.end;
}

/* ---- what is logged ---- */

/* A page behind the end of a file cannot be read, until that grows: then loads have to be compared. */
static void log_page(struct thread *thread, uint64_t here, uint64_t page, bool stale)
{
	uint64_t words[WORDS];

	for (uint64_t line = page; thread->log && line < page + PAGE; line += LINE) {
		uint8_t mask = 0;
		if (load_line(words, (const void *)line) < 0) {
			thread->leaves_pages = LEAVES_FOR_FILE;
			return;
		}
		for (unsigned i = 0; i < WORDS; i++)
			mask |= (uint8_t)((stale || words[i]) << i);
		if (mask)
			log_patch(thread, here, line, mask, words);
	}
}

void pages_keep(uint64_t address, uint64_t size)
{
	struct pages *p = pages();
	struct kept *kept = &p->kept[p->kept_count];
	uint64_t start = (address + 7) & -8ul, end = (address + size) & -8ul;

	if (size < KEPT_LEAST || size > KEPT_BYTES || p->kept_count == KEPT ||
	        read_program(kept->words, start, end - start) < 0)
		return;
	kept->start = start;
	kept->end = end;
	p->kept_count++;
}

void pages_forget_kept(void)
{
	if (by_pages())
		pages()->kept_count = pages()->writes.count = 0;
}

struct call_writes *pages_writes(void)
{
	return &pages()->writes;
}

static const struct kept *kept_at(uint64_t address)
{
	struct pages *p = pages();

	for (uint32_t n = 0; n < p->kept_count; n++) {
		if (address >= p->kept[n].start && address < p->kept[n].end)
			return &p->kept[n];
	}
	return NULL;
}

/* What is the same as it was before the call needs no entry. */
void pages_log(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	uint64_t words[WORDS], end = address + size;
	const struct kept *kept = kept_at((address + 7) & -8ul);

	for (uint64_t line = address & -LINE; size && thread->log && line < end; line += LINE) {
		uint8_t mask = 0;
		if (load_line(words, (const void *)line) < 0)
			continue;
		for (unsigned i = 0; i < WORDS; i++) {
			uint64_t at = line + 8 * i;
			bool same = kept && at >= kept->start && at < kept->end &&
			            words[i] == kept->words[(at - kept->start) / 8];
			mask |= (uint8_t)((at + 8 > address && at < end && !same) << i);
		}
		if (mask)
			log_patch(thread, here, line, mask, words);
	}
}

void pages_log_whole(struct thread *thread, uint64_t here)
{
	struct range vdso = pages()->vdso;

	for (uint64_t page = vdso.start; page < vdso.end; page += PAGE)
		log_page(thread, here, page, false);
}

void pages_note_written(struct thread *thread, uint64_t address, uint64_t size)
{
	if (!by_pages() || overlaps_us(address, size))
		return;
	if (thread->written_count == sizeof thread->written / sizeof *thread->written)
		thread->forgets = 1;
	else
		thread->written[thread->written_count++] = (struct extent){address, address + size};
}

void pages_log_written(struct thread *thread, uint64_t here)
{
	for (uint32_t i = 0; i < thread->written_count; i++)
		pages_log(thread, here, thread->written[i].low,
		        thread->written[i].high - thread->written[i].low);
	thread->written_count = 0;
}

/* ---- opening ---- */

/* A page of a file shows what others write to that, until it is the process's own. */
static void make_own(const struct page_range *range, uint64_t page)
{
	if (range->copied && protect(page, page + PAGE, K_PROT_READ | K_PROT_WRITE) == 0)
		probe_write((void *)page, 1);
}

/* For want of room, or of mappings, all of it. */
static void open_range(struct thread *thread, uint64_t here, struct page_range *range)
{
	for (uint64_t page = range->start; range->copied && page < range->end; page += PAGE) {
		if (!is_open(page))
			make_own(range, page);
	}
	if (protect(range->start, range->end, range->protection) < 0)
		stub_panic("a page cannot be opened at", range->start);
	for (uint64_t page = range->start; page < range->end; page += PAGE) {
		if (!is_open(page))
			log_page(thread, here, page, range->stale);
	}
	range->fresh = 1;
}

static void open_page(struct thread *thread, uint64_t here, struct page_range *range, uint64_t page)
{
	struct pages *p = pages();
	int neighbours = is_open(page - PAGE) + is_open(page + PAGE);

	if (range->start == page && page <= p->stack && page == stack_start()) {
		grow_stack(thread, page);
		range = range_at(page);
	}

	if (!region_of(page, true) || p->lone > LONE_FULL) {
		open_range(thread, here, range);
		return;
	}
	if (p->lone > LONE_MANY || p->region_count > REGIONS_MANY)
		thread->leaves_pages = LEAVES_FOR_MAPPINGS;
	make_own(range, page);
	if (protect(page, page + PAGE, range->protection) < 0) {
		open_range(thread, here, range);
		return;
	}
	p->lone += 1 - neighbours;
	p->opened++;
	set_open(page, true);
	log_page(thread, here, page, range->stale);
}

void pages_open(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	if (!by_pages() || !size || address + size < address)
		return;
	if (is_below_stack(address))
		grow_stack(thread, address);
	for (uint64_t page = address & -PAGE; page < address + size; page += PAGE) {
		uint32_t n = first_behind(page);
		if (n == memory()->page_range_count)
			return;
		struct page_range *range = &pages()->ranges[n];
		if (range->start > page)
			page = range->start - PAGE; /* nothing until there */
		else if (range->protection && !range->fresh && !range->whole && !is_open(page))
			open_page(thread, here, range, page);
	}
}

void pages_open_here(struct thread *thread, uint64_t address, uint64_t size)
{
	uint64_t here = position(thread) - 1;

	/* Between two instructions the one before is done; it has not touched what is closed. */
	if (thread->log && thread->log->position > here)
		here = thread->log->position;
	if (here < thread->done)
		here = thread->done;
	pages_open(thread, here, address, size);
}

/* ---- closing ---- */

void pages_close(void)
{
	struct pages *p = pages();

	begin_change();
	uint32_t count = memory()->page_range_count;
	p->brk_most = p->brk;
	for (uint32_t n = 0; n < count;) {
		uint64_t start = p->ranges[n].start, end = start;
		for (; n < count && p->ranges[n].start == end && !p->ranges[n].whole; n++) {
			p->ranges[n].fresh = p->ranges[n].stale = 0;
			end = p->ranges[n].end;
		}
		protect(start, end, K_PROT_NONE);
		if (n < count && p->ranges[n].whole)
			n++;
	}
	merge_ranges();
	memset(p->regions, 0, sizeof p->regions);
	p->region_count = 0;
	p->lone = 0;
	p->opened = 0;
	begin_change();
}

#define OPENED_MANY 8192

bool pages_are_costly(uint64_t instructions)
{
	uint64_t opened = pages()->opened;

	return opened > OPENED_MANY && opened * PAGE > instructions / 2;
}

void pages_end(void)
{
	if (!by_pages())
		return;
	for (uint32_t n = 0; n < memory()->page_range_count; n++) {
		const struct page_range *range = &pages()->ranges[n];
		if (!range->fresh && !range->whole)
			protect(range->start, range->end, range->protection);
	}
	begin_change();
	memory()->page_range_count = 0;
	memory()->pages = 0;
	begin_change();
}

#define AGAIN_MOST  4 /* times; what ends it over and over is not worth it */
#define AGAIN_AFTER (100ul << 20)

/* Most that ends it is over soon: a child is made, a file is looked at. */
static void may_begin_again(uint32_t why, uint64_t here)
{
	struct process_memory *m = memory();
	bool passing = why & LEAVES_FOR_CALL || why == LEAVES_FOR_SIGNAL || why == LEAVES_FOR_STACK ||
	               why == LEAVES_FOR_INSTRUCTION;
	uint64_t wait = info()->interval < AGAIN_AFTER ? info()->interval : AGAIN_AFTER;

	if (!passing)
		m->pages_again = 0;
	else if (m->pages_again)
		m->pages_from = here + (wait << (AGAIN_MOST - --m->pages_again));
}

void pages_leave(struct thread *thread)
{
	uint32_t why = thread->leaves_pages;

	thread->leaves_pages = LEAVES_NOT;
	may_begin_again(why, position(thread));
	settle_x87_pc(thread); /* all code is about to be translated anew */
	uint32_t count = memory()->page_range_count;
	pages_end();
	for (uint32_t n = 0; n < count; n++) {
		const struct page_range *range = &pages()->ranges[n];
		memory_admit(thread, range->start, range->end, range->protection);
	}
	requeue_blocked(thread);
	set_kernel_mask(thread->mask);
	if (ask(thread, OP_COMPARE, why, position(thread), 0) != STATUS_OK)
		release(thread);
}

/* ---- mappings ---- */

static bool begins_with(const char *text, const char *start)
{
	while (*start && *text == *start)
		text++, start++;
	return !*start;
}

/* Is what lies at the path never written to? */
static bool is_immutable(const char *path)
{
	return begins_with(path, "/etc/ld.so.cache") ||
	       (begins_with(path, IMMUTABLE) && !begins_with(path, IMMUTABLE "local/") &&
	               !begins_with(path, IMMUTABLE "src/"));
}

#define ELF_MAGIC   0x464c457fu
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
	       own_call3(thread, __NR_readlink, link, path, sizeof path - 1) > 0 && is_immutable(path);
}

/* A program or library, which nobody changes in its place. */
static bool is_image(struct thread *thread, uint64_t fd)
{
	uint32_t magic = 0;

	return own_call4(thread, __NR_pread64, fd, &magic, sizeof magic, 0) == sizeof magic &&
	       magic == ELF_MAGIC;
}

#define K_MAP_GROWSDOWN 0x100
#define K_MAP_LOCKED    0x2000
#define K_MAP_HUGETLB   0x40000
#define MAP_KIND        0xf

bool pages_may_map(struct thread *thread, const uint64_t arguments[6])
{
	uint64_t protection = arguments[2], flags = arguments[3];

	if (flags & (K_MAP_GROWSDOWN | K_MAP_HUGETLB | K_MAP_LOCKED) ||
	        (flags & K_MAP_ANONYMOUS && protection & K_PROT_EXEC))
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

	for (uint32_t n = first_behind(start); n < memory()->page_range_count; n++) {
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

	remove_ranges(start, end);
	forget_open(start, end);
	insert_range((struct page_range){.start = start,
	        .end = end,
	        .protection = (uint32_t)arguments[2] & 7,
	        .fresh = anonymous,
	        .file = !anonymous,
	        .shared = (arguments[3] & MAP_KIND) != K_MAP_PRIVATE,
	        .copied = !anonymous && !is_immutable_file(thread, arguments[4])});
	if (!anonymous)
		protect(start, end, K_PROT_NONE);
	else
		make_mergeable(start, (uint32_t)arguments[2]);
}

/* The kernel has changed the protection of whole ranges, closed pages or not: these are closed again. */
static void restore(struct thread *thread, uint64_t here, uint64_t start, uint64_t end)
{
	for (uint32_t n = first_behind(start); n < memory()->page_range_count; n++) {
		struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (range->fresh)
			protect(range->start, range->end, range->protection);
		else if (!range->whole && !close_rest(range))
			open_range(thread, here, range);
	}
}

/* Where nothing is mapped, at `start` or behind it. */
static uint64_t first_hole(uint64_t start, uint64_t end)
{
	const struct page_range *range;

	while (start < end && (range = range_at(start)))
		start = range->end;
	return start;
}

static void change_protection(
        struct thread *thread, uint64_t here, uint64_t start, uint64_t end, uint32_t protection)
{
	split_at(start);
	split_at(end);
	for (uint32_t n = first_behind(start); n < memory()->page_range_count; n++) {
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
	split_at(start);
	split_at(end);
	for (uint32_t n = first_behind(start); n < memory()->page_range_count; n++) {
		struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (range->whole || (range->fresh && !range->file && !failed))
			continue;
		range->fresh = 0;
		range->stale |= failed;
		forget_open(range->start, range->end);
		protect(range->start, range->end, K_PROT_NONE);
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
		remove_ranges(new, old);
		forget_open(new, old);
	}
	/* What was there before, replay still has. */
	uint64_t known = most < new ? most : new;
	if (old < known) {
		insert_range((struct page_range){
		        .start = old, .end = known, .protection = K_PROT_READ | K_PROT_WRITE, .stale = 1});
		protect(old, known, K_PROT_NONE);
	}
	if (known < old)
		known = old;
	if (known < new) {
		struct page_range *before = range_at(known - 1);
		if (before && before->fresh && before->protection == (K_PROT_READ | K_PROT_WRITE))
			before->end = new;
		else
			insert_range((struct page_range){.start = known,
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
	begin_change();
	split_at(start);
	split_at(end);
	for (uint32_t n = first_behind(start); n < memory()->page_range_count; n++) {
		const struct page_range *range = &pages()->ranges[n];
		if (range->start >= end)
			break;
		if (!range->fresh && !range->whole)
			protect(range->start, range->end, range->protection);
	}
	begin_change();
}

#define K_MREMAP_FIXED 2

/* It may have made room before it failed. */
static void forget_unmapped(uint64_t start, uint64_t end)
{
	uint8_t resident;

	for (uint64_t page = start; page < end; page += PAGE) {
		if (range_at(page) && syscall3(__NR_mincore, page, PAGE, &resident) == -K_ENOMEM) {
			remove_ranges(page, page + PAGE);
			forget_open(page, page + PAGE);
		}
	}
}

/* What was at `from`, in one or several ranges, is at `to`, where replay may have anything. */
static void move_pages(struct page_range from, uint64_t to, uint64_t size)
{
	remove_ranges(from.start, from.end);
	forget_open(from.start, from.end);
	from.start = to;
	from.end = to + size;
	from.fresh = 0;
	from.stale = 1;
	insert_range(from);
	protect(from.start, from.end, K_PROT_NONE);
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
		struct page_range grown = *range_at(start + (old < new ? old : new) - 1);
		remove_ranges(start + new, start + old);
		forget_open(start + new, start + old);
		restore(thread, here, start, start + old);
		grown.start = start + old;
		grown.end = start + new;
		grown.fresh = 0;
		grown.stale = 1;
		if (old < new) {
			insert_range(grown);
			protect(grown.start, grown.end, K_PROT_NONE);
		}
		return;
	}
	remove_ranges(result, result + new);
	forget_open(result, result + new);
	/* There may be holes between them. */
	for (uint64_t at = start, end = start + old; at < end;) {
		uint32_t n = first_behind(at);
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
	remove_ranges(start, start + old); /* it was made smaller on the way */
	forget_open(start, start + old);
}

void pages_mapped(
        struct thread *thread, uint64_t here, uint64_t number, const uint64_t arguments[6], uint64_t result)
{
	uint64_t start = arguments[0], end = start + ((arguments[1] + PAGE - 1) & -PAGE);

	begin_change();
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
			remove_ranges(start, end);
			forget_open(start, end);
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
	begin_change();
	if (memory()->page_range_count > RANGES - RANGES_LEFT)
		thread->leaves_pages = LEAVES_FOR_MAPPINGS;
}

/* ---- the beginning ---- */

static const char *parse_hex(const char *at, uint64_t *value)
{
	for (*value = 0;; at++) {
		if (*at >= '0' && *at <= '9')
			*value = *value * 16 + (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			*value = *value * 16 + (uint64_t)(*at - 'a' + 10);
		else
			return at;
	}
}

static uint64_t hash_of(const char *path)
{
	uint64_t hash = 1;

	while (*path)
		hash = (hash ^ (uint8_t)*path++) * 0x100000001b3ul;
	return hash;
}

/* Is it mapped from a program or library? Its first part comes first. */
static bool is_of_image(const struct page_range *range, const char *path)
{
	struct pages *p = pages();
	uint32_t magic = 0;

	if (hash_of(path) == p->image)
		return true;
	if (read_program(&magic, range->start, sizeof magic) < 0 || magic != ELF_MAGIC)
		return false;
	p->image = hash_of(path);
	return true;
}

/* 7f12a000-7f12b000 r-xp 00001000 fe:00 12345   /path; false: it is memory that others change. */
static bool take_line(const char *line)
{
	struct page_range range = {0};
	const char *at = parse_hex(parse_hex(line, &range.start) + 1, &range.end) + 1, *path = at;

	range.protection = (at[0] == 'r' ? K_PROT_READ : 0) | (at[1] == 'w' ? K_PROT_WRITE : 0) |
	                   (at[2] == 'x' ? K_PROT_EXEC : 0);
	bool shared = at[3] == 's';
	for (unsigned fields = 0; *path && fields < 4; path++)
		fields += path[0] == ' ' && path[1] != ' ';
	while (*path == ' ')
		path++;
	if (overlaps_us(range.start, range.end - range.start) || begins_with(path, "[v")) {
		if (begins_with(path, "[vdso]")) {
			pages()->vdso = (struct range){range.start, range.end};
			range.whole = 1;
			insert_range(range);
		}
		return true;
	}
	if (shared || memory()->page_range_count > RANGES - RANGES_LEFT)
		return false;
	range.file = path[0] == '/';
	range.copied = range.file && !is_immutable(path);
	if (range.copied && !is_of_image(&range, path))
		return false;
	if (begins_with(path, "[stack]"))
		pages()->stack = range.end - PAGE;
	insert_range(range);
	return true;
}

static bool read_maps(struct thread *thread)
{
	char text[MAPS_CHUNK + 1], line[LINE_MAXIMUM];
	unsigned size = 0;
	long fd = own_call3(thread, __NR_open, "/proc/self/maps", 0, 0), got = 0;
	bool good = fd >= 0;

	while (good && (got = own_call3(thread, __NR_read, fd, text, MAPS_CHUNK)) > 0) {
		for (long i = 0; good && i < got; i++) {
			if (text[i] != '\n') {
				if (size < sizeof line - 1)
					line[size++] = text[i];
				continue;
			}
			line[size] = 0;
			size = 0;
			good = take_line(line);
		}
	}
	if (fd >= 0)
		own_call1(thread, __NR_close, fd);
	return good && got == 0 && pages()->stack;
}

void pages_start(struct thread *thread)
{
	struct range place = image_range(thread);

	if (!info()->pages)
		return;
	memory()->page_ranges = (uint64_t)pages()->ranges;
	if (place.end - place.start < sizeof(struct pages) ||
	        process()->memory.limits[LIMIT_DATA].own.soft != UINT64_MAX || !read_maps(thread)) {
		memory()->page_range_count = 0;
		if (ask(thread, OP_COMPARE, LEAVES_FOR_START, 0, 0) != STATUS_OK)
			stub_panic("cannot compare loads, error", 0);
		return;
	}
	pages()->brk = pages()->brk_most = own_call1(thread, __NR_brk, 0);
	memory()->pages = 1;
	memory()->pages_again = AGAIN_MOST;
	pages_close();
}

/* ---- beginning again ---- */

static bool file_begins_with(struct thread *thread, const char *path, const char *start)
{
	char text[32] = {0};

	return own_call3(thread, __NR_readlink, path, text, sizeof text - 1) > 0 && begins_with(text, start);
}

#define FDS_LOOKED_AT 64

/* Who still has its maps open could read them again. */
static bool has_open_maps(struct thread *thread)
{
	char path[24] = "/proc/self/fd/";

	for (unsigned fd = 0; fd < FDS_LOOKED_AT; fd++) {
		unsigned at = 14;
		if (fd >= 10)
			path[at++] = (char)('0' + fd / 10);
		path[at++] = (char)('0' + fd % 10);
		path[at] = 0;
		if (file_begins_with(thread, path, "/proc/"))
			return true;
	}
	return false;
}

#define STATUS_CHUNK 2048

/* By the kernel's count: some may run natively. */
static bool has_one_thread(struct thread *thread)
{
	char text[STATUS_CHUNK] = {0};
	long fd = own_call3(thread, __NR_open, "/proc/self/status", 0, 0),
	     size = fd < 0 ? 0 : own_call3(thread, __NR_read, fd, text, sizeof text - 1);

	if (fd >= 0)
		own_call1(thread, __NR_close, fd);
	for (long i = 0; i + 11 < size; i++) {
		if (text[i] == '\n' && begins_with(text + i + 1, "Threads:\t1\n"))
			return true;
	}
	return false;
}

void pages_begin_again(struct thread *thread)
{
	struct process_memory *m = memory();
	const uint64_t needed = SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS);

	if (by_pages() || !m->pages_again || !thread->log || position(thread) < m->pages_from ||
	        thread->number != 1 || process()->watches || process()->has_natives || process()->seccomp ||
	        m->veil_count || thread->sent & needed || shares_memory(thread))
		return;
	m->pages_from = position(thread) + AGAIN_AFTER;
	if (!has_one_thread(thread) || has_open_maps(thread) || m->limits[LIMIT_DATA].own.soft != UINT64_MAX)
		return;
	m->page_range_count = 0;
	pages()->stack = 0;
	settle_x87_pc(thread); /* all code is about to be translated anew */
	if (!read_maps(thread) || ask(thread, OP_PAGES, 0, 0, 0) != STATUS_OK) {
		m->page_range_count = 0;
		m->pages_again = 0;
		return;
	}
	pages()->brk = pages()->brk_most = own_call1(thread, __NR_brk, 0);
	pages()->kept_count = pages()->writes.count = 0;
	m->pages = 1;
}
