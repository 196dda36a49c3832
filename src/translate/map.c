/* The hash map of map.h. */
#include <stdlib.h>

#include "translate/map.h"

/* Fibonacci hashing: neighbouring pcs, the usual case, land far apart. */
static uint32_t map_hash(uint64_t pc, uint32_t size)
{
	return (uint32_t)(pc * 0x9e3779b97f4a7c15u >> 32) & (size - 1);
}

static void map_place(struct map *map, uint64_t pc, uint32_t value)
{
	uint32_t i = map_hash(pc, map->size);

	while (map->slots[i].value != MAP_NONE)
		i = (i + 1) & (map->size - 1);
	map->slots[i].pc = pc;
	map->slots[i].value = value;
}

static bool map_grow(struct map *map)
{
	struct map old = *map;
	uint32_t size = old.size ? old.size * 2 : 256;
	struct map_slot *slots = malloc(size * sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < size; i++)
		slots[i].value = MAP_NONE;
	map->slots = slots;
	map->size = size;
	for (uint32_t i = 0; i < old.size; i++)
		if (old.slots[i].value != MAP_NONE)
			map_place(map, old.slots[i].pc, old.slots[i].value);
	free(old.slots);
	return true;
}

void map_deinit(struct map *map)
{
	free(map->slots);
	*map = (struct map){0};
}

uint32_t map_find(const struct map *map, uint64_t pc)
{
	if (!map->size)
		return MAP_NONE;
	for (uint32_t i = map_hash(pc, map->size);; i = (i + 1) & (map->size - 1))
		if (map->slots[i].value == MAP_NONE || map->slots[i].pc == pc)
			return map->slots[i].value;
}

bool map_add(struct map *map, uint64_t pc, uint32_t value)
{
	if (map->count * 2 >= map->size && !map_grow(map))
		return false;
	map_place(map, pc, value);
	map->count++;
	return true;
}
