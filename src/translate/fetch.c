/*
 * The code reader of fetch.h.
 *
 * For each page one window [low, high) of its bytes is held. A miss reads from
 * the wanted pc up to the window or to the end of the page, never from before
 * pc: what lies there was not asked for and may not be code. A short answer
 * means that the bytes after it cannot be executed.
 */
#include <stdlib.h>
#include <string.h>

#include "translate/fetch.h"

#define PAGE          4096u
#define VSYSCALL_PAGE 0xffffffffff600000u

struct fetch_page {
	uint16_t low, high;
	uint8_t bytes[PAGE];
};

void fetch_init(struct fetcher *fetcher, const struct translate_request *request)
{
	*fetcher = (struct fetcher){.request = request};
}

void fetch_deinit(struct fetcher *fetcher)
{
	for (uint32_t i = 0; i < fetcher->page_count; i++)
		free(fetcher->pages[i]);
	free(fetcher->pages);
	map_deinit(&fetcher->numbers);
}

bool fetch_in_vsyscall_page(uint64_t pc)
{
	return (pc & ~(uint64_t)(PAGE - 1)) == VSYSCALL_PAGE;
}

bool fetch_vsyscall_entry(uint64_t pc)
{
	return fetch_in_vsyscall_page(pc) && pc < VSYSCALL_PAGE + 0xc00 && (pc & 0x3ff) == 0;
}

static struct fetch_page *fetch_page(struct fetcher *fetcher, uint64_t address)
{
	uint32_t number = map_find(&fetcher->numbers, address);

	if (number != MAP_NONE)
		return fetcher->pages[number];
	if (fetcher->page_count == fetcher->page_capacity) {
		uint32_t capacity = fetcher->page_capacity ? fetcher->page_capacity * 2 : 16;
		struct fetch_page **pages = realloc(fetcher->pages, capacity * sizeof(*pages));

		if (!pages)
			return NULL;
		fetcher->pages = pages;
		fetcher->page_capacity = capacity;
	}
	struct fetch_page *page = malloc(sizeof(*page));

	if (!page)
		return NULL;
	page->low = page->high = PAGE;
	if (!map_add(&fetcher->numbers, address, fetcher->page_count)) {
		free(page);
		return NULL;
	}
	return fetcher->pages[fetcher->page_count++] = page;
}

/* Copies up to `size` bytes that all lie in one page. */
static unsigned fetch_within(struct fetcher *fetcher, uint64_t pc, uint8_t *bytes, unsigned size)
{
	const struct translate_request *request = fetcher->request;
	unsigned offset = pc & (PAGE - 1);
	struct fetch_page *page = fetch_page(fetcher, pc - offset);

	if (!page) {
		fetcher->failed = true;
		return 0;
	}
	if (offset < page->low) {
		unsigned wanted = page->low - offset;
		unsigned got = request->read(request->context, pc, page->bytes + offset, wanted);

		page->low = offset;
		if (got < wanted)
			page->high = offset + got;
	}
	if (offset >= page->high)
		return 0;
	if (size > page->high - offset)
		size = page->high - offset;
	memcpy(bytes, page->bytes + offset, size);
	return size;
}

unsigned fetch(struct fetcher *fetcher, uint64_t pc, uint8_t bytes[INSTRUCTION_BYTES_MAX])
{
	unsigned room = PAGE - (pc & (PAGE - 1));

	/* One byte stands for a whole function. */
	if (fetch_in_vsyscall_page(pc)) {
		bytes[0] = 0;
		return fetch_vsyscall_entry(pc);
	}
	if (room >= INSTRUCTION_BYTES_MAX)
		return fetch_within(fetcher, pc, bytes, INSTRUCTION_BYTES_MAX);

	unsigned got = fetch_within(fetcher, pc, bytes, room);

	if (got == room)
		got += fetch_within(fetcher, pc + room, bytes + room, INSTRUCTION_BYTES_MAX - room);
	return got;
}
