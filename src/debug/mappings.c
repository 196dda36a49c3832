#include "debug/mappings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096ul
#define HOLE "[hole]"

/* ---- the list ---- */

static void insert(struct mappings *mappings, uint32_t at, struct mapping mapping)
{
	vector_push(&mappings->items, mapping);
	memmove(&mappings->items.items[at + 1], &mappings->items.items[at],
	        (mappings->items.count - 1 - at) * sizeof mapping);
	mappings->items.items[at] = mapping;
}

/* From here on it is a mapping of its own. */
static void split(struct mappings *mappings, uint64_t address)
{
	for (uint32_t i = 0; i < mappings->items.count; i++) {
		struct mapping *m = &mappings->items.items[i], rest = *m;
		if (address <= m->start || address >= m->end)
			continue;
		m->end = address;
		rest.offset += *rest.name == '/' ? address - rest.start : 0;
		rest.start = address;
		insert(mappings, i + 1, rest);
		return;
	}
}

void mappings_unmap(struct mappings *mappings, uint64_t start, uint64_t end)
{
	uint32_t kept = 0;

	split(mappings, start);
	split(mappings, end);
	for (uint32_t i = 0; i < mappings->items.count; i++) {
		const struct mapping *m = &mappings->items.items[i];
		if (m->start < start || m->end > end)
			mappings->items.items[kept++] = *m;
	}
	mappings->items.count = kept;
}

void mappings_map(struct mappings *mappings, struct mapping mapping)
{
	uint32_t at = 0;

	if (mapping.start >= mapping.end)
		return;
	mappings_unmap(mappings, mapping.start, mapping.end);
	while (at < mappings->items.count && mappings->items.items[at].start < mapping.start)
		at++;
	insert(mappings, at, mapping);
}

void mappings_protect(struct mappings *mappings, uint64_t start, uint64_t end, int protection)
{
	split(mappings, start);
	split(mappings, end);
	for (uint32_t i = 0; i < mappings->items.count; i++) {
		struct mapping *m = &mappings->items.items[i];
		if (m->start >= start && m->end <= end)
			m->protection = protection;
	}
}

void mappings_deinit(struct mappings *mappings)
{
	vector_free(&mappings->items);
}

/* ---- what the log tells ---- */

struct finding {
	struct mappings *mappings;
	struct debugger *debugger;
	VECTOR(const struct happening *) calls; /* that change memory, in the order of time */
	uint64_t heap, heap_end;                /* where it begins and ends, or 0 */
	uint64_t stack;                         /* the first thread's */
};

static bool changes_memory(const struct happening *h)
{
	if (h->kind != HAPPENED_CALL || (h->result < 0 && h->result > -4096))
		return false;
	return h->number == SYS_mmap || h->number == SYS_munmap || h->number == SYS_mprotect ||
	       h->number == SYS_mremap || h->number == SYS_brk || h->number == SYS_pkey_mprotect;
}

static int compare_times(const void *a, const void *b)
{
	const struct happening *x = *(const struct happening *const *)a,
	                       *y = *(const struct happening *const *)b;

	return x->time_after < y->time_after ? -1 : x->time_after > y->time_after;
}

static void find_calls(struct finding *f, bool to_the_end)
{
	struct debugger *d = f->debugger;

	f->calls.count = 0;
	for (uint32_t i = 0; i < d->thread_count; i++) {
		uint32_t id = d->threads[i].recorded->id;
		uint64_t here = debugger_place(d, i).position;
		const struct happening *h = chronicle_next(&d->chronicle, id, 0);
		for (; h && (to_the_end || h->position < here);
		        h = chronicle_following(&d->chronicle, id, h)) {
			if (changes_memory(h))
				vector_push(&f->calls, h);
		}
	}
	if (f->calls.count)
		qsort(f->calls.items, f->calls.count, sizeof *f->calls.items, compare_times);
}

/* The code log has all files that were ever mapped, and where. */
static const struct codelog_file *mapped_file(const struct debugger *d, uint64_t start, uint64_t offset)
{
	const struct codelog *log = &d->recorded->codelog;

	for (uint32_t i = 0; i < log->count; i++) {
		for (uint32_t k = 0; k < log->files[i].mapping_count; k++) {
			const struct codelog_mapping *m = &log->files[i].mappings[k];
			if (start - m->address < m->length && offset - m->offset == start - m->address)
				return &log->files[i];
		}
	}
	return NULL;
}

static void map(struct finding *f, const struct happening *h)
{
	uint64_t start = (uint64_t)h->result, length = (h->arguments[1] + PAGE - 1) & -PAGE;
	bool anonymous = h->arguments[3] & MAP_ANONYMOUS;
	const struct codelog_file *file = anonymous ? NULL : mapped_file(f->debugger, start, h->arguments[5]);

	mappings_map(f->mappings, (struct mapping){.start = start,
	                                  .end = start + length,
	                                  .protection = (int)h->arguments[2],
	                                  .shared = h->arguments[3] & MAP_SHARED,
	                                  .offset = anonymous ? 0 : h->arguments[5],
	                                  .name = file ? file->path : "",
	                                  .inode = file ? file->inode : 0});
}

/* What was touched there is still in the replayed process, but there is nothing. */
static void leave_hole(struct finding *f, uint64_t start, uint64_t end)
{
	mappings_map(f->mappings, (struct mapping){.start = start, .end = end, .name = HOLE});
}

