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
#include "target/pages.h"

/* ---- the stack ---- */

/*
 * The kernel lets the stack grow, downwards, to any address that is accessed within the limit, and tells
 * nobody: what is new has the protection of the lowest page. So that one is always closed. It counts for the
 * limit what is of one mapping only, of which closed pages make several: so we count.
 */
#define K_RLIMIT_STACK 3
#define STACK_MOST     (1ul << 33)
#define GROWTH         (16 * PAGE)
#define BEYOND         (16ul << 20) /* a frame that is larger than what is left of it */

static uint64_t stack_start(void)
{
	uint64_t start = pages()->stack;
	const struct page_range *range;

	while ((range = page_range_at(start)))
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

	if (top - address > limit + BEYOND)
		return false; /* a bad address */
	if (top - address > limit) {
		/* There it grew, or would, for the kernel sees less of it: once it is one mapping again that
		 * is right. */
		thread->leaves_pages = LEAVES_FOR_STACK;
		return false;
	}
	if (address < end)
		probe_stack(address & -PAGE);
	probe_stack(wanted);
	while (!page_range_at(start - PAGE) && syscall3(__NR_mincore, start - PAGE, PAGE, &resident) == 0)
		start -= PAGE;
	if (start == end)
		return false;
	struct page_range grown = {.start = start, .end = end, .protection = K_PROT_READ | K_PROT_WRITE};
	struct page_range *above = page_range_at(end);
	page_ranges_change();
	if (above && above->start == end && page_ranges_alike(above, &grown))
		above->start = start;
	else
		page_ranges_insert(grown);
	page_ranges_change();
	page_protect(start, end, K_PROT_NONE);
	return address >= start;
}

/* Is it where the stack would grow to, with nothing in between? */
static bool is_below_stack(uint64_t address)
{
	uint32_t n = page_range_behind(address);

	return address < pages()->stack && pages()->stack - address < STACK_MOST &&
	       n < memory()->page_range_count && pages()->ranges[n].start > address &&
	       pages()->ranges[n].start == stack_start();
}

bool pages_is_closed(struct thread *thread, uint64_t address)
{
	if (!by_pages() || pages()->probes)
		return false;
	if (is_below_stack(address) && !grow_stack(thread, address))
		return false;
	const struct page_range *range = page_range_at(address);
	return range && range->protection && !range->fresh && !range->whole && !page_is_open(address & -PAGE);
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
	/* The arguments and the environment are what others read of a process: ps, pgrep -f, monitors. */
	uint64_t strings = memory()->arguments, end = pages()->stack + PAGE;
	if (strings && strings < end)
		pages_open(thread, here, strings, end - strings);
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
	if (range->copied && page_protect(page, page + PAGE, K_PROT_READ | K_PROT_WRITE) == 0)
		probe_write((void *)page, 1);
}

/* For want of room, or of mappings, all of it. */
void pages_open_range(struct thread *thread, uint64_t here, struct page_range *range)
{
	for (uint64_t page = range->start; range->copied && page < range->end; page += PAGE) {
		if (!page_is_open(page))
			make_own(range, page);
	}
	if (page_protect(range->start, range->end, range->protection) < 0)
		stub_panic("a page cannot be opened at", range->start);
	for (uint64_t page = range->start; page < range->end; page += PAGE) {
		if (!page_is_open(page))
			log_page(thread, here, page, range->stale);
	}
	range->fresh = 1;
}

static void open_page(struct thread *thread, uint64_t here, struct page_range *range, uint64_t page)
{
	struct pages *p = pages();
	int neighbours = page_is_open(page - PAGE) + page_is_open(page + PAGE);

	if (range->start == page && page <= p->stack && page == stack_start()) {
		grow_stack(thread, page);
		range = page_range_at(page);
	}

	if (!page_region(page, true) || p->lone > LONE_FULL) {
		pages_open_range(thread, here, range);
		return;
	}
	if (p->lone > LONE_MANY || p->region_count > REGIONS_MANY)
		thread->leaves_pages = LEAVES_FOR_MAPPINGS;
	make_own(range, page);
	if (page_protect(page, page + PAGE, range->protection) < 0) {
		pages_open_range(thread, here, range);
		return;
	}
	p->lone += 1 - neighbours;
	p->opened++;
	page_set_open(page, true);
	log_page(thread, here, page, range->stale);
}

void pages_open(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	if (!by_pages() || !size || address + size < address)
		return;
	if (is_below_stack(address))
		grow_stack(thread, address);
	for (uint64_t page = address & -PAGE; page < address + size; page += PAGE) {
		uint32_t n = page_range_behind(page);
		if (n == memory()->page_range_count)
			return;
		struct page_range *range = &pages()->ranges[n];
		if (range->start > page)
			page = range->start - PAGE; /* nothing until there */
		else if (range->protection && !range->fresh && !range->whole && !page_is_open(page))
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

	page_ranges_change();
	uint32_t count = memory()->page_range_count;
	p->brk_most = p->brk;
	for (uint32_t n = 0; n < count;) {
		uint64_t start = p->ranges[n].start, end = start;
		for (; n < count && p->ranges[n].start == end && !p->ranges[n].whole; n++) {
			p->ranges[n].fresh = p->ranges[n].stale = 0;
			end = p->ranges[n].end;
		}
		page_protect(start, end, K_PROT_NONE);
		if (n < count && p->ranges[n].whole)
			n++;
	}
	page_ranges_merge();
	memset(p->regions, 0, sizeof p->regions);
	p->region_count = 0;
	p->lone = 0;
	p->opened = 0;
	page_ranges_change();
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
			page_protect(range->start, range->end, range->protection);
	}
	page_ranges_change();
	memory()->page_range_count = 0;
	memory()->pages = 0;
	page_ranges_change();
}

/* Is it over soon? A child is made, a file is looked at. */
static bool is_passing(uint32_t why)
{
	switch (why) {
	case LEAVES_FOR_CALL | __NR_open:
	case LEAVES_FOR_CALL | __NR_openat:
	case LEAVES_FOR_CALL | __NR_clone:
	case LEAVES_FOR_CALL | __NR_clone3:
	case LEAVES_FOR_CALL | __NR_vfork:
	case LEAVES_FOR_SIGNAL:
	case LEAVES_FOR_STACK:
	case LEAVES_FOR_INSTRUCTION:
		return true;
	default:
		return false;
	}
}

static void may_begin_again(uint32_t why, uint64_t here)
{
	struct process_memory *m = memory();
	bool passing = is_passing(why);
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
