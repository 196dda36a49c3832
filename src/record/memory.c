#include "record/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int memory_open(struct memory *memory, pid_t pid)
{
	char path[64];

	memory->source = NULL;
	memset(memory->cached, 0, sizeof memory->cached);
	memset(memory->missing, 0, sizeof memory->missing);
	memory->maps = (struct maps){0};
	memory->maps_stale = true;
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
