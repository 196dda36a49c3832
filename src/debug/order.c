#include "debug/order.h"

#include <stdio.h>
#include <string.h>

#include "debug/order_search.h"

/* Where it is only about preference, not everything is looked at: */
#define SEARCH 256 /* stores of a thread to a word, */
#define FUTURE 64  /* threads that have not begun */

/* ---- preparation ---- */

#define VISITORS_LOOKED_AT 4 /* before the index is asked: most words have no more */

static uint32_t visitor_for(struct search *s, uint32_t word, uint32_t thread)
{
	uint64_t key = (uint64_t)word * s->accesses->thread_count + thread;
	uint32_t next = s->words[word].first_visitor;

	for (unsigned i = 0; next && i < VISITORS_LOOKED_AT; i++) {
		if (s->visitors.items[next - 1].thread == thread)
			return next - 1;
		next = s->visitors.items[next - 1].next_of_word;
	}
	uint32_t number = next ? index_find(&s->visitor_index, key) : INDEX_NONE;

	if (number == INDEX_NONE) {
		struct word_state *state = &s->words[word];
		number = vector_push(&s->visitors, (struct visitor){.word = word, .thread = thread});
		if (state->last_visitor)
			s->visitors.items[state->last_visitor - 1].next_of_word =
			        s->visitors.items[state->last_visitor - 1].next_living = number + 1;
		else
			state->first_visitor = state->living_visitor = number + 1;
		state->last_visitor = number + 1;
		index_add(&s->visitor_index, key, number);
	}
	return number;
}

static void add_visit(struct search *s, uint32_t word, uint32_t thread, uint32_t step)
{
	uint32_t number = visitor_for(s, word, thread);

	vector_push(&s->visitors.items[number].steps, step);
}

static int compare_entries(const void *a, const void *b)
{
	const struct queue_entry *left = a, *right = b;

	if (left->stamp != right->stamp)
		return left->stamp < right->stamp ? -1 : 1;
	return left->thread < right->thread ? -1 : left->thread > right->thread;
}

static void sort_queue(struct queue *queue)
{
	if (queue->entries.count)
		qsort(queue->entries.items, queue->entries.count, sizeof *queue->entries.items,
		        compare_entries);
}

static void add_operation(struct queue *queue, struct queue_entry entry, bool loose)
{
	vector_push(&queue->entries, entry);
	if (loose)
		vector_push(&queue->loose, entry);
}

static void prepare(struct search *s)
{
	const struct accesses *accesses = s->accesses;

	s->runners = calloc(accesses->thread_count + 1, sizeof *s->runners);
	s->words = calloc(accesses->words.count + 1, sizeof *s->words);
	s->lines = calloc(accesses->lines.count + 1, sizeof *s->lines);
	if (!s->runners || !s->words || !s->lines)
		abort();
	for (uint32_t i = 0; i < accesses->words.count; i++) {
		s->words[i].writer = NOBODY;
		if (accesses->initial) {
			s->words[i].value = accesses->initial[i];
			s->words[i].known = 0xff;
		}
	}
	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++) {
			const struct step *step = step_at(s, t, i);
			struct queue_entry entry = {step->stamp, t, i};
			if (step->kind == STEP_ACCESS)
				add_visit(s, step->word, t, i);
			else if (step->kind == STEP_OPERATION && step->word != NO_WORD)
				add_operation(&s->lines[step->word], entry, step->loose);
			else if (is_call(step))
				vector_push(&s->calls.entries, entry);
		}
	}
	for (uint32_t i = 0; i < accesses->lines.count; i++)
		sort_queue(&s->lines[i]);
	sort_queue(&s->calls);
	values_collect(s);
}

/* ---- memory as a thread sees it ---- */

struct view view_of(const struct search *s, uint32_t thread, uint32_t word)
{
	const struct runner *runner = &s->runners[thread];
	struct view view = {s->words[word].value, s->words[word].known, 0};

	for (uint32_t i = runner->seen; i < runner->delayed.count; i++) {
		const struct step *store = step_at(s, thread, runner->delayed.items[i]);
		if (store->word != word)
			continue;
		uint64_t mask = byte_mask(store->writes);
		view.value = (view.value & ~mask) | (store->after & mask);
		view.known |= store->writes;
		view.own |= store->writes;
	}
	return view;
}

