/*
 * Entries and the ways that lead to them: direct branches (sites), thunks in the
 * branch tables, and bridges between segments. An entry without code is only a
 * meeting point: every way to it leads out, to the stub, with the entry's pc.
 */
#include "record/space_private.h"

#include <errno.h>
#include <stdlib.h>

uint32_t entry_for(struct space *space, uint64_t pc)
{
	uint32_t entry = index_find(&space->entry_index, pc);

	if (entry == INDEX_NONE) {
		entry = vector_push(&space->entries, (struct space_entry){.pc = pc});
		index_add(&space->entry_index, pc, entry);
	}
	return entry;
}

/* ---- patterns ---- */

/* The small pieces that lead to an entry or away from one differ in nothing but the pc: a space makes them
 * once. */
struct pattern {
	struct translation translation;
	uint32_t literal; /* of a bridge */
};

enum pattern_kind { PATTERN_EXIT, PATTERN_BRIDGE, PATTERN_THUNK, PATTERN_COUNT };

static int make_pattern(const struct space *space, enum pattern_kind kind, struct pattern *pattern)
{
	switch (kind) {
	case PATTERN_EXIT:
		return translate_exit(0, &pattern->translation);
	case PATTERN_BRIDGE:
		return translate_bridge(0, &pattern->translation, &pattern->literal);
	default:
		return translate_thunk(0, space->loop_is_fast, &pattern->translation);
	}
}

/* Places one for pc; the caller finds what is in it at *used. */
static int place_pattern(struct space *space, unsigned segment, enum pattern_kind kind, uint64_t pc,
        uint32_t *code, const struct pattern **used)
{
	if (!space->patterns) {
		space->patterns = calloc(PATTERN_COUNT, sizeof *space->patterns);
		if (!space->patterns)
			abort();
	}
	struct pattern *pattern = &space->patterns[kind];
	if (!pattern->translation.code) {
		int error = make_pattern(space, kind, pattern);
		if (error)
			return error;
	}
	struct translation translation = pattern->translation;
	translation.pc = pc;
	if (used)
		*used = pattern;
	return place(space, segment, &translation, code);
}

void free_patterns(struct space *space)
{
	for (unsigned kind = 0; space->patterns && kind < PATTERN_COUNT; kind++)
		translation_free(&space->patterns[kind].translation);
	free(space->patterns);
}

/* ---- exits and bridges, made when they are needed ---- */

static void bridge_set(struct space *space, const struct space_bridge *bridge)
{
	const struct space_segment *segment = &space->segments[bridge->segment];
	const struct space_entry *entry = &space->entries.items[bridge->entry];
	uint64_t target = code_address(segment, bridge->exit);

	if (entry->code)
		target = code_address(&space->segments[entry->segment], entry->code - 1);
	__atomic_store_n((uint64_t *)code_memory(segment, bridge->literal), target, __ATOMIC_RELEASE);
}

static int bridge_for(struct space *space, unsigned segment, uint32_t number, uint32_t *code)
{
	uint32_t *known = &space->entries.items[number].bridge[segment];
	uint64_t pc = space->entries.items[number].pc;

	if (!*known) {
		const struct pattern *pattern;
		struct space_bridge bridge = {.entry = number, .segment = (uint8_t)segment};
		int error = place_pattern(space, segment, PATTERN_EXIT, pc, &bridge.exit, NULL);
		if (!error)
			error = place_pattern(space, segment, PATTERN_BRIDGE, pc, &bridge.code, &pattern);
		if (error)
			return error;
		bridge.literal = bridge.code + pattern->literal;
		*known = vector_push(&space->bridges, bridge) + 1;
		bridge_set(space, &space->bridges.items[*known - 1]);
	}
	*code = space->bridges.items[*known - 1].code;
	return 0;
}

/* ---- sites ---- */

static int site_link(struct space *space, struct space_site *site)
{
	const struct space_entry *entry = &space->entries.items[site->entry];
	uint32_t code = entry->code - 1;
	int error = 0;

	if (entry->segment != site->segment)
		error = bridge_for(space, site->segment, site->entry, &code);
	if (!error)
		patch_rel32(&space->segments[site->segment], site->offset,
		        code_address(&space->segments[site->segment], code));
	space->counters.links++;
	return error;
}

static int site_unlink(struct space *space, struct space_site *site)
{
	const struct space_segment *segment = &space->segments[site->segment];

	if (!site->exit) {
		uint32_t code;
		uint64_t pc = space->entries.items[site->entry].pc;
		int error = place_pattern(space, site->segment, PATTERN_EXIT, pc, &code, NULL);
		if (error)
			return error;
		site->exit = code + 1;
	}
	patch_rel32(segment, site->offset, code_address(segment, site->exit - 1));
	return 0;
}

int add_site(struct space *space, unsigned segment, uint32_t offset, uint32_t exit, uint32_t entry)
{
	uint32_t site = vector_push(&space->sites, (struct space_site){.offset = offset,
	                                                   .exit = exit,
	                                                   .entry = entry,
	                                                   .next = space->entries.items[entry].sites,
	                                                   .segment = (uint8_t)segment});
	if (space->entries.items[entry].sites)
		space->sites.items[space->entries.items[entry].sites - 1].previous = site + 1;
	space->entries.items[entry].sites = site + 1;
	if (space->entries.items[entry].code)
		return site_link(space, &space->sites.items[site]);
	return exit ? 0 : site_unlink(space, &space->sites.items[site]);
}

