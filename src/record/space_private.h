/* Shared by the files that make up a space: space.c, place.c, link.c, regions.c. */
#ifndef BUGNET_RECORD_SPACE_PRIVATE_H
#define BUGNET_RECORD_SPACE_PRIVATE_H

#include "record/space.h"

static inline uint64_t code_address(const struct space_segment *segment, uint32_t code)
{
	return segment->layout.base + segment->layout.code + code;
}

static inline uint8_t *code_memory(const struct space_segment *segment, uint32_t code)
{
	return segment->memory + segment->layout.code + code;
}

/*
 * Nearly all questions whether a pc is known are answered by one bit: no. Neighbours share a
 * cache line, because the questions come one instruction after the other.
 */
static inline uint32_t known_bit(uint64_t pc)
{
	uint32_t line =
	        (uint32_t)((pc >> 9) * 0x9e3779b97f4a7c15ul >> 50); /* KNOWN_FILTER_BYTES / 64 of them */

	return line << 9 | (pc & 511);
}

/* ---- place.c ---- */
/* Copies a translation into the segment's code; *code is where. Returns 0, -ENOSPC when full, -ERANGE when a
 * program address that must be near is not. */
int place(struct space *space, unsigned segment, const struct translation *translation, uint32_t *code);
/* Changes a branch that threads may be running through. */
void patch_rel32(const struct space_segment *segment, uint32_t offset, uint64_t target);

/* ---- link.c ---- */
uint32_t entry_for(struct space *space, uint64_t pc);
void free_patterns(struct space *space);
/* A branch at `offset` wants to go to the entry. exit: its exit's code offset + 1, or 0. */
int add_site(struct space *space, unsigned segment, uint32_t offset, uint32_t exit, uint32_t entry);
/* Makes the branch lead out for good. */
int remove_site(struct space *space, uint32_t site);
int entry_link(struct space *space, uint32_t entry, unsigned segment, uint32_t code);
int entry_unlink(struct space *space, uint32_t entry);
void chain_thunk(struct space *space, uint32_t thunk);
void unchain_thunk(struct space *space, uint32_t thunk);
/* Makes the entry reachable through the table that INDIRECT() names, and through the first one of every other
 * segment. */
int make_indirect(struct space *space, uint32_t entry, uint64_t indirect);
/* Is the entry reachable where the thunk would make it so? */
bool is_reachable(const struct space *space, const struct space_thunk *thunk);

/* ---- regions.c ---- */
struct space_page *page_for(struct space *space, uint64_t page, bool create);
int region_add(struct space *space, unsigned segment, const struct translation *translation, uint32_t code);
/* Makes a dormant region reachable again if its source is unchanged. */
bool region_revive(struct space *space, struct memory *memory, uint32_t region);

#endif
