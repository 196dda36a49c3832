#include "record/index.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ul) >> 32);
}

uint32_t index_find(const struct index *index, uint64_t key)
{
	if (!index->capacity)
		return INDEX_NONE;
	for (uint32_t i = hash(key);; i++) {
		const struct index_slot *slot = &index->slots[i & (index->capacity - 1)];
		if (slot->value == INDEX_NONE || slot->key == key)
			return slot->value;
	}
}

static void insert(struct index *index, uint64_t key, uint32_t value)
{
	uint32_t i = hash(key);

	while (index->slots[i & (index->capacity - 1)].value != INDEX_NONE)
		i++;
	index->slots[i & (index->capacity - 1)] = (struct index_slot){key, value};
}

static void resize(struct index *index, uint32_t capacity)
{
	struct index old = *index;

	index->capacity = capacity;
	index->slots = malloc(capacity * sizeof *index->slots);
	if (!index->slots)
		abort();
	memset(index->slots, 0xff, capacity * sizeof *index->slots);
	for (uint32_t i = 0; i < old.capacity; i++) {
		if (old.slots[i].value != INDEX_NONE)
			insert(index, old.slots[i].key, old.slots[i].value);
	}
	free(old.slots);
}

void index_add(struct index *index, uint64_t key, uint32_t value)
{
	if (index->count * 2 >= index->capacity)
		resize(index, index->capacity ? index->capacity * 2 : 1024);
	insert(index, key, value);
	index->count++;
}

static uint32_t slot_of(const struct index *index, uint64_t key)
{
	uint32_t i = hash(key);

	while (index->slots[i & (index->capacity - 1)].key != key ||
	        index->slots[i & (index->capacity - 1)].value == INDEX_NONE)
		i++;
	return i & (index->capacity - 1);
}

void index_change(struct index *index, uint64_t key, uint32_t value)
{
	index->slots[slot_of(index, key)].value = value;
}

/* Those behind it that would not be found across the hole move up. */
void index_remove(struct index *index, uint64_t key)
{
	uint32_t mask = index->capacity - 1, hole = slot_of(index, key);

	for (uint32_t i = hole + 1; index->slots[i & mask].value != INDEX_NONE; i++) {
		uint32_t wanted = hash(index->slots[i & mask].key) & mask;
		if (((i - wanted) & mask) < ((i - hole) & mask))
			continue;
		index->slots[hole] = index->slots[i & mask];
		hole = i & mask;
	}
	index->slots[hole] = (struct index_slot){UINT64_MAX, INDEX_NONE};
	index->count--;
}

void index_copy(struct index *index, const struct index *from)
{
	*index = *from;
	if (!from->capacity)
		return;
	index->slots = malloc(from->capacity * sizeof *index->slots);
	if (!index->slots)
		abort();
	memcpy(index->slots, from->slots, from->capacity * sizeof *index->slots);
}

void index_deinit(struct index *index)
{
	free(index->slots);
	*index = (struct index){0};
}