static void store_to(struct search *s, uint32_t thread, const struct step *step)
{
	struct word_state *word = &s->words[step->word];
	uint64_t mask = byte_mask(step->writes);

	word->value = (word->value & ~mask) | (step->after & mask);
	word->known |= step->writes;
	word->writer = thread;
	word->stored = true;
}

static bool differs(const struct step *load, uint64_t value, uint8_t bytes)
{
	return (load->before ^ value) & byte_mask(load->reads & bytes);
}

/* Does the store give the load's bytes their values: all, or some that are wrong now? Others may come from
 * elsewhere. */
static bool provides(const struct step *store, const struct step *load, struct view view)
{
	uint8_t both = store->writes & load->reads & (uint8_t)~view.own;

	return both && !differs(load, store->after, both) &&
	       (!differs(load, view.value, view.known) || differs(load, view.value, view.known & both));
}

/* ---- goals ---- */

/* Is it waited for to go on, and waits itself? One whose stores wait to be seen can go on meanwhile. */
static bool is_wanted(const struct search *s, uint32_t thread)
{
	const struct runner *runner = &s->runners[thread];

	for (uint32_t i = runner->wanted ? s->goals.count : 0; i > 0; i--) {
		if (s->goals.items[i - 1].thread == thread && runner->next <= s->goals.items[i - 1].until)
			return true;
	}
	return false;
}

/* A locked instruction is one with its accesses: nobody comes between. */
static void push_goal(struct search *s, struct goal goal)
{
	const struct accessing_thread *thread = &s->accesses->threads[goal.thread];

	goal.visible = goal.reason != GOAL_LOAD &&
	               (goal.reason != GOAL_DECISION ||
	                       s->decisions.items[goal.decision].state == STORE_BEFORE_SOURCE);
	goal.wanted = goal.until;
	while (goal.until + 1 < thread->steps.count &&
	        thread->steps.items[goal.until + 1].kind == STEP_ACCESS &&
	        thread->steps.items[goal.until + 1].locked)
		goal.until++;
	vector_push(&s->goals, goal);
	s->runners[goal.thread].wanted++;
}

static void pop_goal(struct search *s)
{
	struct runner *runner = &s->runners[s->goals.items[--s->goals.count].thread];

	runner->wanted--;
	runner->forced = false;
}

void drop_goals(struct search *s)
{
	while (s->goals.count)
		pop_goal(s);
}

/*
 * Threads wait for each other, from this one up to the one on top, and that one by `last`, which is no goal
 * yet, or NULL. What has changed the fewest times gives way.
 */
static bool break_circle(struct search *s, uint32_t thread, const struct goal *last)
{
	for (unsigned changes = 0; changes <= CHANGES_MOST; changes++) {
		unsigned times = s->runners[thread].wanted;
		for (uint32_t i = s->goals.count; i > 0; i--) {
			const struct goal *goal = i == s->goals.count ? last : &s->goals.items[i];
			if (goal && goal_changes(s, goal, s->goals.items[i - 1].thread) == changes &&
			        reconsider_goal(s, goal, s->goals.items[i - 1].thread))
				return true;
			if (s->goals.items[i - 1].thread == thread && !--times)
				break;
		}
	}
	return false;
}

/*
 * The thread on top waits for another one because of a stamp, or of its making. If that one waits, through
 * others, for it, somebody among them waits only for a value. What led to that is decided otherwise; if that
 * was in vain, it goes on without.
 */
static bool wait_for(struct search *s, uint32_t thread, uint32_t until)
{
	const struct goal *goals = s->goals.items;
	uint32_t top = s->goals.count - 1, waiting = 0;

	if (!is_wanted(s, thread)) {
		push_goal(s, (struct goal){.thread = thread, .until = until, .reason = GOAL_STAMP});
		return false;
	}
	if (goals[top].thread == thread) {
		s->contradiction = "an operation waits for a later one of its own thread";
		return false;
	}
	if (break_circle(s, thread, NULL))
		return false;
	unsigned times = s->runners[thread].wanted;
	for (uint32_t i = top; !waiting; i--) {
		if (goals[i].thread == thread && !--times)
			break;
		waiting = goals[i].reason == GOAL_STAMP ? 0 : i;
	}
	if (!waiting) {
		s->contradiction = "operations wait for each other";
		return false;
	}
	while (s->goals.count > waiting)
		pop_goal(s);
	struct runner *runner = &s->runners[goals[waiting - 1].thread];
	if (runner->forced)
		s->contradiction = "operations wait for each other";
	runner->forced = true;
	return false;
}

