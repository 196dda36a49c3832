/*
 * Numbers of 8-byte words by their addresses, a page of them together: accesses come to the same pages again
 * and again, and a hash of single words misses the cache with every one.
 */
#ifndef BUGNET_DEBUG_WORD_MAP_H
#define BUGNET_DEBUG_WORD_MAP_H

#include "record/index.h"
#include "record/vector.h"

#define WORD_NONE     UINT32_MAX
#define WORD_MAP_PAGE 4096ul
#define WORDS_OF_PAGE (WORD_MAP_PAGE / 8)

struct word_page {
	uint32_t numbers[WORDS_OF_PAGE]; /* or WORD_NONE */
};

/* All zero to begin with. */
struct word_map {
	struct index index; /* of pages, by their addresses */
	VECTOR(struct word_page *) pages;
};

/* The page that was looked at last, for one who looks at many words. All zero to begin with. */
struct word_cursor {
	uint64_t page; /* its address + 1 */
	const struct word_page *words;
};

void word_map_set(struct word_map *map, uint64_t address, uint32_t number);
void word_map_deinit(struct word_map *map);
/* NULL: none of its words has a number. */
const struct word_page *word_map_page(const struct word_map *map, uint64_t address);

static inline uint32_t word_map_look(const struct word_map *map, struct word_cursor *cursor, uint64_t address)
{
	uint64_t page = address & -WORD_MAP_PAGE;

	if (cursor->page != page + 1) {
		cursor->page = page + 1;
		cursor->words = word_map_page(map, page);
	}
	return cursor->words ? cursor->words->numbers[address % WORD_MAP_PAGE / 8] : WORD_NONE;
}

static inline uint32_t word_map_find(const struct word_map *map, uint64_t address)
{
	struct word_cursor cursor = {0};

	return word_map_look(map, &cursor, address);
}

#endif
