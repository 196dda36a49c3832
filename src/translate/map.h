/*
 * A hash map from program pc to a small number: which instruction starts
 * there, which exit stub leads there. Open addressing, linear probing, no
 * removal; it only lives while one region is translated.
 */
#ifndef BUGNET_TRANSLATE_MAP_H
#define BUGNET_TRANSLATE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
	uint64_t pc;
	uint32_t value; /* MAP_NONE: the slot is free */
};

struct map {
	struct map_slot *slots;
	uint32_t size; /* a power of two, or 0 before the first insertion */
	uint32_t count;
};

void map_deinit(struct map *map);
uint32_t map_find(const struct map *map, uint64_t pc);      /* MAP_NONE when absent */
bool map_add(struct map *map, uint64_t pc, uint32_t value); /* pc must be absent; false: out of memory */

#endif