/* ---- who needs what ---- */

static uint32_t next_stamped(const struct search *s, uint32_t thread)
{
	struct runner *runner = &s->runners[thread];
	uint32_t count = s->accesses->threads[thread].steps.count;

	if (runner->stamped < runner->next)
		runner->stamped = runner->next;
	while (runner->stamped < count && step_at(s, thread, runner->stamped)->kind == STEP_ACCESS)
		runner->stamped++;
	return runner->stamped;
}

static bool has_ended(const struct search *s, uint32_t thread)
{
	const struct runner *runner = &s->runners[thread];

	return runner->next == s->accesses->threads[thread].steps.count &&
	       runner->seen == runner->delayed.count;
}

/* Passes over, for good, visitors that will do nothing any more. */
static uint32_t skip_ended(const struct search *s, uint32_t *link)
{
	while (*link && has_ended(s, s->visitors.items[*link - 1].thread))
		*link = s->visitors.items[*link - 1].next_living;
	return *link;
}

/* The visitors of a word that may still do something: the first one, and the one behind another; + 1, or 0.
 */
static uint32_t living_visitors(const struct search *s, uint32_t word)
{
	return skip_ended(s, &s->words[word].living_visitor);
}

static uint32_t next_living(const struct search *s, uint32_t visitor)
{
	return skip_ended(s, &s->visitors.items[visitor - 1].next_living);
}

/* Is this one more of those who have not begun than are looked at? */
static bool is_far(const struct search *s, uint32_t thread, unsigned *future)
{
	return s->runners[thread].next == 0 && ++*future > FUTURE;
}

#define STAMP_SEARCH 64 /* steps before one that are looked at for its stamp */

/* When the step will take place, as stamps tell: 0 if none stands between. */
static uint64_t time_of(const struct search *s, uint32_t thread, uint32_t number)
{
	uint32_t first = next_stamped(s, thread);

	if (first > number)
		return 0;
	for (uint32_t i = number; i > first && number - i < STAMP_SEARCH; i--) {
		if (step_at(s, thread, i)->kind != STEP_ACCESS)
			return step_at(s, thread, i)->stamp;
	}
	return step_at(s, thread, first)->stamp;
}

/* The stamp that the thread has next behind the step. */
static uint64_t time_behind(const struct search *s, uint32_t thread, uint32_t number)
{
	uint32_t count = s->accesses->threads[thread].steps.count;

	for (uint32_t i = number + 1; i < count && i - number <= STAMP_SEARCH; i++) {
		if (step_at(s, thread, i)->kind != STEP_ACCESS)
			return step_at(s, thread, i)->stamp;
	}
	return UINT64_MAX;
}

enum store_search {
	OF_ANYBODY,     /* also of threads that are waited for */
	OF_THE_NEAREST, /* of anybody, but only a few of each thread are looked at */
	OF_THE_FREE,
};

/* A store of the value that the load has, still to be seen by others: the one that comes next, or one that
 * has taken place. */
static bool find_store_near(const struct search *s, uint32_t loader, const struct step *load,
        enum store_search how, bool near, uint32_t *thread, uint32_t *step)
{
	struct view view = view_of(s, loader, load->word);
	uint32_t nearest = UINT32_MAX;
	uint64_t earliest = UINT64_MAX;
	unsigned future = 0;

	for (uint32_t v = living_visitors(s, load->word); v; v = next_living(s, v)) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		const struct runner *runner = &s->runners[visitor->thread];
		if (near && is_far(s, visitor->thread, &future))
			break;
		if (visitor->thread == loader)
			continue;
		for (uint32_t i = runner->seen; i < runner->delayed.count; i++) {
			uint32_t number = runner->delayed.items[i];
			const struct step *store = step_at(s, visitor->thread, number);
			if (store->word == load->word && provides(store, load, view)) {
				*thread = visitor->thread;
				*step = number;
				return true;
			}
		}
		if (how == OF_THE_FREE && is_wanted(s, visitor->thread))
			continue;
		for (uint32_t i = visitor->next;
		        i < visitor->steps.count && (how != OF_THE_NEAREST || i < visitor->next + SEARCH);
		        i++) {
			uint32_t number = visitor->steps.items[i];
			if (!provides(step_at(s, visitor->thread, number), load, view))
				continue;
			uint32_t steps = number - runner->next;
			uint64_t time = time_of(s, visitor->thread, number);
			if (time < earliest || (time == earliest && steps < nearest)) {
				earliest = time;
				nearest = steps;
				*thread = visitor->thread;
				*step = number;
			}
			break;
		}
	}
	return nearest != UINT32_MAX;
}

