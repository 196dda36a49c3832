#include "record/library.h"

#include <stdlib.h>

#include "record/index.h"
#include "record/vector.h"

/* As much as a large build's compilers and shells need; beyond it nothing is added. */
#define LIBRARY_BYTES (256ul << 20)

struct library_entry {
	uint64_t inode, offset;
	uint32_t device_major, device_minor;
	uint32_t next; /* index + 1 of what was asked for after it */
	bool indirect; /* asked for by an indirect branch: a place of its own in the order of requests */
	struct translation translation; /* without code: there is none */
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

	if (place->indirect)
		device = ~device;
	return ((place->inode * 0xff51afd7ed558ccdul) ^ (device * 0xc4ceb9fe1a85ec53ul)) + place->offset;
}

static uint32_t find(const struct library *library, const struct library_entry *place)
{
	uint32_t found = index_find(&library->index, key_of(place));

	if (found == INDEX_NONE)
		return LIBRARY_NONE;
	const struct library_entry *entry = &library->entries.items[found];
	bool same = entry->inode == place->inode && entry->offset == place->offset &&
	            entry->device_major == place->device_major &&
	            entry->device_minor == place->device_minor && entry->indirect == place->indirect;
	return same ? found : LIBRARY_NONE;
}

static uint32_t find_or_add(struct library *library, const struct library_entry *place)
{
	uint32_t number = find(library, place);

	if (number == LIBRARY_NONE && library->bytes <= LIBRARY_BYTES &&
	        index_find(&library->index, key_of(place)) == INDEX_NONE) {
		number = vector_push(&library->entries, *place);
		index_add(&library->index, key_of(place), number);
		library->bytes += sizeof *place;
	}
	return number;
}

uint32_t library_number(struct library *library, const struct mapping *mapping, uint64_t pc, bool indirect)
{
	struct library_entry place = place_of(mapping, pc);

	place.indirect = indirect;
	return find_or_add(library, &place);
}

const struct translation *library_find(
        const struct library *library, const struct mapping *mapping, uint64_t pc)
{
	struct library_entry place = place_of(mapping, pc);
	uint32_t number = find(library, &place);

	if (number == LIBRARY_NONE || !library->entries.items[number].translation.code)
		return NULL;
	return &library->entries.items[number].translation;
}

bool library_indirect(const struct library *library, uint32_t number)
{
	return library->entries.items[number].indirect;
}

void library_follows(struct library *library, uint32_t first, uint32_t then)
{
	if (first != then && !library->entries.items[first].next)
		library->entries.items[first].next = then + 1;
}

uint32_t library_next(const struct library *library, uint32_t number)
{
	return library->entries.items[number].next - 1;
}

uint64_t library_pc(const struct library *library, uint32_t number, const struct maps *maps)
{
	const struct library_entry *entry = &library->entries.items[number];

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		if (mapping->inode == entry->inode && mapping->executable &&
		        mapping->device_major == entry->device_major &&
		        mapping->device_minor == entry->device_minor &&
		        entry->offset - mapping->offset < mapping->end - mapping->start)
			return mapping->start + (entry->offset - mapping->offset);
	}
	return 0;
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
	struct library_entry place = place_of(mapping, pc);
	uint32_t number = find_or_add(library, &place);

	if (number == LIBRARY_NONE || library->entries.items[number].translation.code) {
		translation_free(translation);
		return;
	}
	library->entries.items[number].translation = *translation;
	library->bytes += size_of(translation);
}
