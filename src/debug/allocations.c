#include "debug/allocations.h"

#include "target/feed.h"

/* A call that has not returned yet. */
struct call {
	struct allocation allocation;
	uint64_t stack, back; /* at its entry; where it returns to */
};

struct search {
	struct allocations *allocations;
	const struct allocator *allocators;
	unsigned allocator_count;
	uint32_t thread;
	VECTOR(struct call) calls; /* by position */
	VECTOR(uint64_t) returns;  /* places that calls return to */
	struct index return_index;
	uint32_t next; /* call: those before have returned, or are open; */
	VECTOR(struct call) open;
};

static uint64_t wanted(enum allocator_kind kind, const struct trace_record *record)
{
	switch (kind) {
	case ALLOCATES_FIRST:
		return record->before;
	case ALLOCATES_SECOND:
		return record->after;
	default:
		return record->before * record->after;
	}
}

static bool see_call(void *context, const struct trace_record *record)
{
	struct search *s = context;

	if (record->kind != TRACE_EXECUTION || !record->top)
		return false;
	for (unsigned i = 0; i < s->allocator_count; i++) {
		if (s->allocators[i].pc != record->pc)
			continue;
		if (s->allocators[i].kind == FREES_FIRST) {
			if (record->before)
				vector_push(
				        &s->allocations->frees, (struct freed){s->thread, record->position,
				                                        record->pc, record->before});
			continue;
		}
		struct allocation allocation = {.thread = s->thread,
		        .position = record->position,
		        .size = wanted(s->allocators[i].kind, record)};
		vector_push(&s->calls, (struct call){allocation, record->address, record->top});
		if (index_find(&s->return_index, record->top) == INDEX_NONE)
			index_add(&s->return_index, record->top, vector_push(&s->returns, record->top));
	}
	return false;
}

/* The innermost call that returns there with this stack; others above it never will. */
static bool see_return(void *context, const struct trace_record *record)
{
	struct search *s = context;

	if (record->kind != TRACE_EXECUTION)
		return false;
	while (s->next < s->calls.count && s->calls.items[s->next].allocation.position < record->position)
		vector_push(&s->open, s->calls.items[s->next++]);
	for (uint32_t i = s->open.count; i; i--) {
		struct call *call = &s->open.items[i - 1];
		if (call->back != record->pc || call->stack + 8 != record->address)
			continue;
		call->allocation.start = record->result;
		if (record->result)
			vector_push(&s->allocations->items, call->allocation);
		s->open.count = i - 1;
		break;
	}
	return false;
}

static void probe_all(struct explorer *explorer, const struct search *s, bool calls, bool wanted_now)
{
	if (calls) {
		for (unsigned i = 0; i < s->allocator_count; i++)
			explorer_probe(explorer, s->allocators[i].pc, wanted_now);
		return;
	}
	for (uint32_t i = 0; i < s->returns.count; i++)
		explorer_probe(explorer, s->returns.items[i], wanted_now);
}

static bool trace_thread(struct search *s, const struct accessing_thread *thread, struct explorer *explorer,
        bool calls, char *why, size_t why_size)
{
	struct place from = {.position = thread->record.first_position}, to = {.position = UINT64_MAX},
	             reached;

	probe_all(explorer, s, calls, true);
	bool done = explorer_trace(
	        explorer, thread->id, from, to, calls ? see_call : see_return, s, &reached, why, why_size);
	probe_all(explorer, s, calls, false);
	return done;
}

/* The stamps of the operations around a position. */
static void date(struct allocation *allocation, const struct accessing_thread *thread)
{
	allocation->until = UINT64_MAX;
	for (uint32_t i = 0; i < thread->steps.count; i++) {
		const struct step *step = &thread->steps.items[i];
		if (step->kind == STEP_ACCESS)
			continue;
		if (step->kind >= STEP_BESIDE)
			break;
		if (step->position > allocation->position) {
			allocation->until = step->stamp;
			break;
		}
		allocation->since = step->stamp;
	}
}