int remove_site(struct space *space, uint32_t number)
{
	struct space_site *site = &space->sites.items[number];

	if (site->previous)
		space->sites.items[site->previous - 1].next = site->next;
	else
		space->entries.items[site->entry].sites = site->next;
	if (site->next)
		space->sites.items[site->next - 1].previous = site->previous;
	return site_unlink(space, site);
}

static int entry_update(struct space *space, uint32_t number)
{
	struct space_entry *entry = &space->entries.items[number];
	int error = 0;

	for (uint32_t i = entry->sites; i && !error; i = space->sites.items[i - 1].next) {
		struct space_site *site = &space->sites.items[i - 1];
		error = entry->code ? site_link(space, site) : site_unlink(space, site);
	}
	for (unsigned s = 0; s < space->segment_count; s++) {
		if (entry->bridge[s])
			bridge_set(space, &space->bridges.items[entry->bridge[s] - 1]);
	}
	return error;
}

int entry_link(struct space *space, uint32_t entry, unsigned segment, uint32_t code)
{
	space->entries.items[entry].segment = (uint8_t)segment;
	space->entries.items[entry].code = code + 1;
	uint32_t bit = known_bit(space->entries.items[entry].pc);
	space->known_filter[bit / 8] |= (uint8_t)(1 << bit % 8);
	return entry_update(space, entry);
}

int entry_unlink(struct space *space, uint32_t entry)
{
	space->entries.items[entry].code = 0;
	return entry_update(space, entry);
}

/* ---- thunks ---- */

static uint64_t *table_slot(const struct space_segment *segment, uint64_t pc)
{
	return (uint64_t *)(segment->memory + LAYOUT_TABLE) + (pc & (BRANCH_TABLE_ENTRIES - 1));
}

static uint32_t *chain_of(const struct space *space, const struct space_thunk *thunk)
{
	uint64_t pc = space->entries.items[thunk->entry].pc;
	return &space->segments[thunk->segment].chains[pc & (BRANCH_TABLE_ENTRIES - 1)];
}

/* Where a chain goes on: to a thunk (index + 1), or out. */
static uint64_t chain_target(const struct space *space, const struct space_segment *segment, uint32_t thunk)
{
	return thunk ? code_address(segment, space->thunks.items[thunk - 1].offset)
	             : segment->routines[ROUTINE_MISS];
}

void chain_thunk(struct space *space, uint32_t number)
{
	struct space_thunk *thunk = &space->thunks.items[number];
	struct space_segment *segment = &space->segments[thunk->segment];
	uint32_t *head = chain_of(space, thunk);

	if (thunk->chained)
		return;
	thunk->next = *head;
	thunk->chained = true;
	patch_rel32(segment, thunk->next_field, chain_target(space, segment, thunk->next));
	*head = number + 1;
	__atomic_store_n(table_slot(segment, space->entries.items[thunk->entry].pc),
	        code_address(segment, thunk->offset), __ATOMIC_RELEASE);
	space->counters.indirect_entries++;
}

void unchain_thunk(struct space *space, uint32_t number)
{
	struct space_thunk *thunk = &space->thunks.items[number];
	struct space_segment *segment = &space->segments[thunk->segment];
	uint32_t *link = chain_of(space, thunk), before = 0;

	if (!thunk->chained)
		return;
	while (*link != number + 1) {
		before = *link;
		link = &space->thunks.items[*link - 1].next;
	}
	*link = thunk->next;
	thunk->chained = false;
	uint64_t target = chain_target(space, segment, thunk->next);
	if (before)
		patch_rel32(segment, space->thunks.items[before - 1].next_field, target);
	else
		__atomic_store_n(
		        table_slot(segment, space->entries.items[thunk->entry].pc), target, __ATOMIC_RELEASE);
}

bool has_thunk(const struct space *space, uint32_t entry, unsigned segment)
{
	uint64_t pc = space->entries.items[entry].pc;
	uint32_t i = space->segments[segment].chains[pc & (BRANCH_TABLE_ENTRIES - 1)];

	for (; i; i = space->thunks.items[i - 1].next) {
		if (space->thunks.items[i - 1].entry == entry)
			return true;
	}
	return false;
}

static int make_thunk(struct space *space, uint32_t entry, unsigned segment)
{
	const struct pattern *pattern;
	uint32_t code;
	int error =
	        place_pattern(space, segment, PATTERN_THUNK, space->entries.items[entry].pc, &code, &pattern);

	if (error)
		return error;
	const struct translation *made = &pattern->translation;
	uint32_t thunk = vector_push(&space->thunks, (struct space_thunk){.entry = entry,
	                                                     .offset = code + made->entries[0].thunk,
	                                                     .next_field = code + made->entries[0].thunk_next,
	                                                     .segment = (uint8_t)segment});
	space->entries.items[entry].thunk[segment] = thunk + 1;
	error = add_site(space, segment, code + made->sites[0].offset, 0, entry);
	if (!error)
		chain_thunk(space, thunk);
	return error;
}

int make_indirect(struct space *space, uint32_t entry)
{
	for (unsigned segment = 0; segment < space->segment_count; segment++) {
		int error = has_thunk(space, entry, segment) ? 0 : make_thunk(space, entry, segment);
		if (error)
			return error;
	}
	return 0;
}
