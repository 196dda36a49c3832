/*
 * Reading program code. The caller's read() may be a system call, so bytes are
 * taken from a pc to the end of its page at once and kept while one region is
 * translated.
 */
#ifndef BUGNET_TRANSLATE_FETCH_H
#define BUGNET_TRANSLATE_FETCH_H

#include "translate/map.h"
#include "translate/translate.h"

#define INSTRUCTION_BYTES_MAX 15

struct fetch_page;

struct fetcher {
	const struct translate_request *request;
	struct map numbers; /* page address -> index */
	struct fetch_page **pages;
	uint32_t page_count, page_capacity;
	bool failed; /* out of memory */
};

void fetch_init(struct fetcher *fetcher, const struct translate_request *request);
void fetch_deinit(struct fetcher *fetcher);

/* Copies the up to 15 bytes at pc that can be read; returns how many. */
unsigned fetch(struct fetcher *fetcher, uint64_t pc, uint8_t bytes[INSTRUCTION_BYTES_MAX]);

/*
 * The vsyscall page is executable and not readable: its three functions are
 * known by their addresses, and the stub calls them. `fetch` gives one byte for
 * each of them, which stands for all of it.
 */
bool fetch_in_vsyscall_page(uint64_t pc);
bool fetch_vsyscall_entry(uint64_t pc);

#endif
