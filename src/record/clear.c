#include "record/clear.h"

#include <string.h>
#include <unistd.h>

#include "record/pages.h"

#define PAGE 4096ul

static bool is_zero(const uint8_t *page)
{
	return !page[0] && memcmp(page, page + 1, PAGE - 1) == 0;
}

/* A page that was only read is the system's page of zeros: written to, it would become memory. */
static bool clear_pages(void *context, uint64_t start, uint64_t end)
{
	static const uint8_t zeros[PAGE];
	const struct memory *memory = context;
	uint8_t page[PAGE];

	for (uint64_t at = start; at < end; at += PAGE) {
		if (pread(memory->mem_fd, page, PAGE, (off_t)at) != (ssize_t)PAGE)
			return false;
		if (!is_zero(page) && pwrite(memory->mem_fd, zeros, PAGE, (off_t)at) != (ssize_t)PAGE)
			return false;
	}
	return true;
}

static bool clear_bytes(const struct memory *memory, uint64_t start, uint64_t end)
{
	static const uint8_t zeros[PAGE];

	return start >= end ||
	       pwrite(memory->mem_fd, zeros, end - start, (off_t)start) == (ssize_t)(end - start);
}

bool clear_memory(const struct memory *memory, uint64_t start, uint64_t end)
{
	uint64_t first = (start + PAGE - 1) & -PAGE, last = end & -PAGE;

	if (first > last)
		return clear_bytes(memory, start, end);
	if (!clear_bytes(memory, start, first) || !clear_bytes(memory, last, end))
		return false;
	return pages_each(memory, first, last, clear_pages, (void *)memory);
}
