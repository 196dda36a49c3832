/* A hash index from 64-bit keys to the positions of records in a vector. */
#ifndef BUGNET_RECORD_INDEX_H
#define BUGNET_RECORD_INDEX_H

#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_slot {
	uint64_t key;
	uint32_t value;
};

struct index {
	struct index_slot *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count;
};

uint32_t index_find(const struct index *index, uint64_t key);
void index_add(struct index *index, uint64_t key, uint32_t value);
/* The key is there. */
void index_change(struct index *index, uint64_t key, uint32_t value);
void index_remove(struct index *index, uint64_t key);
void index_copy(struct index *index, const struct index *from);
void index_deinit(struct index *index);

#endif
