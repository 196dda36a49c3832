/*
 * Where the search for an order has failed, it goes back and decides otherwise.
 *
 * A load has the value of some store, its source; another store to the same bytes is either before
 * that source or after the load. The search itself has decided that by what it did first. When a load comes
 * too late, or threads wait for each other in a circle, one such decision was wrong: it is written down the
 * other way round, as something that a store waits for from now on, and all events since the first one that
 * was too early are undone. Each decision changes at most twice, and the number of events that are undone is
 * bounded: then the search goes on as if nobody had looked, and loads are left unordered.
 */
#include "debug/order_search.h"

#define PATIENCE  64         /* events undone for each step, */
#define AT_LEAST  (1u << 20) /* and so many anyway */
#define LOOKED_AT 4096       /* steps of a thread to a word */

void keep_word(struct search *s, uint32_t word)
{
	const struct word_state *state = &s->words[word];

	if (!s->before)
		s->before = malloc(UNDONE_MOST * sizeof *s->before);
	if (!s->before)
		abort();
	s->before[s->order->events.count % UNDONE_MOST] =
	        (struct word_before){state->value, state->writer, state->known, state->stored};
}

static uint32_t oldest_event(const struct search *s)
{
	return s->order->events.count > UNDONE_MOST ? s->order->events.count - UNDONE_MOST : 0;
}

static const struct step *step_of(const struct search *s, const struct order_event *event)
{
	return step_at(s, event->thread, event->step);
}

/* ---- going back ---- */

static void undo_event(struct search *s)
{
	const struct order_event *event = &s->order->events.items[--s->order->events.count];
	const struct word_before *before = &s->before[s->order->events.count % UNDONE_MOST];
	const struct step *step = step_of(s, event);
	struct runner *runner = &s->runners[event->thread];

	s->order->sources[event->source]--;
	s->undone++;
	if (step->kind == STEP_ACCESS) {
		struct word_state *word = &s->words[step->word];
		word->value = before->value;
		word->writer = before->writer;
		word->known = before->known;
		word->stored = before->stored;
		/* Threads that had ended have not, now. */
		word->living_visitor = word->first_visitor;
		for (uint32_t v = word->first_visitor; v; v = s->visitors.items[v - 1].next_of_word)
			s->visitors.items[v - 1].next_living = s->visitors.items[v - 1].next_of_word;
	} else if (queue_of(s, step)) {
		queue_of(s, step)->next--;
	}
	if (event->visible) {
		runner->seen--;
		return;
	}
	if (step->kind == STEP_ACCESS)
		visitor_of(s, step->word, event->thread)->next--;
	if (event->delayed)
		runner->delayed.count--;
	runner->stamped = runner->next = event->step;
}

/* The event, and all behind it; of a locked instruction all. */
static void go_back(struct search *s, uint32_t event)
{
	while (event > 0 && step_of(s, &s->order->events.items[event])->kind == STEP_ACCESS &&
	        step_of(s, &s->order->events.items[event])->locked)
		event--;
	drop_goals(s);
	while (s->order->events.count > event)
		undo_event(s);
	fill_candidates(s);
}

static bool has_patience(const struct search *s)
{
	return s->undone < AT_LEAST + (uint64_t)PATIENCE * s->order->events.count;
}

/* ---- what is to come ---- */

static uint8_t byte_of(uint64_t word, unsigned i)
{
	return (uint8_t)(word >> 8 * i);
}

static bool gives(const struct search *s, struct place_in_thread place, const struct step *load, unsigned i)
{
	const struct step *step = step_at(s, place.thread, place.step);

	return step->word == load->word && step->writes >> i & 1 &&
	       byte_of(step->after, i) == byte_of(load->before, i);
}

/* A store of the byte's value that others are yet to see. */
static bool find_coming(const struct search *s, uint32_t thread, const struct step *load, unsigned i,
        struct place_in_thread *store)
{
	for (uint32_t v = s->words[load->word].first_visitor; v; v = s->visitors.items[v - 1].next_of_word) {
		const struct visitor *visitor = &s->visitors.items[v - 1];
		const struct runner *runner = &s->runners[visitor->thread];
		if (visitor->thread == thread)
			continue;
		store->thread = visitor->thread;
		for (uint32_t k = runner->seen; k < runner->delayed.count; k++) {
			store->step = runner->delayed.items[k];
			if (gives(s, *store, load, i))
				return true;
		}
		for (uint32_t k = visitor->next; k < visitor->steps.count && k < visitor->next + LOOKED_AT;
		        k++) {
			store->step = visitor->steps.items[k];
			if (gives(s, *store, load, i))
				return true;
		}
	}
	return false;
}

