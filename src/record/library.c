#include "record/library.h"

#include <stdlib.h>

#include "record/index.h"
#include "record/vector.h"

/* As much as a large build's compilers and shells need; beyond it nothing is added. */
#define LIBRARY_BYTES (256ul << 20)

struct library_entry {
	uint64_t inode, offset;
	uint32_t device_major, device_minor;
	struct translation translation;
};

struct library {
	struct index index; /* by a hash of the place; a collision hides the later one */
	VECTOR(struct library_entry) entries;
	uint64_t bytes;
};

struct library *library_create(void)
{
	struct library *library = calloc(1, sizeof *library);
	if (!library)
		abort();
	return library;
}

static struct library_entry place_of(const struct mapping *mapping, uint64_t pc)
{
	return (struct library_entry){
	        .inode = mapping->inode,
	        .offset = mapping->offset + (pc - mapping->start),
	        .device_major = mapping->device_major,
	        .device_minor = mapping->device_minor,
	};
}

static uint64_t key_of(const struct library_entry *place)
{
	uint64_t device = (uint64_t)place->device_major << 32 | place->device_minor;

	return ((place->inode * 0xff51afd7ed558ccdul) ^ (device * 0xc4ceb9fe1a85ec53ul)) + place->offset;
}

const struct translation *library_find(
        const struct library *library, const struct mapping *mapping, uint64_t pc)
{
	struct library_entry place = place_of(mapping, pc);
	uint32_t found = index_find(&library->index, key_of(&place));

	if (found == INDEX_NONE)
		return NULL;
	const struct library_entry *entry = &library->entries.items[found];
	bool same = entry->inode == place.inode && entry->offset == place.offset &&
	            entry->device_major == place.device_major && entry->device_minor == place.device_minor;
	return same ? &entry->translation : NULL;
}

static uint64_t size_of(const struct translation *t)
{
	return t->code_size + t->fixup_count * sizeof *t->fixups + t->site_count * sizeof *t->sites +
	       t->entry_count * sizeof *t->entries + t->record_count * sizeof *t->records +
	       t->source_byte_count;
}

void library_keep(
        struct library *library, const struct mapping *mapping, uint64_t pc, struct translation *translation)
{
	struct library_entry entry = place_of(mapping, pc);
	uint64_t key = key_of(&entry);

	if (library->bytes > LIBRARY_BYTES || index_find(&library->index, key) != INDEX_NONE) {
		translation_free(translation);
		return;
	}
	entry.translation = *translation;
	library->bytes += size_of(translation);
	index_add(&library->index, key, vector_push(&library->entries, entry));
}