bool allocations_find(struct allocations *allocations, const struct accesses *accesses,
        struct explorer *explorer, const struct allocator *allocators, unsigned count, char *why,
        size_t why_size)
{
	bool done = true;

	for (uint32_t t = 0; t < accesses->thread_count && done; t++) {
		const struct accessing_thread *thread = &accesses->threads[t];
		struct search s = {.allocations = allocations,
		        .allocators = allocators,
		        .allocator_count = count,
		        .thread = t};
		done = trace_thread(&s, thread, explorer, true, why, why_size) &&
		       trace_thread(&s, thread, explorer, false, why, why_size);
		vector_free(&s.calls);
		vector_free(&s.returns);
		vector_free(&s.open);
		index_deinit(&s.return_index);
	}
	return done;
}

void allocations_deinit(struct allocations *allocations)
{
	vector_free(&allocations->items);
	vector_free(&allocations->frees);
}

/* ---- frees ---- */

/* Of the thread's first operation behind the position. */
static uint64_t stamp_after(const struct accessing_thread *thread, uint64_t position)
{
	uint32_t low = 0, high = thread->steps.count;

	while (high && thread->steps.items[high - 1].kind >= STEP_BESIDE)
		high--;
	uint32_t end = high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (thread->steps.items[middle].position > position)
			high = middle;
		else
			low = middle + 1;
	}
	while (low < end && thread->steps.items[low].kind == STEP_ACCESS)
		low++;
	return low < end ? thread->steps.items[low].stamp : UINT64_MAX;
}

static void note_free(struct accesses *accesses, const struct freed *freed, uint64_t size)
{
	uint64_t stamp = stamp_after(&accesses->threads[freed->thread], freed->position);
	struct word_cursor cursor = {0};

	for (uint64_t at = freed->start; at + 8 <= freed->start + size; at += 8) {
		uint32_t word = word_map_look(&accesses->word_map, &cursor, at);
		struct step step = {.position = freed->position,
		        .pc = freed->pc,
		        .address = at,
		        .stamp = stamp,
		        .kind = STEP_FREE,
		        .word = word,
		        .writes = 0xff};
		if (word != WORD_NONE)
			vector_push(&accesses->threads[freed->thread].steps, step);
	}
}

void allocations_note_frees(const struct allocations *allocations, struct accesses *accesses)
{
	struct index smallest = {0}; /* start -> the item */

	for (uint32_t i = 0; i < allocations->items.count; i++) {
		const struct allocation *a = &allocations->items.items[i];
		uint32_t other = index_find(&smallest, a->start);
		if (other == INDEX_NONE)
			index_add(&smallest, a->start, i);
		else if (a->size < allocations->items.items[other].size)
			index_change(&smallest, a->start, i);
	}
	for (uint32_t i = 0; i < allocations->frees.count; i++) {
		const struct freed *freed = &allocations->frees.items[i];
		uint32_t block = index_find(&smallest, freed->start);
		if (block != INDEX_NONE)
			note_free(accesses, freed, allocations->items.items[block].size);
	}
	index_deinit(&smallest);
}

/* The stamp of the thread's next operation. */
static uint64_t stamp_behind(const struct accessing_thread *thread, uint32_t step)
{
	for (uint32_t i = step; i < thread->steps.count; i++) {
		if (thread->steps.items[i].kind != STEP_ACCESS)
			return thread->steps.items[i].stamp;
	}
	return UINT64_MAX;
}

static bool is_later(const struct allocation *a, const struct allocation *b)
{
	return a->thread == b->thread ? a->position > b->position : a->since > b->since;
}

const struct allocation *allocations_last(const struct allocations *allocations,
        const struct accesses *accesses, uint32_t thread, uint32_t step, uint64_t address)
{
	const struct step *at = &accesses->threads[thread].steps.items[step];
	uint64_t behind = stamp_behind(&accesses->threads[thread], step);
	struct allocation *found = NULL;
	bool doubtful = false;

	for (uint32_t i = 0; i < allocations->items.count; i++) {
		struct allocation *a = &allocations->items.items[i];
		if (address - a->start >= a->size)
			continue;
		date(a, &accesses->threads[a->thread]);
		if (a->thread == thread ? a->position >= at->position : a->since >= behind)
			continue;
		if (!found || is_later(a, found)) {
			doubtful = found && found->thread != a->thread && found->until > a->since;
			found = a;
		} else if (a->thread != found->thread && a->until > found->since) {
			doubtful = true;
		}
	}
	return doubtful ? NULL : found;
}