/* Of thousands of threads that are to come, the next ones are looked at first. */
static bool find_store(const struct search *s, uint32_t loader, const struct step *load,
        enum store_search how, uint32_t *thread, uint32_t *step)
{
	return values_may_have(s, load) &&
	       (find_store_near(s, loader, load, how, true, thread, step) ||
	               (how != OF_THE_NEAREST && s->accesses->thread_count > FUTURE &&
	                       find_store_near(s, loader, load, how, false, thread, step)));
}

/* Somebody who has yet to load what the store will overwrite, and is not waited for. */
static bool find_reader(
        const struct search *s, uint32_t storer, uint32_t stored, uint32_t *thread, uint32_t *step)
{
	const struct step *store = step_at(s, storer, stored);
	const struct word_state *word = &s->words[store->word];
	unsigned future = 0;

	for (uint32_t v = living_visitors(s, store->word); v; v = next_living(s, v)) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		uint32_t other, later;
		if (is_far(s, visitor->thread, &future))
			break;
		if (visitor->thread == storer || visitor->next == visitor->steps.count ||
		        is_wanted(s, visitor->thread))
			continue;
		uint32_t number = visitor->steps.items[visitor->next];
		const struct step *load = step_at(s, visitor->thread, number);
		struct view view = view_of(s, visitor->thread, store->word);
		uint8_t both = load->reads & store->writes & ~view.own;
		/* It has to come first only if it has the value of now, and not that of then. */
		if (!both || (word->known & both) != both || differs(load, word->value, both) ||
		        !differs(load, store->after, both))
			continue;
		if (number >= next_stamped(s, visitor->thread) &&
		        find_store(s, visitor->thread, load, OF_THE_NEAREST, &other, &later) &&
		        time_of(s, other, later) < time_behind(s, visitor->thread, number))
			continue; /* it may as well have a later one's */
		if (is_waived(s, (struct place_in_thread){storer, stored},
		            (struct place_in_thread){visitor->thread, number}))
			continue;
		*thread = visitor->thread;
		*step = number;
		return true;
	}
	return false;
}

/* Will anybody load what this store leaves? `next`: only if it is his next access to the word. */
static bool is_loaded(const struct search *s, const struct step *store, uint8_t bytes, bool next)
{
	unsigned future = 0;

	for (uint32_t v = living_visitors(s, store->word); v; v = next_living(s, v)) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		if (is_far(s, visitor->thread, &future))
			break;
		uint32_t end = visitor->next + (next ? 1 : SEARCH);
		for (uint32_t i = visitor->next; i < visitor->steps.count && i < end; i++) {
			const struct step *load = step_at(s, visitor->thread, visitor->steps.items[i]);
			if (load->reads & bytes && !differs(load, store->after, bytes))
				return true;
		}
	}
	return false;
}

/* Is it right that `other` comes first: since the value of `store` is loaded next, and the other's never? */
static bool goes_first(const struct search *s, const struct step *other, const struct step *store)
{
	uint8_t both = other->word == store->word ? other->writes & store->writes : 0;

	return both && !other->reads && (other->after ^ store->after) & byte_mask(both) &&
	       is_loaded(s, store, both, true) && !is_loaded(s, other, both, false);
}