/* ---- what was decided ---- */

static uint64_t key_of(struct place_in_thread place)
{
	return (uint64_t)place.thread << 32 | place.step;
}

static uint64_t key_of_pair(struct place_in_thread store, struct place_in_thread load)
{
	return key_of(store) * 0x9e3779b97f4a7c15ul ^ key_of(load) * 0xc2b2ae3d27d4eb4ful;
}

static bool is_done(const struct search *s, struct place_in_thread place, bool visible)
{
	const struct runner *runner = &s->runners[place.thread];

	if (runner->next <= place.step)
		return false;
	for (uint32_t i = runner->seen; visible && i < runner->delayed.count; i++) {
		if (runner->delayed.items[i] == place.step)
			return false;
	}
	return true;
}

bool find_decided(const struct search *s, uint32_t thread, uint32_t store, struct place_in_thread *place,
        uint32_t *decision)
{
	if (!s->edges.count)
		return false;
	uint32_t found = index_find(&s->edge_index, key_of((struct place_in_thread){thread, store}));
	for (uint32_t i = found == INDEX_NONE ? 0 : found + 1; i; i = s->edges.items[i - 1].before) {
		const struct edge *edge = &s->edges.items[i - 1];
		const struct decision *decided = &s->decisions.items[edge->decision];
		bool after = edge->state == STORE_AFTER_LOAD;
		*place = after ? decided->load : decided->store;
		*decision = edge->decision;
		if (decided->state == edge->state && !is_done(s, *place, !after))
			return true;
	}
	return false;
}

static void add_edge(struct search *s, uint32_t number)
{
	const struct decision *decision = &s->decisions.items[number];
	uint64_t key = key_of(decision->state == STORE_AFTER_LOAD ? decision->store : decision->source);
	uint32_t last = index_find(&s->edge_index, key);
	struct edge edge = {number, decision->state, last == INDEX_NONE ? 0 : last + 1};

	if (last == INDEX_NONE)
		index_add(&s->edge_index, key, vector_push(&s->edges, edge));
	else
		index_change(&s->edge_index, key, vector_push(&s->edges, edge));
}

/* The event by which others see the store. */
static bool find_event(const struct search *s, struct place_in_thread store, uint32_t *number)
{
	for (uint32_t i = s->order->events.count; i > oldest_event(s); i--) {
		const struct order_event *event = &s->order->events.items[i - 1];
		if (event->thread == store.thread && event->step == store.step && !event->delayed) {
			*number = i - 1;
			return true;
		}
	}
	return false;
}

/* Has the store come before its source? In one thread it does or does not. */
static bool can_be_before(struct place_in_thread store, struct place_in_thread source)
{
	return source.thread != NOBODY && (store.thread != source.thread || store.step < source.step);
}

/* Is there another store of what the load has, that others are yet to see? */
static bool has_later_source(const struct search *s, const struct decision *decision)
{
	const struct step *load = step_at(s, decision->load.thread, decision->load.step),
	                  *store = step_at(s, decision->store.thread, decision->store.step);
	uint8_t both = load->reads & store->writes;
	struct place_in_thread coming;

	return both && find_coming(s, decision->load.thread, load, (unsigned)__builtin_ctz(both), &coming);
}

bool is_waived(const struct search *s, struct place_in_thread store, struct place_in_thread load)
{
	uint32_t number =
	        s->decisions.count ? index_find(&s->decision_index, key_of_pair(store, load)) : INDEX_NONE;

	return number != INDEX_NONE && s->decisions.items[number].state == SOURCE_LATER;
}

/* Another store of what the load has, behind which the one that is decided on may have come first. */
static bool find_other_source(const struct search *s, struct decision *decision)
{
	const struct step *load = step_at(s, decision->load.thread, decision->load.step),
	                  *store = step_at(s, decision->store.thread, decision->store.step);
	unsigned i = (unsigned)__builtin_ctz(load->reads & store->writes);

	for (uint32_t at = s->order->events.count; at > oldest_event(s); at--) {
		const struct order_event *event = &s->order->events.items[at - 1];
		struct place_in_thread place = {event->thread, event->step};
		if (step_of(s, event)->kind == STEP_ACCESS && !event->delayed && gives(s, place, load, i) &&
		        can_be_before(decision->store, place)) {
			decision->source = place;
			return true;
		}
	}
	return false;
}

