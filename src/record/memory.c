#include "record/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/layout.h"

int memory_open(struct memory *memory, pid_t pid)
{
	char path[64];

	memory->source = NULL;
	memset(memory->cached, 0, sizeof memory->cached);
	memset(memory->missing, 0, sizeof memory->missing);
	memory->maps = (struct maps){0};
	memory->maps_stale = true;
	memory->ranges_at = 0;
	memory->maps_fd = memory->pages_fd = -1;
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	memory->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (memory->mem_fd < 0)
		return -errno;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	memory->maps_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (memory->maps_fd < 0) {
		int error = errno;
		memory_close(memory);
		return -error;
	}
	snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
	memory->pages_fd = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
}

void memory_close(struct memory *memory)
{
	if (memory->mem_fd >= 0)
		close(memory->mem_fd);
	if (memory->maps_fd >= 0)
		close(memory->maps_fd);
	if (memory->pages_fd >= 0)
		close(memory->pages_fd);
	memory->mem_fd = memory->maps_fd = memory->pages_fd = -1;
	maps_deinit(&memory->maps);
}

bool memory_alive(const struct memory *memory)
{
	char byte;

	/* The read of a dead memory ends at once; of a living one, at page 0, it fails. */
	return pread(memory->mem_fd, &byte, 1, 0) != 0;
}

void memory_changed(struct memory *memory)
{
	memory->maps_stale = true;
	memset(memory->cached, 0, sizeof memory->cached);
	memset(memory->missing, 0, sizeof memory->missing);
}

/* A page of code like that of a file that nobody changes. */
static const struct mapping *source_mapping(struct memory *memory, uint64_t address)
{
	uint64_t page = address & -CODE_PAGE;

	if (!memory->source->has_page(memory->source->context, address))
		return NULL;
	memory->source_mapping = (struct mapping){
	        .start = page, .end = page + CODE_PAGE, .readable = true, .executable = true};
	return &memory->source_mapping;
}

static bool read_at(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	return pread(memory->mem_fd, to, size, (off_t)address) == (ssize_t)size;
}

/* What the program has mapped, as it has it: none unless whole pages are logged. False: that changes just
 * now. */
static bool read_ranges(const struct memory *memory, struct page_range **ranges, uint32_t *count)
{
	static struct process_memory ours;
	uint32_t sequence;

	*count = 0;
	if (!read_at(memory, memory->ranges_at, &ours, sizeof ours) || !ours.pages)
		return true;
	if (ours.page_sequence & 1 || ours.page_range_count > 1u << 16)
		return false;
	*count = ours.page_range_count;
	*ranges = calloc(*count + 1, sizeof **ranges);
	return *ranges && read_at(memory, ours.page_ranges, *ranges, *count * sizeof **ranges) &&
	       read_at(memory, memory->ranges_at + offsetof(struct process_memory, page_sequence), &sequence,
	               sizeof sequence) &&
	       sequence == ours.page_sequence;
}

/* The kernel shows what is closed without access, in other pieces than the program made: it is put together
 * again. */
static void add_mapping(struct maps *maps, struct mapping mapping)
{
	struct mapping *last = maps->count ? &maps->mappings[maps->count - 1] : NULL;

	if (last && last->end == mapping.start && last->inode == mapping.inode &&
	        last->readable == mapping.readable && last->writable == mapping.writable &&
	        last->executable == mapping.executable && last->shared == mapping.shared &&
	        strcmp(last->path, mapping.path) == 0 &&
	        (!mapping.inode || last->offset + (last->end - last->start) == mapping.offset))
		last->end = mapping.end;
	else
		maps->mappings[maps->count++] = mapping;
}

static void open_mappings(struct maps *maps, const struct page_range *ranges, uint32_t count)
{
	struct mapping *shown = maps->mappings;
	size_t shown_count = maps->count;
	uint32_t n = 0;

	maps->capacity = shown_count + 2 * count + 1;
	maps->mappings = calloc(maps->capacity, sizeof *shown);
	maps->count = 0;
	if (!maps->mappings)
		abort();
	for (size_t i = 0; i < shown_count; i++) {
		for (uint64_t at = shown[i].start; at < shown[i].end;) {
			struct mapping piece = shown[i];
			piece.offset += at - piece.start;
			piece.start = at;
			while (n < count && ranges[n].end <= at)
				n++;
			/* What has access is as the program has it: a call that changes it may not be noted
			 * yet. */
			bool none = !piece.readable && !piece.writable && !piece.executable;
			if (none && n < count && ranges[n].start <= at) {
				piece.readable = ranges[n].protection & PROT_READ;
				piece.writable = ranges[n].protection & PROT_WRITE;
				piece.executable = ranges[n].protection & PROT_EXEC;
			}
			uint64_t next = n == count             ? piece.end
			                : ranges[n].start > at ? ranges[n].start
			                                       : ranges[n].end;
			if (next < piece.end)
				piece.end = next;
			add_mapping(maps, piece);
			at = piece.end;
		}
	}
	free(shown);
}

static void look_behind_closed(struct memory *memory)
{
	struct page_range *ranges = NULL;
	uint32_t count = 0;
	for (unsigned tries = 0; memory->ranges_at && tries < 1000; tries++) {
		if (read_ranges(memory, &ranges, &count)) {
			if (count)
				open_mappings(&memory->maps, ranges, count);
			break;
		}
		free(ranges);
		ranges = NULL;
		maps_read(&memory->maps, memory->maps_fd);
	}
	free(ranges);
}

const struct mapping *memory_mapping(struct memory *memory, uint64_t address)
{
	if (memory->source)
		return source_mapping(memory, address);

	uint64_t *missing = &memory->missing[address / CODE_PAGE % MEMORY_MISSING_PAGES];
	const struct mapping *mapping = memory->maps_stale ? NULL : maps_find(&memory->maps, address);

	if (mapping)
		return mapping;
	/* Whoever makes code tells us, so once is enough to look for it. */
	if (*missing == ((address & -CODE_PAGE) | 1))
		return NULL;
	if (maps_read(&memory->maps, memory->maps_fd) < 0)
		return NULL;
	look_behind_closed(memory);
	memory->maps_stale = false;
	mapping = maps_find(&memory->maps, address);
	if (!mapping)
		*missing = (address & -CODE_PAGE) | 1;
	return mapping;
}

static uint64_t *cache_slot(struct memory *memory, uint64_t page)
{
	return &memory->cached[page / CODE_PAGE % MEMORY_CACHED_PAGES];
}

void memory_forget(struct memory *memory, uint64_t page)
{
	if (*cache_slot(memory, page) == (page | 1))
		*cache_slot(memory, page) = 0;
}

const uint8_t *memory_page(struct memory *memory, uint64_t page, bool keep)
{
	uint64_t *slot = cache_slot(memory, page);
	uint8_t *bytes = memory->pages[slot - memory->cached];

	if (keep && *slot == (page | 1))
		return bytes;
	*slot = 0;
	if (pread(memory->mem_fd, bytes, CODE_PAGE, (off_t)page) != (ssize_t)CODE_PAGE)
		return NULL;
	*slot = keep ? page | 1 : 0;
	return bytes;
}