/* Somebody whose store this one must overwrite, by what is loaded later, and who is not waited for. */
static bool find_overwritten(
        const struct search *s, uint32_t storer, const struct step *store, uint32_t *thread, uint32_t *step)
{
	unsigned future = 0;

	for (uint32_t v = living_visitors(s, store->word); v; v = next_living(s, v)) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		const struct runner *runner = &s->runners[visitor->thread];
		if (is_far(s, visitor->thread, &future))
			break;
		*thread = visitor->thread;
		if (visitor->thread == storer || is_wanted(s, visitor->thread))
			continue;
		for (uint32_t i = runner->seen; i < runner->delayed.count; i++) {
			*step = runner->delayed.items[i];
			if (goes_first(s, step_at(s, visitor->thread, *step), store))
				return true;
		}
		if (visitor->next == visitor->steps.count)
			continue;
		*step = visitor->steps.items[visitor->next];
		if (*step < next_stamped(s, visitor->thread) &&
		        goes_first(s, step_at(s, visitor->thread, *step), store))
			return true;
	}
	return false;
}

/* What the store waits for, as a goal; false: nothing. */
static bool must_wait(const struct search *s, uint32_t storer, uint32_t number, struct goal *goal)
{
	const struct step *store = step_at(s, storer, number);
	struct place_in_thread place;

	*goal = (struct goal){.store = number};
	if (find_decided(s, storer, number, &place, &goal->decision)) {
		goal->reason = GOAL_DECISION;
		goal->thread = place.thread;
		goal->until = place.step;
		return true;
	}
	goal->reason = GOAL_LOAD;
	if (find_reader(s, storer, number, &goal->thread, &goal->until))
		return true;
	goal->reason = GOAL_FIRST;
	return !store->locked && !is_impatient(s, storer, number) &&
	       find_overwritten(s, storer, store, &goal->thread, &goal->until);
}

/* Can it go on for one who waits, or at least what it has stored be seen? */
static bool can_go_on(const struct search *s, const struct goal *goal)
{
	if (s->runners[goal->thread].next <= goal->until)
		return !is_wanted(s, goal->thread);
	for (uint32_t i = 0; i + 1 < s->goals.count && s->runners[goal->thread].wanted; i++) {
		if (s->goals.items[i].thread == goal->thread && s->goals.items[i + 1].reason >= GOAL_LOAD)
			return false;
	}
	return true;
}

/* The thread goes on when another one has; if that one waits for it, too, something was wrong. */
static void wait_with(struct search *s, struct goal goal, uint32_t thread)
{
	goal.wanted = goal.until;
	if (can_go_on(s, &goal))
		push_goal(s, goal);
	else if (!break_circle(s, goal.thread, &goal))
		s->runners[thread].forced = true;
}

/* ---- steps ---- */

static void emit(struct search *s, struct order_event event)
{
	vector_push(&s->order->events, event);
	s->order->sources[event.source]++;
}

#define ALL_STEPS UINT32_MAX

/* Makes the thread's delayed stores up to a step visible; false: it waits for something. */
static bool drain(struct search *s, uint32_t thread, uint32_t until)
{
	struct runner *runner = &s->runners[thread];

	while (runner->seen < runner->delayed.count) {
		uint32_t number = runner->delayed.items[runner->seen];
		struct goal goal;
		if (number > until)
			break;
		if (!runner->forced && must_wait(s, thread, number, &goal)) {
			wait_with(s, goal, thread);
			return false;
		}
		runner->forced = false;
		runner->seen++;
		keep_word(s, step_at(s, thread, number)->word);
		store_to(s, thread, step_at(s, thread, number));
		emit(s, (struct order_event){.thread = thread, .step = number, .visible = true});
	}
	return true;
}

static enum order_source source_of(const struct search *s, uint32_t thread, const struct step *load)
{
	const struct word_state *word = &s->words[load->word];
	struct view view = view_of(s, thread, load->word);

	if (view.own & load->reads)
		return SOURCE_OWN;
	if (!word->stored)
		return SOURCE_INITIAL;
	return word->writer == thread ? SOURCE_OWN : word->writer == NOBODY ? SOURCE_OUTSIDE : SOURCE_OTHER;
}

/* The value is there now, wherever it came from. */
static void come_from_outside(struct search *s, const struct step *load)
{
	struct word_state *word = &s->words[load->word];
	uint64_t mask = byte_mask(load->reads);

	word->value = (word->value & ~mask) | (load->before & mask);
	word->known |= load->reads;
	word->writer = NOBODY;
	word->stored = true;
}