static void fill_holes(struct mappings *mappings)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < mappings->items.count; i++) {
		if (strcmp(mappings->items.items[i].name, HOLE) != 0)
			mappings->items.items[kept++] = mappings->items.items[i];
	}
	mappings->items.count = kept;
}

static void move_mapping(struct finding *f, const struct happening *h)
{
	uint64_t from = h->arguments[0], size = (h->arguments[1] + PAGE - 1) & -PAGE;
	uint64_t to = (uint64_t)h->result, wanted = (h->arguments[2] + PAGE - 1) & -PAGE;
	struct mapping moved = {.protection = PROT_READ | PROT_WRITE, .name = ""};

	for (uint32_t i = 0; i < f->mappings->items.count; i++) {
		const struct mapping *m = &f->mappings->items.items[i];
		if (from - m->start < m->end - m->start) {
			moved = *m;
			moved.offset += *m->name == '/' ? from - m->start : 0;
		}
	}
	if (size)
		leave_hole(f, from, from + size);
	moved.start = to;
	moved.end = to + wanted;
	mappings_map(f->mappings, moved);
}

static void set_break(struct finding *f, const struct happening *h)
{
	uint64_t end = ((uint64_t)h->result + PAGE - 1) & -PAGE;

	if (!f->heap)
		f->heap = end;
	if (end < f->heap_end)
		leave_hole(f, end, f->heap_end);
	f->heap_end = end;
	mappings_map(f->mappings, (struct mapping){.start = f->heap,
	                                  .end = end,
	                                  .protection = PROT_READ | PROT_WRITE,
	                                  .name = "[heap]"});
}

static void follow(struct finding *f, const struct happening *h)
{
	uint64_t start = h->arguments[0], length = (h->arguments[1] + PAGE - 1) & -PAGE;

	switch (h->number) {
	case SYS_mmap:
		map(f, h);
		break;
	case SYS_munmap:
		leave_hole(f, start, start + length);
		break;
	case SYS_mremap:
		move_mapping(f, h);
		break;
	case SYS_brk:
		set_break(f, h);
		break;
	default:
		mappings_protect(f->mappings, start, start + length, (int)h->arguments[2]);
	}
}

/* ---- what was there before, and what else was touched ---- */

/* Is there a call of the log that mapped the file? Then it was not there from the beginning. */
static bool is_mapped_by_call(const struct finding *f, const struct image *image)
{
	for (uint32_t i = 0; i < f->calls.count; i++) {
		const struct happening *h = f->calls.items[i];
		if (h->number == SYS_mmap && image->start - (uint64_t)h->result < h->arguments[1])
			return true;
	}
	return false;
}

static void add_segment(void *context, const struct image *image, const Elf64_Phdr *header)
{
	struct finding *f = context;
	uint64_t start = header->p_vaddr + image->distance, end = start + header->p_filesz;
	int protection = (header->p_flags & PF_R ? PROT_READ : 0) |
	                 (header->p_flags & PF_W ? PROT_WRITE : 0) | (header->p_flags & PF_X ? PROT_EXEC : 0);

	if (is_mapped_by_call(f, image))
		return;
	mappings_map(f->mappings, (struct mapping){.start = start & -PAGE,
	                                  .end = (end + PAGE - 1) & -PAGE,
	                                  .protection = protection,
	                                  .offset = header->p_offset & -PAGE,
	                                  .name = image->file->path,
	                                  .inode = image->file->inode});
	uint64_t behind = (start + header->p_memsz + PAGE - 1) & -PAGE;
	mappings_map(f->mappings, (struct mapping){.start = (end + PAGE - 1) & -PAGE,
	                                  .end = behind,
	                                  .protection = protection,
	                                  .name = ""});
}

/* A library that no file was mapped for. */
static bool is_vdso(struct finding *f, uint64_t start)
{
	char magic[SELFMAG];

	return debugger_read(f->debugger, f->debugger->current, start, magic, SELFMAG) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The parts of the range that nothing is mapped to yet. */
static void add_touched(void *context, uint64_t start, uint64_t end)
{
	struct finding *f = context;

	while (start < end) {
		uint64_t until = end, next = end;
		for (uint32_t i = 0; i < f->mappings->items.count; i++) {
			const struct mapping *m = &f->mappings->items.items[i];
			if (m->end <= start || m->start >= end)
				continue;
			until = m->start > start ? m->start : start;
			next = m->end;
			break;
		}
		struct mapping touched = {
		        .start = start, .end = until, .protection = PROT_READ | PROT_WRITE, .name = ""};
		if (f->stack - start < until - start)
			touched.name = "[stack]";
		else if (start < until && is_vdso(f, start))
			touched.name = "[vdso]", touched.protection = PROT_READ | PROT_EXEC;
		mappings_map(f->mappings, touched);
		start = next;
	}
}

void mappings_find(struct mappings *mappings, struct debugger *d)
{
	struct finding f = {.mappings = mappings, .debugger = d};
	char why[512];

	*mappings = (struct mappings){0};
	find_calls(&f, true);
	images_each_segment(&d->images, add_segment, &f);
	find_calls(&f, false);
	for (uint32_t i = 0; i < f.calls.count; i++)
		follow(&f, f.calls.items[i]);
	vector_free(&f.calls);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		const struct standing *standing =
		        debugger_is_alive(d, i) ? debugger_look(d, i, why, sizeof why) : NULL;
		if (!standing)
			continue;
		f.stack = d->threads[i].recorded->id == 0 ? standing->state.registers.gpr[4] : 0;
		explorer_each_range(d->explorer, standing, add_touched, &f);
	}
	fill_holes(mappings);
}
