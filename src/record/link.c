/*
 * Entries and the ways that lead to them: direct branches (sites), thunks in the
 * branch tables, and bridges between segments. An entry without code is only a
 * meeting point: every way to it leads out, to the stub, with the entry's pc.
 */
#include "record/space_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A chain costs a line of the instruction cache for every thunk that is passed: more than that are spread. */
#define CROWDED (BRANCH_TABLE_ENTRIES / 4)

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

static uint64_t *table_slot(const struct space_segment *segment, unsigned table, uint64_t pc)
{
	return (uint64_t *)(segment->memory + LAYOUT_TABLE) + table * BRANCH_TABLE_ENTRIES +
	       (pc & (BRANCH_TABLE_ENTRIES - 1));
}

static uint32_t *chain_in(const struct space_segment *segment, unsigned table, uint64_t pc)
{
	return &segment->chains[table * BRANCH_TABLE_ENTRIES + (pc & (BRANCH_TABLE_ENTRIES - 1))];
}

/* Where a chain goes on: to a thunk (index + 1), or out. */
static uint64_t chain_target(const struct space *space, const struct space_segment *segment, uint32_t thunk)
{
	return thunk ? code_address(segment, space->thunks.items[thunk - 1].offset)
	             : segment->routines[ROUTINE_MISS];
}

static void chain_into(struct space *space, uint32_t number, unsigned table)
{
	struct space_thunk *thunk = &space->thunks.items[number];
	struct space_segment *segment = &space->segments[thunk->segment];
	uint64_t pc = space->entries.items[thunk->entry].pc;
	uint32_t *head = chain_in(segment, table, pc);

	thunk->next = *head;
	thunk->table = (uint8_t)table;
	thunk->chained = true;
	patch_rel32(segment, thunk->next_field, chain_target(space, segment, thunk->next));
	*head = number + 1;
	__atomic_store_n(
	        table_slot(segment, table, pc), code_address(segment, thunk->offset), __ATOMIC_RELEASE);
	segment->chained++;
}

void unchain_thunk(struct space *space, uint32_t number)
{
	struct space_thunk *thunk = &space->thunks.items[number];
	struct space_segment *segment = &space->segments[thunk->segment];
	uint64_t pc = space->entries.items[thunk->entry].pc;

	if (!thunk->chained)
		return;
	uint32_t *link = chain_in(segment, thunk->table, pc), before = 0;
	while (*link != number + 1) {
		before = *link;
		link = &space->thunks.items[*link - 1].next;
	}
	*link = thunk->next;
	thunk->chained = false;
	segment->chained--;
	uint64_t target = chain_target(space, segment, thunk->next);
	if (before)
		patch_rel32(segment, space->thunks.items[before - 1].next_field, target);
	else
		__atomic_store_n(table_slot(segment, thunk->table, pc), target, __ATOMIC_RELEASE);
}

/*
 * Gives returns the other tables, and those tables the thunks that belong there. A thread that looks
 * meanwhile may not find what it wants; it asks, and is told.
 */
static void spread_thunks(struct space *space, unsigned number)
{
	struct space_segment *segment = &space->segments[number];
	struct info *info = (struct info *)(segment->memory + LAYOUT_INFO);

	segment->spread = true;
	memset(segment->chains + BRANCH_TABLE_ENTRIES, 0,
	        (BRANCH_TABLES - 1) * BRANCH_TABLE_ENTRIES * sizeof *segment->chains);
	for (unsigned i = 0; i < (BRANCH_TABLES - 1) * BRANCH_TABLE_ENTRIES; i++)
		*table_slot(segment, 1 + i / BRANCH_TABLE_ENTRIES, i) = segment->routines[ROUTINE_MISS];
	for (uint32_t i = 0; i < space->thunks.count; i++) {
		const struct space_thunk *thunk = &space->thunks.items[i];
		if (thunk->segment != number || !thunk->chained || !thunk->home)
			continue;
		unchain_thunk(space, i);
		chain_into(space, i, thunk->home);
	}
	for (unsigned i = 1; i < BRANCH_TABLES; i++)
		__atomic_store_n(&info->table_base[i],
		        (segment->layout.base + LAYOUT_TABLE + i * BRANCH_TABLE_BYTES) / 8, __ATOMIC_RELEASE);
}

static unsigned table_for(const struct space_segment *segment, unsigned home)
{
	return segment->spread ? home : 0;
}

void chain_thunk(struct space *space, uint32_t number)
{
	const struct space_thunk *thunk = &space->thunks.items[number];
	const struct space_segment *segment = &space->segments[thunk->segment];

	if (thunk->chained)
		return;
	chain_into(space, number, table_for(segment, thunk->home));
	space->counters.indirect_entries++;
	if (!segment->spread && segment->chained > CROWDED)
		spread_thunks(space, thunk->segment);
}

static bool has_thunk(const struct space *space, uint32_t entry, unsigned segment, unsigned home)
{
	const struct space_segment *own = &space->segments[segment];
	uint32_t i = *chain_in(own, table_for(own, home), space->entries.items[entry].pc);

	for (; i; i = space->thunks.items[i - 1].next) {
		if (space->thunks.items[i - 1].entry == entry)
			return true;
	}
	return false;
}

bool is_reachable(const struct space *space, const struct space_thunk *thunk)
{
	return has_thunk(space, thunk->entry, thunk->segment, thunk->home);
}

static int make_thunk(struct space *space, uint32_t entry, unsigned segment, unsigned home)
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
	                                                     .home = (uint8_t)home,
	                                                     .segment = (uint8_t)segment});
	error = add_site(space, segment, code + made->sites[0].offset, 0, entry);
	if (!error)
		chain_thunk(space, thunk);
	return error;
}

/* Is the branch's a look into this table? */
static bool is_searched(unsigned segment, unsigned table, uint64_t indirect)
{
	if (indirect == INDIRECT_ANYWHERE)
		return true;
	return table == (segment == INDIRECT_SEGMENT(indirect) ? INDIRECT_TABLE(indirect) : 0);
}

int make_indirect(struct space *space, uint32_t entry, uint64_t indirect)
{
	int error = 0;

	for (unsigned i = 0; i < space->segment_count * BRANCH_TABLES && !error; i++) {
		unsigned segment = i / BRANCH_TABLES, table = i % BRANCH_TABLES;
		if (is_searched(segment, table, indirect) && !has_thunk(space, entry, segment, table))
			error = make_thunk(space, entry, segment, table);
	}
	return error;
}
