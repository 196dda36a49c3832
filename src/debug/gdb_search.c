/*
 * gdb's `find`. What is not known is not what is looked for; gdb itself, which has no word for that, would
 * find what is filled in, and would give up at the first piece of which nothing is known.
 */
#include <stdlib.h>
#include <string.h>

#include "debug/gdb_session.h"

#define PAGE         4096ul
#define UNKNOWN_MOST 256ul /* pages, one behind the other: what follows may be all of the address space */

struct search {
	uint64_t start, size;
	const char *pattern;
	size_t pattern_size;
	uint8_t *bytes, *known; /* the page, behind what may be the beginning of a match at the end of the one
	                           before */
	size_t kept;
};

/* "1000;40;" and the bytes. */
static bool parse(struct search *search, const char *packet, size_t packet_size)
{
	const char *text = packet + strlen(GDB_SEARCH_PACKET);

	if (!gdb_hex(&text, &search->start) || !gdb_skip(&text, ';') || !gdb_hex(&text, &search->size) ||
	        !gdb_skip(&text, ';'))
		return false;
	search->pattern = text;
	search->pattern_size = packet_size - (size_t)(text - packet);
	if (search->start && search->size > -search->start)
		search->size = -search->start;
	return search->pattern_size > 0;
}

/* Where in what is there it is; or `size`. */
static size_t find(const struct search *search, size_t size)
{
	size_t length = search->pattern_size;

	for (size_t i = 0; i + length <= size; i++) {
		const uint8_t *first = memchr(search->bytes + i, search->pattern[0], size - length + 1 - i);
		if (!first)
			break;
		i = (size_t)(first - search->bytes);
		if (memcmp(first, search->pattern, length) == 0 && !memchr(search->known + i, 0, length))
			return i;
	}
	return size;
}

/* Keeps what the next page may go on with. */
static void keep(struct search *search, size_t size)
{
	search->kept = size < search->pattern_size - 1 ? size : search->pattern_size - 1;
	memmove(search->bytes, search->bytes + size - search->kept, search->kept);
	memmove(search->known, search->known + size - search->kept, search->kept);
}

static void search_memory(struct gdb_session *session, struct search *search)
{
	const struct debugger *d = session->debugger;
	uint64_t unknown = 0;

	for (uint64_t done = 0, part; done < search->size; done += part) {
		uint64_t address = search->start + done;
		part = PAGE - address % PAGE;
		part = part < search->size - done ? part : search->size - done;
		gdb_memory_read(
		        session, address, search->bytes + search->kept, search->known + search->kept, part);
		size_t size = search->kept + part, found = find(search, size);
		if (found < size) {
			gdb_reply(session, "1,%lx", address - search->kept + found);
			return;
		}
		unknown = memchr(search->known + search->kept, 1, part) ? 0 : unknown + 1;
		if (unknown == UNKNOWN_MOST || d->interrupted(d->context)) {
			if (unknown == UNKNOWN_MOST)
				fprintf(stderr,
				        "bugnet: nothing is known of the memory before %#lx; the search ends "
				        "there\n",
				        address + part);
			gdb_reply(session, "E01");
			return;
		}
		keep(search, size);
	}
	gdb_reply(session, "0");
}

void gdb_search_packet(struct gdb_session *session, const char *packet, size_t packet_size)
{
	struct search search = {0};

	if (!parse(&search, packet, packet_size)) {
		gdb_reply(session, "E01");
		return;
	}
	search.bytes = malloc(PAGE + search.pattern_size);
	search.known = malloc(PAGE + search.pattern_size);
	if (!search.bytes || !search.known)
		abort();
	search_memory(session, &search);
	free(search.bytes);
	free(search.known);
}