/* Is it possible at all? A source may be found for it. */
static bool can_be(const struct search *s, struct decision *decision, enum decision_state state)
{
	switch (state) {
	case STORE_AFTER_LOAD:
		return decision->store.thread != decision->load.thread;
	case STORE_BEFORE_SOURCE:
		return can_be_before(decision->store, decision->source) || find_other_source(s, decision);
	case SOURCE_LATER:
		return decision->store.thread != decision->load.thread && has_later_source(s, decision);
	default:
		return false;
	}
}

/* From now on it is so; what has been done otherwise is undone. */
static void decide(struct search *s, uint32_t number, enum decision_state state)
{
	struct decision *decision = &s->decisions.items[number];
	uint32_t event;

	decision->state = (uint8_t)state;
	if (state != SOURCE_LATER)
		add_edge(s, number);
	if (state != SOURCE_LATER &&
	        find_event(s, state == STORE_AFTER_LOAD ? decision->store : decision->source, &event))
		go_back(s, event);
	else
		drop_goals(s);
}

bool reconsider_decision(struct search *s, uint32_t number)
{
	struct decision *decision = &s->decisions.items[number];

	if (!has_patience(s) || decision->changes == CHANGES_MOST)
		decision->state = DECISION_FAILED;
	/* What can be one way only may fail because of something else. */
	for (unsigned i = 1; i < DECISION_FAILED && decision->state != DECISION_FAILED; i++) {
		enum decision_state state = (decision->state + i) % DECISION_FAILED;
		if (!can_be(s, decision, state))
			continue;
		decision->changes++;
		decide(s, number, state);
		return true;
	}
	return false;
}

/* Decides for the first time, in the wanted way if that can be; or otherwise than before. */
static bool decide_on(struct search *s, struct decision wanted)
{
	uint64_t key = key_of_pair(wanted.store, wanted.load);
	uint32_t number = index_find(&s->decision_index, key);

	if (!has_patience(s))
		return false;
	if (number != INDEX_NONE) {
		s->decisions.items[number].source = wanted.source;
		return reconsider_decision(s, number);
	}
	for (unsigned i = 0; i < DECISION_FAILED; i++) {
		enum decision_state state = (wanted.state + i) % DECISION_FAILED;
		if (!can_be(s, &wanted, state))
			continue;
		number = vector_push(&s->decisions, wanted);
		index_add(&s->decision_index, key, number);
		decide(s, number, state);
		return true;
	}
	return false;
}

/* ---- what has failed ---- */

static bool is_from_nobody(const struct order_event *event)
{
	return event->source == SOURCE_OUTSIDE || event->source == SOURCE_UNORDERED;
}

/* Has the store the byte's value, and `all` others that it shares with the load, but for those in `own`? */
static bool matches(const struct step *store, const struct step *load, unsigned i, uint8_t own, bool all)
{
	uint64_t mask = all ? byte_mask(store->writes & load->reads & (uint8_t)~own) : 0;

	return !((store->after ^ load->before) & (mask | 0xfful << 8 * i));
}

/*
 * Goes back to the last store of the byte's value, and tells which was the first one to overwrite it, or
 * leaves that as it is, if nobody has.
 */
static bool go_to_source(
        const struct search *s, const struct step *load, unsigned i, bool all, struct decision *found)
{
	uint8_t own = view_of(s, found->load.thread, load->word).own;
	uint32_t at = s->order->events.count;

	found->source.thread = NOBODY;
	for (; at > oldest_event(s); at--) {
		const struct order_event *event = &s->order->events.items[at - 1];
		const struct step *step = step_of(s, event);
		if (step->kind != STEP_ACCESS || step->word != load->word)
			continue;
		if (step->writes >> i & 1 && !event->delayed) {
			struct place_in_thread place = {event->thread, event->step};
			if (!matches(step, load, i, own, all)) {
				found->store = place;
			} else if (found->store.thread != found->load.thread ||
			           can_be_before(found->store, place)) {
				found->source = place;
				return true;
			}
		}
		if (step->reads >> i & 1 && !event->visible && is_from_nobody(event))
			return byte_of(step->before, i) == byte_of(load->before, i);
	}
	return at == 0 && (!s->accesses->initial ||
	                          byte_of(s->accesses->initial[load->word], i) == byte_of(load->before, i));
}

/* The store that gave all bytes or, if there is none, that byte. */
static bool find_source(const struct search *s, const struct step *load, unsigned i, struct decision *found)
{
	struct place_in_thread store = found->store;

	if (go_to_source(s, load, i, true, found) && found->source.thread != NOBODY)
		return true;
	found->store = store;
	return go_to_source(s, load, i, false, found);
}

