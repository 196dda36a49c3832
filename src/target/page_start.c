/*
 * Where whole pages begin to be logged (pages.c): with the program, and again when what ended it is over.
 * What it has mapped is read from the kernel.
 */
#include "target/pages.h"

#define MAPS_CHUNK   4096
#define LINE_MAXIMUM 512

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
	if (overlaps_us(range.start, range.end - range.start) || path_begins_with(path, "[v")) {
		if (path_begins_with(path, "[vdso]")) {
			pages()->vdso = (struct range){range.start, range.end};
			range.whole = 1;
			page_ranges_insert(range);
		}
		return true;
	}
	if (shared || memory()->page_range_count > RANGES - RANGES_LEFT)
		return false;
	range.file = path[0] == '/';
	range.copied = range.file && !path_is_immutable(path);
	if (range.copied && !is_of_image(&range, path))
		return false;
	if (path_begins_with(path, "[stack]"))
		pages()->stack = range.end - PAGE;
	page_ranges_insert(range);
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

/* The first string behind argc, at the program's first instruction. */
static uint64_t first_argument(const struct thread *thread)
{
	const uint64_t *word = (const uint64_t *)thread->regs.gpr[RSP];

	return word[0] ? word[1] : word[2];
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
	memory()->arguments = first_argument(thread);
	memory()->pages = 1;
	memory()->pages_again = AGAIN_MOST;
	pages_close();
}

/* ---- beginning again ---- */

static bool file_begins_with(struct thread *thread, const char *path, const char *start)
{
	char text[32] = {0};

	return own_call3(thread, __NR_readlink, path, text, sizeof text - 1) > 0 &&
	       path_begins_with(text, start);
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
		if (text[i] == '\n' && path_begins_with(text + i + 1, "Threads:\t1\n"))
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
