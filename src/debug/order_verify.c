/*
 * Does an order hold what it promises? This knows nothing of how it was found: it goes through
 * it with a memory of its own and compares every load, every stamp and every delayed store.
 */
#include <stdio.h>

#include "debug/order.h"

struct word {
	uint64_t value;
	uint8_t known;
};

struct thread_state {
	uint32_t next;
	VECTOR(uint32_t) delayed;
	uint32_t seen;
};

struct check {
	const struct accesses *accesses;
	struct word *words;
	uint64_t *lines; /* the stamps that came last */
	uint64_t calls;
	struct thread_state *threads;
	uint32_t inside; /* the thread in the middle of a locked instruction + 1, or 0 */
	const char *wrong;
};

static uint64_t mask_of(uint8_t bytes)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 8; i++) {
		if (bytes >> i & 1)
			mask |= 0xfful << 8 * i;
	}
	return mask;
}

static void put(struct word *word, uint64_t value, uint8_t bytes)
{
	word->value = (word->value & ~mask_of(bytes)) | (value & mask_of(bytes));
	word->known |= bytes;
}

static struct word seen_by(const struct check *c, uint32_t thread, uint32_t number)
{
	const struct thread_state *state = &c->threads[thread];
	struct word word = c->words[number];

	for (uint32_t i = state->seen; i < state->delayed.count; i++) {
		const struct step *store = &c->accesses->threads[thread].steps.items[state->delayed.items[i]];
		if (store->word == number)
			put(&word, store->after, store->writes);
	}
	return word;
}

static void check_load(struct check *c, const struct order_event *event, const struct step *step)
{
	struct word word = seen_by(c, event->thread, step->word);
	uint64_t compared = mask_of(step->reads & word.known);

	if (event->source == SOURCE_OUTSIDE || event->source == SOURCE_UNORDERED)
		put(&c->words[step->word], step->before, step->reads);
	else if ((word.value ^ step->before) & compared)
		c->wrong = "a load has another value than the last store before it";
	else
		put(&c->words[step->word], step->before, step->reads & (uint8_t)~word.known);
}

static void check_visible(struct check *c, const struct order_event *event, const struct step *step)
{
	struct thread_state *state = &c->threads[event->thread];

	if (state->seen == state->delayed.count || state->delayed.items[state->seen] != event->step) {
		c->wrong = "a store becomes visible out of its turn";
		return;
	}
	if (++state->seen == state->delayed.count)
		state->seen = state->delayed.count = 0;
	put(&c->words[step->word], step->after, step->writes);
}

static void check_stamp(struct check *c, const struct order_event *event, const struct step *step)
{
	const struct thread_state *state = &c->threads[event->thread];
	uint64_t *last = step->kind == STEP_OPERATION ? &c->lines[step->word] : &c->calls;

	if (state->delayed.count)
		c->wrong = "a store is not visible after its thread's next operation";
	if (step->kind == STEP_START || (step->kind == STEP_OPERATION && step->word == NO_WORD))
		return;
	if (step->stamp < *last)
		c->wrong = "an operation comes after one with a larger stamp";
	/* Loose: of those since, nobody knows who was first. */
	uint64_t least = step->loose ? step->since : step->stamp;
	if (least > *last)
		*last = least;
}

static void check_event(struct check *c, const struct order_event *event)
{
	struct thread_state *state = &c->threads[event->thread];
	const struct step *step = &c->accesses->threads[event->thread].steps.items[event->step];

	if (c->inside && c->inside != event->thread + 1)
		c->wrong = "something comes between a locked instruction and its accesses";
	if (event->visible) {
		check_visible(c, event, step);
		return;
	}
	const struct step *next = step + 1;
	bool last = event->step + 1 == c->accesses->threads[event->thread].steps.count;
	c->inside = !last && next->kind == STEP_ACCESS && next->locked ? event->thread + 1 : 0;
	if (event->step != state->next++)
		c->wrong = "a thread's steps are not in their order";
	if (step->kind != STEP_ACCESS) {
		check_stamp(c, event, step);
		return;
	}
	if (step->reads)
		check_load(c, event, step);
	if (!step->writes)
		return;
	if (event->delayed) {
		if (step->locked)
			c->wrong = "a locked store is delayed";
		vector_push(&state->delayed, event->step);
	} else {
		if (state->delayed.count)
			c->wrong = "a store overtakes another one of its thread";
		put(&c->words[step->word], step->after, step->writes);
	}
}

bool order_verify(const struct order *order, const struct accesses *accesses, char *why, size_t why_size)
{
	struct check c = {
	        .accesses = accesses,
	        .words = calloc(accesses->words.count + 1, sizeof *c.words),
	        .lines = calloc(accesses->lines.count + 1, sizeof *c.lines),
	        .threads = calloc(accesses->thread_count + 1, sizeof *c.threads),
	};
	uint32_t i = 0;

	if (!c.words || !c.lines || !c.threads)
		abort();
	for (uint32_t k = 0; accesses->initial && k < accesses->words.count; k++)
		c.words[k] = (struct word){accesses->initial[k], 0xff};
	for (; i < order->events.count && !c.wrong; i++)
		check_event(&c, &order->events.items[i]);
	for (uint32_t t = 0; t < accesses->thread_count && !c.wrong; t++) {
		if (c.threads[t].next != accesses->threads[t].steps.count || c.threads[t].delayed.count)
			c.wrong = "a thread is left in the middle";
	}
	if (c.wrong)
		snprintf(why, why_size, "event %u of the order: %s", i, c.wrong);
	for (uint32_t t = 0; t < accesses->thread_count; t++)
		vector_free(&c.threads[t].delayed);
	free(c.words);
	free(c.lines);
	free(c.threads);
	return !c.wrong;
}