/* Has any thread ever stored this? */
static bool was_stored(const struct search *s, const struct step *load)
{
	if (!values_may_have(s, load))
		return false;
	for (uint32_t v = s->words[load->word].first_visitor; v; v = s->visitors.items[v - 1].next_of_word) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		for (uint32_t i = 0; i < visitor->steps.count; i++) {
			const struct step *store = step_at(s, visitor->thread, visitor->steps.items[i]);
			if (store->writes & load->reads && !differs(load, store->after, store->writes))
				return true;
		}
	}
	return false;
}

/* Or was it there from the start? Then an order may explain it; but it may as well come from outside again.
 */
static bool has_source(const struct search *s, const struct step *load)
{
	return (s->accesses->initial && !differs(load, s->accesses->initial[load->word], 0xff)) ||
	       was_stored(s, load);
}

struct visitor *visitor_of(struct search *s, uint32_t word, uint32_t thread)
{
	return &s->visitors.items[visitor_for(s, word, thread)];
}

/* What is wrong with the load is what others do not see yet of its own thread: they have to, before it. */
static bool show_own_stores(struct search *s, uint32_t thread, const struct step *load)
{
	const struct runner *runner = &s->runners[thread];
	struct view view = view_of(s, thread, load->word);

	if (!differs(load, view.value, view.own) || runner->forced || !has_source(s, load))
		return true;
	for (uint32_t i = runner->delayed.count; i > runner->seen; i--) {
		const struct step *store = step_at(s, thread, runner->delayed.items[i - 1]);
		if (store->word == load->word && differs(load, store->after, store->writes))
			return drain(s, thread, runner->delayed.items[i - 1]);
	}
	return true;
}

/* Memory has another value than the load: it waits for a store, or what led to this is decided otherwise.
 * False: it cannot be explained. */
static bool await_value(struct search *s, uint32_t thread, uint32_t number)
{
	const struct step *load = step_at(s, thread, number);
	struct goal goal = {.reason = GOAL_STORE};

	if (s->runners[thread].forced)
		return has_source(s, load) && reconsider_load(s, thread, number, false);
	if (find_store(s, thread, load, OF_THE_FREE, &goal.thread, &goal.until) && can_go_on(s, &goal)) {
		push_goal(s, goal);
		return true;
	}
	if (!has_source(s, load))
		return false;
	bool coming = find_store(s, thread, load, OF_ANYBODY, &goal.thread, &goal.until);
	return (coming && !can_go_on(s, &goal) && break_circle(s, goal.thread, NULL)) ||
	       reconsider_load(s, thread, number, coming);
}

static bool run_access(struct search *s, uint32_t thread)
{
	struct runner *runner = &s->runners[thread];
	const struct step *step = step_at(s, thread, runner->next);
	struct order_event event = {.thread = thread, .step = runner->next};
	struct goal goal;

	if (step->reads && !step->locked && !show_own_stores(s, thread, step))
		return false;
	struct view view = view_of(s, thread, step->word);
	if (step->reads && differs(step, view.value, view.known)) {
		/* A locked instruction has waited before. */
		if (!step->locked && await_value(s, thread, runner->next))
			return false;
		event.source = was_stored(s, step) ? SOURCE_UNORDERED : SOURCE_OUTSIDE;
		keep_word(s, step->word);
		come_from_outside(s, step);
	} else if (step->reads) {
		event.source = source_of(s, thread, step);
		keep_word(s, step->word);
		if ((view.known & step->reads) != step->reads) {
			uint8_t unknown = step->reads & (uint8_t)~view.known;
			uint64_t mask = byte_mask(unknown);
			s->words[step->word].value =
			        (s->words[step->word].value & ~mask) | (step->before & mask);
			s->words[step->word].known |= unknown;
		}
	} else {
		keep_word(s, step->word);
	}
	if (step->writes && step->locked) {
		store_to(s, thread, step);
	} else if (step->writes) {
		event.delayed =
		        runner->seen < runner->delayed.count || must_wait(s, thread, runner->next, &goal);
		if (event.delayed)
			vector_push(&runner->delayed, runner->next);
		else
			store_to(s, thread, step);
	}
	runner->forced = false;
	emit(s, event);
	visitor_of(s, step->word, thread)->next++;
	runner->next++;
	return true;
}

/* Does memory have what the locked instruction loads first? */
static bool finds_its_value(const struct search *s, const struct queue_entry *entry)
{
	const struct accessing_thread *self = &s->accesses->threads[entry->thread];
	const struct step *access = &self->steps.items[entry->step + 1];

	if (entry->step + 1 == self->steps.count || access->kind != STEP_ACCESS || !access->locked)
		return false;
	struct view view = view_of(s, entry->thread, access->word);
	return access->reads && !differs(access, view.value, view.known);
}

