#include "debug/word_map.h"

const struct word_page *word_map_page(const struct word_map *map, uint64_t address)
{
	uint32_t number = index_find(&map->index, address & -WORD_MAP_PAGE);

	return number == INDEX_NONE ? NULL : map->pages.items[number];
}

void word_map_set(struct word_map *map, uint64_t address, uint32_t number)
{
	uint64_t at = address & -WORD_MAP_PAGE;
	uint32_t found = index_find(&map->index, at);

	if (found == INDEX_NONE) {
		struct word_page *page = malloc(sizeof *page);
		if (!page)
			abort();
		memset(page, 0xff, sizeof *page);
		found = vector_push(&map->pages, page);
		index_add(&map->index, at, found);
	}
	map->pages.items[found]->numbers[address % WORD_MAP_PAGE / 8] = number;
}

void word_map_deinit(struct word_map *map)
{
	for (uint32_t i = 0; i < map->pages.count; i++)
		free(map->pages.items[i]);
	vector_free(&map->pages);
	index_deinit(&map->index);
}
