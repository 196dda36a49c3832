#include "debug/executions.h"

#include "target/feed.h"

#define FIRST_CHUNK (256ul << 10) /* instructions that are looked through at once, at first */
#define LAST_CHUNK  (16ul << 20)
#define MOST        (64ul << 20) /* before it is told how far it is, */
#define ENOUGH      4096         /* or with so many found */

struct search {
	struct executions *found;
	const uint64_t *pcs;
	uint32_t count;
	uint64_t next; /* executions before this position are told */
	uint64_t end;  /* and from here on they are the next piece's */
};

static bool see(void *context, const struct trace_record *record)
{
	struct search *s = context;
	bool wanted = false;

	for (uint32_t i = 0; i < s->count; i++)
		wanted |= s->pcs[i] == record->pc;
	if (record->kind != TRACE_EXECUTION || !wanted || record->position < s->next ||
	        record->position >= s->end)
		return false;
	s->next = record->position + 1;
	vector_push(&s->found->items, (struct execution){record->position, record->pc, record->address,
	                                      record->top, record->result});
	return false;
}

bool executions_find(struct debugger *d, uint32_t thread, uint64_t from, const uint64_t *pcs, uint32_t count,
        struct executions *found, char *why, size_t why_size)
{
	const struct debugged_thread *t = &d->threads[thread];
	struct search s = {.found = found, .pcs = pcs, .count = count};

	*found = (struct executions){0};
	from = from < t->first.position ? t->first.position : from;
	s.next = found->reached = from;
	debugger_probe(d, pcs, count);
	for (uint64_t chunk = FIRST_CHUNK;
	        !found->all && found->reached - from < MOST && found->items.count < ENOUGH;
	        chunk = chunk < LAST_CHUNK ? 2 * chunk : chunk) {
		struct place start = {found->reached, 0}, to = {found->reached + chunk, 0}, reached;
		found->all = found->reached >= t->last.position || chunk > t->last.position - found->reached;
		if (found->all)
			to = t->last;
		s.end = found->all ? UINT64_MAX : to.position;
		if (place_compare(start, to) < 0 && !explorer_trace(d->explorer, t->recorded->id, start, to,
		                                            see, &s, &reached, why, why_size))
			return false;
		found->reached = to.position;
	}
	return true;
}

void executions_deinit(struct executions *found)
{
	vector_free(&found->items);
}