static bool has_taken_place(const struct search *s, const struct queue_entry *entry)
{
	return s->runners[entry->thread].next > entry->step;
}

/* Has the thread no other operation on this line before that one? */
static bool is_next_on_line(const struct search *s, const struct queue_entry *entry)
{
	uint32_t line = step_at(s, entry->thread, entry->step)->word;

	for (uint32_t i = s->runners[entry->thread].next; i < entry->step; i++) {
		const struct step *step = step_at(s, entry->thread, i);
		if (step->kind == STEP_OPERATION && step->word == line)
			return false;
	}
	return true;
}

static void move_to_front(struct queue *queue, struct queue_entry entry)
{
	struct queue_entry *front = &queue->entries.items[queue->next];
	uint32_t at = 0;

	while (front[at].thread != entry.thread || front[at].step != entry.step)
		at++;
	memmove(front + 1, front, at * sizeof *front);
	*front = entry;
}

/*
 * An operation with a loose stamp took place at some time since: where the value that is there is the one it
 * loads, and not what the next one by stamps does, it comes first.
 */
static void bring_forward(const struct search *s, struct queue *queue)
{
	struct queue_entry head = queue->entries.items[queue->next];

	while (queue->next_loose < queue->loose.count &&
	        has_taken_place(s, &queue->loose.items[queue->next_loose]))
		queue->next_loose++;
	if (queue->next_loose == queue->loose.count || finds_its_value(s, &head))
		return;
	for (uint32_t i = queue->next_loose; i < queue->loose.count; i++) {
		const struct queue_entry *entry = &queue->loose.items[i];
		if (step_at(s, entry->thread, entry->step)->since >= head.stamp ||
		        has_taken_place(s, entry) || !is_next_on_line(s, entry) || !finds_its_value(s, entry))
			continue;
		move_to_front(queue, *entry);
		return;
	}
}

/* Its turn comes with its stamp; false: it waits for another one's. */
static bool is_turn(struct search *s, uint32_t thread, const struct queue *queue)
{
	const struct queue_entry *head = &queue->entries.items[queue->next];

	return (head->thread == thread && head->step == s->runners[thread].next) ||
	       wait_for(s, head->thread, head->step);
}

/* What the accesses of a locked instruction wait for, it waits for: then they are made at once. */
static bool is_possible(struct search *s, uint32_t thread)
{
	const struct accessing_thread *self = &s->accesses->threads[thread];
	struct runner *runner = &s->runners[thread];

	for (uint32_t i = runner->next + 1; i < self->steps.count; i++) {
		const struct step *step = &self->steps.items[i];
		struct goal goal;
		if (step->kind != STEP_ACCESS || !step->locked)
			break;
		struct view view = view_of(s, thread, step->word);
		bool differs_now = step->reads && differs(step, view.value, view.known);
		if (differs_now && await_value(s, thread, i))
			return false;
		if (!differs_now && step->writes && !runner->forced && must_wait(s, thread, i, &goal)) {
			wait_with(s, goal, thread);
			return false;
		}
	}
	return true;
}

struct queue *queue_of(struct search *s, const struct step *step)
{
	if (is_call(step))
		return &s->calls;
	return step->kind == STEP_OPERATION && step->word != NO_WORD ? &s->lines[step->word] : NULL;
}

static bool run_step(struct search *s, uint32_t thread)
{
	struct runner *runner = &s->runners[thread];
	const struct step *step = step_at(s, thread, runner->next);

	if (step->kind == STEP_ACCESS)
		return run_access(s, thread);
	const struct accessing_thread *self = &s->accesses->threads[thread];
	if (step->kind == STEP_START && self->maker != NO_THREAD &&
	        s->runners[self->maker].next <= self->made_by)
		return wait_for(s, self->maker, self->made_by);
	if (!drain(s, thread, ALL_STEPS))
		return false;
	struct queue *queue = queue_of(s, step);
	if (queue && queue != &s->calls)
		bring_forward(s, queue);
	if (queue && !is_turn(s, thread, queue))
		return false;
	if (step->kind == STEP_OPERATION && !is_possible(s, thread))
		return false;
	if (queue)
		queue->next++;
	runner->forced = false;
	emit(s, (struct order_event){.thread = thread, .step = runner->next++});
	return true;
}

