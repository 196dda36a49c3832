#include "debug/operations.h"

#include "target/feed.h"

#define MOST_INSTRUCTIONS (256ul << 20)
#define MOST_THREADS      64
#define MOST_OPERATIONS   (4u << 20)

struct counting {
	uint32_t count;
	VECTOR(uint64_t) positions; /* of one thread */
};

static bool see(void *context, const struct trace_record *record)
{
	struct counting *c = context;

	if (record->kind != TRACE_OPERATION)
		return false;
	vector_push(&c->positions, record->position);
	return ++c->count > MOST_OPERATIONS;
}

static bool is_worth_it(const struct debugger *d)
{
	return d->thread_count > 1 && d->thread_count <= MOST_THREADS &&
	       debugger_instructions(d) <= MOST_INSTRUCTIONS;
}

void operations_count(struct debugger *d)
{
	struct counting c = {0};
	char why[512];
	bool whole = is_worth_it(d);

	for (uint32_t i = 0; i < d->thread_count && whole; i++) {
		const struct debugged_thread *t = &d->threads[i];
		struct place reached;
		c.positions.count = 0;
		explorer_watch_none(d->explorer);
		whole = t->absent || (explorer_trace(d->explorer, t->recorded->id, t->first, t->last, see, &c,
		                              &reached, why, sizeof why) &&
		                             c.count <= MOST_OPERATIONS);
		for (uint32_t k = 0; k < c.positions.count && whole; k++)
			chronicle_note_operation(&d->chronicle, t->recorded->id, c.positions.items[k]);
	}
	vector_free(&c.positions);
	chronicle_stamp_operations(&d->chronicle, whole);
}