/* Of the load's bytes, one that is not what others have stored; 8: none. */
static unsigned wrong_byte(const struct search *s, uint32_t thread, const struct step *load)
{
	struct view view = view_of(s, thread, load->word);

	for (unsigned i = 0; i < 8; i++) {
		if (load->reads & view.known & ~view.own & 1u << i &&
		        byte_of(view.value, i) != byte_of(load->before, i))
			return i;
	}
	return 8;
}

/*
 * The byte comes from a store whose other bytes the load does not have: they were overwritten by those that
 * it has, and which were too early.
 */
static bool reconsider_others(
        struct search *s, struct decision wanted, const struct step *load, unsigned wrong)
{
	if (!find_coming(s, wanted.load.thread, load, wrong, &wanted.store))
		return false;
	const struct step *store = step_at(s, wanted.store.thread, wanted.store.step);
	struct place_in_thread first = wanted.store;
	wanted.state = STORE_BEFORE_SOURCE;
	wanted.store.thread = NOBODY;
	for (unsigned left = store->writes & load->reads; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		if (byte_of(store->after, i) == byte_of(load->before, i) || !find_source(s, load, i, &wanted))
			continue;
		wanted.store = first;
		return can_be_before(wanted.store, wanted.source) && decide_on(s, wanted);
	}
	return false;
}

bool reconsider_load(struct search *s, uint32_t thread, uint32_t number, bool coming)
{
	struct decision wanted = {.load = {thread, number}, .store = {NOBODY, 0}, .state = STORE_AFTER_LOAD};
	const struct step *load = step_at(s, thread, wanted.load.step);
	unsigned wrong = wrong_byte(s, thread, load);

	if (wrong == 8)
		return false;
	if (coming) {
		if (!go_to_source(s, load, wrong, true, &wanted) || wanted.source.thread == NOBODY)
			return false;
	} else if (!find_source(s, load, wrong, &wanted))
		return reconsider_others(s, wanted, load, wrong);
	return wanted.store.thread != NOBODY && decide_on(s, wanted);
}

/* The store waits in a circle for the load, which has what is there now: so it is to come before that. */
static bool reconsider_reader(struct search *s, const struct goal *goal, uint32_t storer)
{
	const struct step *load = step_at(s, goal->thread, goal->wanted),
	                  *store = step_at(s, storer, goal->store);
	struct decision wanted = {
	        .load = {goal->thread, goal->wanted}, .store = {NOBODY, 0}, .state = STORE_BEFORE_SOURCE};
	uint8_t both = load->reads & store->writes;

	if (!both || !find_source(s, load, (unsigned)__builtin_ctz(both), &wanted))
		return false;
	wanted.store = (struct place_in_thread){storer, goal->store};
	return (can_be(s, &wanted, STORE_BEFORE_SOURCE) || can_be(s, &wanted, SOURCE_LATER)) &&
	       decide_on(s, wanted);
}

bool is_impatient(const struct search *s, uint32_t thread, uint32_t store)
{
	return index_find(&s->impatient, key_of((struct place_in_thread){thread, store})) != INDEX_NONE;
}

/* That a store overwrites another one's, which nobody loads, was a guess. */
static bool give_way(struct search *s, struct place_in_thread store)
{
	index_add(&s->impatient, key_of(store), 0);
	drop_goals(s);
	return true;
}

unsigned goal_changes(const struct search *s, const struct goal *goal, uint32_t storer)
{
	uint32_t number = goal->reason == GOAL_DECISION ? goal->decision : INDEX_NONE;

	if (goal->reason == GOAL_LOAD)
		number = index_find(
		        &s->decision_index, key_of_pair((struct place_in_thread){storer, goal->store},
		                                    (struct place_in_thread){goal->thread, goal->wanted}));
	return number == INDEX_NONE ? 0 : s->decisions.items[number].changes;
}

bool reconsider_goal(struct search *s, const struct goal *goal, uint32_t storer)
{
	if (goal->reason == GOAL_LOAD)
		return reconsider_reader(s, goal, storer);
	if (goal->reason == GOAL_FIRST)
		return give_way(s, (struct place_in_thread){storer, goal->store});
	return goal->reason == GOAL_DECISION && reconsider_decision(s, goal->decision);
}

void decisions_deinit(struct search *s)
{
	vector_free(&s->decisions);
	vector_free(&s->edges);
	index_deinit(&s->decision_index);
	index_deinit(&s->edge_index);
	index_deinit(&s->impatient);
	free(s->before);
}