/* Is the step done, and seen? */
static bool is_reached(const struct search *s, const struct goal *goal)
{
	const struct runner *runner = &s->runners[goal->thread];

	if (runner->next <= goal->until || !goal->visible)
		return runner->next > goal->until;
	for (uint32_t i = runner->seen; i < runner->delayed.count; i++) {
		if (runner->delayed.items[i] <= goal->until)
			return false;
	}
	return true;
}

static void run_goals(struct search *s)
{
	while (s->goals.count && !s->contradiction) {
		struct goal goal = s->goals.items[s->goals.count - 1];
		if (is_reached(s, &goal))
			pop_goal(s);
		else if (s->runners[goal.thread].next > goal.until)
			drain(s, goal.thread, goal.until);
		else
			run_step(s, goal.thread);
	}
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
	return a->stamp != b->stamp ? a->stamp < b->stamp : a->thread < b->thread;
}

static void sift_down(struct search *s, uint32_t at)
{
	struct candidate *heap = s->candidates.items, moved = heap[at];

	for (uint32_t child; (child = 2 * at + 1) < s->candidates.count; at = child) {
		if (child + 1 < s->candidates.count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* False: it has ended. */
static bool find_next(const struct search *s, uint32_t thread, uint64_t *stamp, uint32_t *until)
{
	const struct runner *runner = &s->runners[thread];
	uint32_t count = s->accesses->threads[thread].steps.count, next = next_stamped(s, thread);

	if (runner->next == count && runner->seen == runner->delayed.count)
		return false;
	*stamp = next < count ? step_at(s, thread, next)->stamp : UINT64_MAX - 1;
	*until = next < count ? next : count - 1;
	return true;
}

/* All threads; those that begin have no stamp yet, so they come first, in their order. */
void fill_candidates(struct search *s)
{
	s->candidates.count = 0;
	for (uint32_t t = 0; t < s->accesses->thread_count; t++)
		vector_push(&s->candidates, (struct candidate){0, t});
}

/* The thread whose next stamp is the smallest; NOBODY: all have ended. Stamps of a thread only grow, so one
 * that has gone on meanwhile goes down the heap when it comes to the top. */
static uint32_t choose_thread(struct search *s, uint32_t *until)
{
	while (s->candidates.count) {
		struct candidate *top = &s->candidates.items[0];
		uint64_t stamp;
		bool lives = find_next(s, top->thread, &stamp, until);
		if (lives && stamp == top->stamp)
			return top->thread;
		if (lives)
			top->stamp = stamp;
		else
			*top = s->candidates.items[--s->candidates.count];
		if (s->candidates.count)
			sift_down(s, 0);
	}
	return NOBODY;
}

bool order_find(struct order *order, const struct accesses *accesses, char *why, size_t why_size)
{
	struct search s = {.accesses = accesses, .order = order};
	uint32_t thread, until = 0;

	*order = (struct order){0};
	prepare(&s);
	fill_candidates(&s);
	while (!s.contradiction && (thread = choose_thread(&s, &until)) != NOBODY) {
		push_goal(&s, (struct goal){.thread = thread, .until = until, .reason = GOAL_STAMP});
		run_goals(&s);
	}
	if (s.contradiction)
		snprintf(why, why_size, "the stamps contradict each other: %s", s.contradiction);
	for (uint32_t i = 0; i < s.visitors.count; i++)
		vector_free(&s.visitors.items[i].steps);
	vector_free(&s.visitors);
	index_deinit(&s.visitor_index);
	for (uint32_t t = 0; t < accesses->thread_count; t++)
		vector_free(&s.runners[t].delayed);
	for (uint32_t i = 0; i < accesses->lines.count; i++) {
		vector_free(&s.lines[i].entries);
		vector_free(&s.lines[i].loose);
	}
	vector_free(&s.calls.entries);
	vector_free(&s.goals);
	vector_free(&s.candidates);
	decisions_deinit(&s);
	free(s.values);
	free(s.runners);
	free(s.words);
	free(s.lines);
	return !s.contradiction;
}

void order_deinit(struct order *order)
{
	vector_free(&order->events);
}
