#include "debug/debugger.h"
#include "debug/debugger_private.h"
#include "debug/operations.h"
#include "debug/present.h"
#include "debug/writes.h"

#include <stdlib.h>
#include <string.h>

#include "record/why.h"
#include "target/feed.h"

#define FIRST_CHUNK    (256ul << 10) /* instructions that are searched at once, at first */
#define LAST_CHUNK     (64ul << 20)
#define IDLE_PROBES    32 /* that are kept although nobody wants them any more */
#define KEPT_STANDINGS 24

/* ---- where threads stand ---- */

uint32_t debugger_find_thread(const struct debugger *d, uint32_t id)
{
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (d->threads[i].recorded->id == id)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t id_of(const struct debugger *d, uint32_t thread)
{
	return d->threads[thread].recorded->id;
}

static uint32_t signals_at(
        struct debugger *d, uint32_t thread, uint64_t position, const struct happening **first)
{
	return chronicle_signals(&d->chronicle, id_of(d, thread), position, first);
}

struct place debugger_about(struct debugger *d, uint32_t thread, uint64_t position)
{
	const struct happening *first;

	return (struct place){position, signals_at(d, thread, position, &first)};
}

uint64_t debugger_instructions(const struct debugger *d)
{
	uint64_t instructions = 0;

	for (uint32_t i = 0; i < d->thread_count; i++)
		instructions += d->threads[i].last.position - d->threads[i].first.position;
	return instructions;
}

static struct place limited(const struct debugged_thread *thread, struct place place)
{
	if (place_compare(place, thread->first) < 0)
		return thread->first;
	return place_compare(place, thread->last) > 0 ? thread->last : place;
}

struct place debugger_place_at(struct debugger *d, uint32_t thread, uint64_t time)
{
	const struct debugged_thread *t = &d->threads[thread];

	return limited(t, chronicle_at(&d->chronicle, t->recorded->id, time));
}

struct place debugger_place(struct debugger *d, uint32_t thread)
{
	struct debugged_thread *t = &d->threads[thread];

	if (t->moment != d->moment && d->recorded) {
		t->place = debugger_place_at(d, thread, d->time);
		t->moment = d->moment;
	}
	return t->place;
}

bool debugger_has_begun(struct debugger *d, uint32_t thread)
{
	const struct thread_record *record = &d->threads[thread].recorded->record;

	if (d->threads[thread].absent || !d->recorded)
		return !d->threads[thread].absent;
	if (d->now || thread == d->current || !d->threads[thread].recorded->has_record)
		return true;
	const struct happening *first =
	        chronicle_next(&d->chronicle, id_of(d, thread), d->threads[thread].first.position);
	return record->parent == THREAD_NO_PARENT || !first || first->time - (first->time > 0) <= d->time;
}

bool debugger_is_alive(struct debugger *d, uint32_t thread)
{
	if (!debugger_has_begun(d, thread))
		return false;
	if (!d->recorded)
		return true;
	const struct happening *end = chronicle_end(&d->chronicle, id_of(d, thread));
	if (d->now)
		return !end || end->kind == HAPPENED_CUT;
	if (thread == d->current || !d->threads[thread].recorded->has_record)
		return true;
	return !(end && end->kind == HAPPENED_END && end->end == END_THREAD_EXIT && end->time <= d->time);
}

const struct images *debugger_images(struct debugger *d)
{
	loads_mark(d);
	return &d->images;
}

static void leave_standing(struct debugger *d, struct debugged_thread *t)
{
	if (t->standing)
		explorer_release(d->explorer, t->standing);
	t->standing = NULL;
}

/* Of many threads not all can be kept at once. */
static void leave_others(struct debugger *d, uint32_t thread)
{
	unsigned kept = 0;

	for (uint32_t i = 0; i < d->thread_count; i++)
		kept += d->threads[i].standing != NULL;
	for (uint32_t i = 0; kept >= KEPT_STANDINGS && i < d->thread_count; i++) {
		if (i != thread && i != d->current)
			leave_standing(d, &d->threads[i]);
	}
}

uint64_t debugger_next_event(struct debugger *d, uint32_t thread, uint64_t position)
{
	const struct happening *next = chronicle_next(&d->chronicle, id_of(d, thread), position);
	uint64_t last = d->threads[thread].last.position;

	while (next && next->kind == HAPPENED_ORDER)
		next = chronicle_following(&d->chronicle, id_of(d, thread), next);
	return next && next->position < last ? next->position : last;
}

const struct standing *debugger_look(struct debugger *d, uint32_t thread, char *why, size_t why_size)
{
	struct debugged_thread *t = &d->threads[thread];
	struct place place = debugger_place(d, thread);

	if (!d->recorded)
		return present_look(d, thread, why, why_size);
	if (t->standing && place_compare(t->standing_place, place) == 0)
		return t->standing;
	leave_standing(d, t);
	leave_others(d, thread);
	t->standing = explorer_go(d->explorer, t->recorded->id, place, why, why_size);
	t->standing_place = place;
	return t->standing;
}

void debugger_move(struct debugger *d, uint32_t thread, struct place place)
{
	struct debugged_thread *t = &d->threads[thread];

	d->current = thread;
	d->told = CAUGHT_NOTHING;
	d->just_before = false;
	d->time = chronicle_time(&d->chronicle, t->recorded->id, place);
	t->place = place;
	t->moment = ++d->moment;
}

struct places debugger_places(struct debugger *d)
{
	struct places places = {.time = d->time, .items = calloc(d->thread_count + 1, sizeof *places.items)};

	if (!places.items)
		abort();
	for (uint32_t i = 0; i < d->thread_count; i++)
		places.items[i] = debugger_place(d, i);
	return places;
}

void debugger_put_others(struct debugger *d, uint32_t thread, const struct places *places)
{
	if (d->now)
		return;
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (i == thread)
			continue;
		d->threads[i].place = places->items[i];
		d->threads[i].moment = d->moment;
	}
	d->time = places->time;
}

/* ---- searching ---- */

struct search {
	struct debugger *debugger;
	uint32_t thread;
	enum direction direction;
	struct place from,
	        to; /* what is looked for is behind `from`, and up to `to`; backwards before `to` */
	const struct patches *left_out;
	bool found;
	struct place place;
	struct write patch; /* what the thread found there, if it stops for that */
	struct stop *stop;
};

/* Those that are not looked for, of a thread: they are another one's stores. */
struct patches {
	bool any;
	uint64_t up_to; /* in the direction of the search */
};

static bool is_left_out(const struct search *s, const struct trace_record *record)
{
	return record->kind == TRACE_PATCH && s->left_out->any &&
	       (s->direction == FORWARDS ? record->position <= s->left_out->up_to
	                                 : record->position >= s->left_out->up_to);
}

static bool watch_hits(const struct watch *watch, const struct trace_record *record)
{
	uint8_t bytes = writes_within(watch, record->address);
	struct write write = write_of_record(0, record);

	switch (watch->kind) {
	case WATCH_WRITE:
		return writes_changes(&write, *watch);
	case WATCH_READ:
		return bytes & record->reads;
	default:
		return record->kind == TRACE_PATCH ? writes_changes(&write, *watch)
		                                   : bytes & (record->reads | record->writes);
	}
}

static const struct watch *hit_watch(const struct debugger *d, const struct trace_record *record)
{
	for (uint32_t i = 0; i < d->watches.count; i++) {
		if (watch_hits(&d->watches.items[i], record))
			return &d->watches.items[i];
	}
	return NULL;
}

/* Where to stop for it: behind the access, going forwards, and before it, going backwards. */
static struct place stop_place(struct search *s, const struct trace_record *record, uint64_t position)
{
	if (record->kind == TRACE_ACCESS && s->direction == FORWARDS)
		return (struct place){position + 1, 0};
	if (record->kind == TRACE_PATCH && s->direction == BACKWARDS)
		return debugger_about(s->debugger, s->thread, position ? position - 1 : 0);
	return debugger_about(s->debugger, s->thread, position);
}

static bool is_in_range(const struct search *s, struct place place)
{
	if (s->direction == FORWARDS)
		return place_compare(place, s->from) > 0 && place_compare(place, s->to) <= 0;
	return place_compare(place, s->to) < 0;
}

static bool see_record(void *context, const struct trace_record *record)
{
	struct search *s = context;
	const struct watch *watch = NULL;

	if (record->kind == TRACE_EXECUTION) {
		if (!breakpoints_have(&s->debugger->breakpoints, record->pc))
			return false;
	} else if (record->kind == TRACE_ACCESS || record->kind == TRACE_PATCH) {
		watch = hit_watch(s->debugger, record);
		if (!watch || is_left_out(s, record))
			return false;
	} else {
		return false;
	}
	uint64_t position = s->direction == BACKWARDS ? record->last : record->position;
	struct place place = stop_place(s, record, position);
	if (!is_in_range(s, place))
		return false;
	/* Loads that are one record may have come between others. */
	int further = place_compare(place, s->place) * (s->direction == FORWARDS ? 1 : -1);
	bool patch = record->kind == TRACE_PATCH;
	if (s->found && (further > 0 || (further == 0 && patch)))
		return false;
	s->found = true;
	s->place = place;
	s->patch = write_of_record(s->thread, record);
	s->patch.position = position;
	s->stop->kind = watch ? STOP_WATCH : STOP_BREAK;
	if (watch)
		s->stop->watch = *watch;
	return false;
}

bool debugger_break(struct debugger *d, uint64_t pc, const char *conditions, char *why, size_t why_size)
{
	if (d->present && d->breakpoints.items.count >= HOLD_STOPS && !breakpoints_have(&d->breakpoints, pc))
		return fail_because(why, why_size,
		        "a program that runs can be stopped at %u places at most; delete some", HOLD_STOPS);
	return breakpoints_insert(&d->breakpoints, pc, conditions) ||
	       fail_because(why, why_size, "this is no condition");
}

/* Those that nobody wants any more stay for a while: gdb takes breakpoints out at every stop. */
static void drop_idle_probes(struct debugger *d, uint32_t wanted)
{
	if (d->probed.count <= wanted + IDLE_PROBES)
		return;
	for (uint32_t i = 0; i < d->probed.count; i++)
		explorer_probe(d->explorer, d->probed.items[i], false);
	d->probed.count = 0;
}

static void probe(struct debugger *d, uint64_t pc)
{
	for (uint32_t i = 0; i < d->probed.count; i++) {
		if (d->probed.items[i] == pc)
			return;
	}
	explorer_probe(d->explorer, pc, true);
	vector_push(&d->probed, pc);
}

void debugger_set_probes(struct debugger *d)
{
	uint32_t count = d->breakpoints.items.count;

	drop_idle_probes(d, count);
	explorer_condition_none(d->explorer);
	for (uint32_t i = 0; i < count; i++) {
		const struct breakpoint *breakpoint = &d->breakpoints.items.items[i];
		explorer_condition(
		        d->explorer, breakpoint->pc, breakpoint->conditions, breakpoint->condition_count);
		probe(d, breakpoint->pc);
	}
}

void debugger_probe(struct debugger *d, const uint64_t *pcs, uint32_t count)
{
	drop_idle_probes(d, count);
	explorer_condition_none(d->explorer);
	explorer_watch_none(d->explorer);
	for (uint32_t i = 0; i < count; i++)
		probe(d, pcs[i]);
}

static void set_watches(struct debugger *d)
{
	explorer_watch_none(d->explorer);
	for (uint32_t i = 0; i < d->watches.count; i++)
		explorer_watch(d->explorer, d->watches.items[i].address, d->watches.items[i].size);
}

static bool is_interrupted(struct search *s)
{
	struct debugger *d = s->debugger;

	if (!d->interrupted || !d->interrupted(d->context))
		return false;
	s->stop->kind = STOP_INTERRUPTED;
	return true;
}

/* Piece by piece, so that the user can stop it. False: it failed, or was interrupted, at s->place. */
static bool search_forwards(struct search *s)
{
	struct debugger *d = s->debugger;
	struct place from = s->from, reached = from;

	for (uint64_t chunk = FIRST_CHUNK; place_compare(from, s->to) < 0 && !s->found;
	        chunk = chunk < LAST_CHUNK ? 2 * chunk : chunk) {
		struct place to = {from.position + chunk, 0};
		if (chunk >= s->to.position - from.position)
			to = s->to;
		if (!explorer_trace(d->explorer, id_of(d, s->thread), from, to, see_record, s, &reached,
		            s->stop->why, sizeof s->stop->why)) {
			s->stop->kind = STOP_FAILED;
			return false;
		}
		if (place_compare(reached, to) < 0)
			break;
		from = to;
		if (!s->found && is_interrupted(s)) {
			s->place = from;
			return false;
		}
	}
	return true;
}

static bool search_backwards(struct search *s)
{
	struct debugger *d = s->debugger;
	struct place to = s->to, reached;

	while (place_compare(s->from, to) < 0 && !s->found) {
		struct place from = explorer_base(d->explorer, id_of(d, s->thread), to);
		if (place_compare(from, s->from) < 0)
			from = s->from;
		if (!explorer_trace(d->explorer, id_of(d, s->thread), from, to, see_record, s, &reached,
		            s->stop->why, sizeof s->stop->why)) {
			s->stop->kind = STOP_FAILED;
			return false;
		}
		to = from;
		if (!s->found && is_interrupted(s)) {
			s->place = to;
			return false;
		}
	}
	return true;
}

static bool search(struct search *s)
{
	struct debugger *d = s->debugger;

	if ((!d->watches.count && !d->breakpoints.items.count) || place_compare(s->from, s->to) >= 0)
		return true;
	debugger_set_probes(d);
	set_watches(d);
	return s->direction == FORWARDS ? search_forwards(s) : search_backwards(s);
}

bool debugger_trace(struct debugger *d, uint32_t thread, uint64_t address, uint64_t size, struct place from,
        struct place to, explorer_visitor *see, void *context, char *why, size_t why_size)
{
	struct place reached;

	explorer_watch_none(d->explorer);
	explorer_watch(d->explorer, address, size);
	return explorer_trace(d->explorer, id_of(d, thread), from, to, see, context, &reached, why, why_size);
}

struct place debugger_trace_base(struct debugger *d, uint32_t thread, struct place to)
{
	return explorer_base(d->explorer, id_of(d, thread), to);
}

/* ---- moving ---- */

/* Arrives at a position: where a signal comes that is told of, or about to execute the instruction. */
void debugger_arrive(struct debugger *d, uint32_t thread, uint64_t position, struct stop *stop)
{
	const struct happening *signal;
	uint32_t count = signals_at(d, thread, position, &signal);

	if (catches_signal(&d->catches, signal)) {
		debugger_move(d, thread, (struct place){position, 0});
		stop->kind = STOP_SIGNAL;
		stop->signal = (int)signal->number;
		stop->happening = signal;
		d->told = CAUGHT_SIGNAL;
	} else {
		debugger_move(d, thread, limited(&d->threads[thread], (struct place){position, count}));
	}
}

/* What the log says of the end of the thread: was it a signal? */
static const struct happening *killed_at_end(struct debugger *d, uint32_t thread)
{
	const struct happening *end = chronicle_end(&d->chronicle, id_of(d, thread));

	return end && end->kind == HAPPENED_END && end->end == END_KILLED ? end : NULL;
}

void debugger_stop_at_end(struct debugger *d, uint32_t thread, struct stop *stop)
{
	const struct happening *killed = killed_at_end(d, thread);
	bool was_there = place_compare(debugger_place(d, thread), d->threads[thread].last) >= 0;

	debugger_move(d, thread, d->threads[thread].last);
	stop->thread = id_of(d, thread);
	stop->kind = STOP_END;
	if (killed && !was_there) {
		stop->kind = STOP_SIGNAL;
		stop->signal = (int)killed->number;
		stop->happening = killed;
	}
}

static int told_of(const struct debugger *d, uint32_t thread)
{
	return thread == d->current ? d->told : CAUGHT_NOTHING;
}

static void step_forwards(struct debugger *d, uint32_t thread, struct stop *stop)
{
	struct place place = debugger_place(d, thread);
	const struct happening *signal;
	uint32_t count = signals_at(d, thread, place.position, &signal);

	if (place.signals < count && catches_signal(&d->catches, signal) &&
	        told_of(d, thread) < CAUGHT_SIGNAL) {
		stop->kind = STOP_SIGNAL;
		stop->signal = (int)signal->number;
		stop->happening = signal;
		debugger_move(d, thread, place);
		d->told = CAUGHT_SIGNAL;
	} else if (place.signals < count) {
		debugger_move(d, thread, (struct place){place.position, count});
	} else if (place_compare(place, d->threads[thread].last) >= 0) {
		debugger_stop_at_end(d, thread, stop);
	} else if (place.position + 1 >= d->threads[thread].last.position) {
		debugger_stop_at_end(d, thread, stop);
		stop->kind = stop->kind == STOP_END ? STOP_STEP : stop->kind;
	} else {
		debugger_arrive(d, thread, place.position + 1, stop);
	}
}

static void step_backwards(struct debugger *d, uint32_t thread, struct stop *stop)
{
	struct place place = debugger_place(d, thread);

	if (place_compare(place, d->threads[thread].first) <= 0) {
		debugger_move(d, thread, d->threads[thread].first);
		stop->kind = STOP_START;
	} else if (place.signals) {
		debugger_move(d, thread, (struct place){place.position, 0});
		d->told = CAUGHT_SIGNAL;
	} else {
		debugger_move(d, thread,
		        limited(&d->threads[thread], debugger_about(d, thread, place.position - 1)));
	}
}

void debugger_look_after_move(struct debugger *d, struct stop *stop)
{
	stop->thread = id_of(d, d->current);
	if (stop->kind != STOP_FAILED && stop->kind != STOP_EXITED &&
	        !debugger_look(d, d->current, stop->why, sizeof stop->why))
		stop->kind = STOP_FAILED;
}

/* Leaves the present, if that is where it is. False: it cannot be, see `stop`. */
static bool look_back(struct debugger *d, struct stop *stop)
{
	*stop = (struct stop){.kind = STOP_STEP};
	if (debugger_recall(d, stop->why, sizeof stop->why)) {
		d->now = false;
		return true;
	}
	stop->kind = STOP_FAILED;
	stop->thread = id_of(d, d->current);
	return false;
}

/* The instruction that was stepped over may have accessed what is watched. */
static void tell_watch(
        struct debugger *d, uint32_t thread, struct place before, enum direction direction, struct stop *stop)
{
	struct place after = debugger_place(d, thread), reached;
	const struct patches none = {0};
	struct stop found = {0};
	struct search s = {.debugger = d,
	        .thread = thread,
	        .direction = direction,
	        .from = direction == FORWARDS ? before : after,
	        .to = direction == FORWARDS ? after : before,
	        .left_out = &none,
	        .stop = &found};

	if (stop->kind != STOP_STEP || !d->watches.count || place_compare(s.from, s.to) >= 0)
		return;
	set_watches(d);
	if (explorer_trace(d->explorer, id_of(d, thread), s.from, s.to, see_record, &s, &reached, found.why,
	            sizeof found.why) &&
	        s.found && found.kind == STOP_WATCH && !s.patch.found)
		*stop = (struct stop){.kind = STOP_WATCH, .watch = found.watch};
}

void debugger_step(
        struct debugger *d, uint32_t thread, bool alone, enum direction direction, struct stop *stop)
{
	*stop = (struct stop){.kind = STOP_STEP};
	if (d->now && direction == FORWARDS) {
		present_step(d, thread, alone, stop);
		return;
	}
	if (!look_back(d, stop))
		return;
	struct place before = debugger_place(d, thread);
	if (direction == FORWARDS)
		step_forwards(d, thread, stop);
	else
		step_backwards(d, thread, stop);
	tell_watch(d, thread, before, direction, stop);
	if (d->present && stop->kind == STOP_END) {
		present_step(d, thread, alone, stop);
		return;
	}
	if (direction == FORWARDS)
		present_reached(d);
	debugger_look_after_move(d, stop);
}

void debugger_seek(struct debugger *d, uint32_t thread, uint64_t position, struct stop *stop)
{
	if (!look_back(d, stop))
		return;
	debugger_move(d, thread, limited(&d->threads[thread], debugger_about(d, thread, position)));
	present_reached(d);
	debugger_look_after_move(d, stop);
}

struct stop debugger_last_stop(struct debugger *d)
{
	struct stop stop = {.kind = STOP_STEP, .thread = id_of(d, d->current)};

	if (d->now)
		return stop;
	const struct happening *killed = killed_at_end(d, d->current);

	if (killed && place_compare(debugger_place(d, d->current), d->threads[d->current].last) >= 0) {
		stop.kind = STOP_SIGNAL;
		stop.signal = (int)killed->number;
		stop.happening = killed;
	}
	return stop;
}

/* What a thread comes to first, or came from last. */
struct candidate {
	bool found;
	uint32_t thread;
	struct place place;
	uint64_t time;
	struct stop stop;
	struct write patch; /* as in struct search */
	int told;           /* of what the log tells */
};

static void stop_for(struct candidate *candidate, const struct caught *caught)
{
	static const enum stop_kind kinds[] = {[CAUGHT_LOAD] = STOP_LIBRARY,
	        [CAUGHT_LOAD_BACK] = STOP_LIBRARY,
	        [CAUGHT_FORK] = STOP_FORK,
	        [CAUGHT_RETURN] = STOP_RETURN,
	        [CAUGHT_SIGNAL] = STOP_SIGNAL,
	        [CAUGHT_CALL] = STOP_CALL};

	candidate->found = true;
	candidate->patch.found = false;
	candidate->place = caught->place;
	candidate->told = (int)caught->kind;
	candidate->stop = (struct stop){.kind = kinds[caught->kind], .happening = caught->happening};
	if (caught->kind == CAUGHT_SIGNAL)
		candidate->stop.signal = (int)caught->happening->number;
}

/* False: the search was not finished, see candidate->stop. */
static bool look_forwards(struct debugger *d, uint32_t thread, struct place limit,
        const struct patches *left_out, struct candidate *candidate)
{
	struct debugged_thread *t = &d->threads[thread];
	const struct happening *killed = NULL;
	struct caught caught;
	struct search s = {.debugger = d,
	        .thread = thread,
	        .direction = FORWARDS,
	        .from = debugger_place(d, thread),
	        .to = limit,
	        .left_out = left_out,
	        .stop = &candidate->stop};
	bool found = catches_next(&d->catches, &d->chronicle, id_of(d, thread), s.from, told_of(d, thread),
	                     &caught) &&
	             place_compare(caught.place, limit) <= 0;

	if (found)
		s.to = caught.place;
	else if (place_compare(limit, t->last) >= 0 && place_compare(s.from, t->last) < 0)
		killed = killed_at_end(d, thread);
	if (!search(&s))
		return candidate->place = s.place, false;
	candidate->found = s.found || killed;
	candidate->place = s.found ? s.place : t->last;
	candidate->patch = s.patch;
	if (!s.found && found) {
		stop_for(candidate, &caught);
	} else if (!s.found && killed) {
		candidate->stop.kind = STOP_SIGNAL;
		candidate->stop.happening = killed;
		candidate->stop.signal = (int)killed->number;
		candidate->told = CAUGHT_SIGNAL;
	}
	return true;
}

static bool look_backwards(struct debugger *d, uint32_t thread, struct place limit,
        const struct patches *left_out, struct candidate *candidate)
{
	struct caught caught;
	struct search s = {.debugger = d,
	        .thread = thread,
	        .direction = BACKWARDS,
	        .from = limit,
	        .to = debugger_place(d, thread),
	        .left_out = left_out,
	        .stop = &candidate->stop};
	bool found = catches_previous(&d->catches, &d->chronicle, id_of(d, thread), s.to, told_of(d, thread),
	                     &caught) &&
	             place_compare(caught.place, limit) >= 0;

	if (found)
		s.from = caught.place;
	if (!search(&s))
		return candidate->place = s.place, false;
	candidate->found = s.found;
	candidate->place = s.place;
	candidate->patch = s.patch;
	if (found && (!s.found || place_compare(s.place, caught.place) < 0))
		stop_for(candidate, &caught);
	return true;
}

/* The first, or last, in time; of several at the same time the first that was found. */
static bool is_nearer(const struct candidate *a, const struct candidate *best, enum direction direction)
{
	if (!a->found || !best->found)
		return a->found;
	return direction == FORWARDS ? a->time < best->time : a->time > best->time;
}

static struct place limit_for(
        struct debugger *d, uint32_t thread, const struct candidate *best, enum direction direction)
{
	struct debugged_thread *t = &d->threads[thread];

	if (best->found)
		return limited(t, chronicle_at(&d->chronicle, t->recorded->id, best->time));
	return direction == FORWARDS ? t->last : t->first;
}

static void go_to_candidate(struct debugger *d, const struct candidate *candidate, struct stop *stop)
{
	*stop = candidate->stop;
	/* A signal that comes where the access was is told of next. */
	debugger_move(d, candidate->thread, limited(&d->threads[candidate->thread], candidate->place));
	d->told = candidate->told;
}

/* The nearest of all threads. False: the search was not finished, `best` is where it came to. */
static bool look(struct debugger *d, uint32_t thread, bool alone, enum direction direction,
        const struct patches *left_out, struct candidate *best)
{
	*best = (struct candidate){.told = CAUGHT_NOTHING};
	for (uint32_t i = 0; i < (alone ? 1 : d->thread_count); i++) {
		uint32_t which = (thread + i) % d->thread_count;
		struct candidate candidate = {.thread = which, .told = CAUGHT_NOTHING};
		struct place limit = limit_for(d, which, best, direction);
		bool whole = direction == FORWARDS
		                     ? look_forwards(d, which, limit, &left_out[which], &candidate)
		                     : look_backwards(d, which, limit, &left_out[which], &candidate);
		if (!whole) {
			candidate.thread = which;
			if (candidate.stop.kind == STOP_FAILED)
				candidate.place = debugger_place(d, which);
			*best = candidate;
			return false;
		}
		candidate.time =
		        candidate.found ? chronicle_time(&d->chronicle, id_of(d, which), candidate.place) : 0;
		if (is_nearer(&candidate, best, direction))
			*best = candidate;
	}
	return true;
}

/*
 * What a thread would stop for because it found it may be another one's store: then that is what to stop for,
 * and comes as such, if it is on the way. By stamps it need not be, and yet the thread that goes back has
 * seen it. Returns false if it is not to stop for `best`.
 */
static bool is_news(struct debugger *d, uint32_t thread, enum direction direction, struct candidate *best)
{
	struct write stored;
	bool any;

	if (!best->found || !best->patch.found ||
	        !writes_store(d, best->stop.watch, &best->patch, &stored, &any, best->stop.why,
	                sizeof best->stop.why) ||
	        !any || !writes_changes(&stored, best->stop.watch))
		return true;
	if (direction == FORWARDS || best->thread != thread ||
	        stored.position < debugger_place(d, stored.thread).position)
		return false;
	/* Going on from there must not lead to it again. */
	for (uint32_t i = 0; i < d->crossings.count; i++) {
		if (d->crossings.items[i].thread == stored.thread &&
		        d->crossings.items[i].position == stored.position)
			return false;
	}
	vector_push(&d->crossings, ((struct crossing){stored.thread, stored.position}));
	best->thread = stored.thread;
	best->place = debugger_about(d, stored.thread, stored.position);
	return true;
}

void debugger_continue_recorded(
        struct debugger *d, uint32_t thread, bool alone, enum direction direction, struct stop *stop)
{
	struct patches *left_out = calloc(d->thread_count, sizeof *left_out);
	struct candidate best;

	if (!left_out)
		abort();
	*stop = (struct stop){0};
	loads_mark(d);
	if (direction == FORWARDS || d->moment != d->crossed)
		d->crossings.count = 0;
	bool whole = look(d, thread, alone, direction, left_out, &best);
	while (whole && !alone && !is_news(d, thread, direction, &best)) {
		left_out[best.thread] = (struct patches){true, best.patch.position};
		whole = look(d, thread, alone, direction, left_out, &best);
	}
	free(left_out);
	if (!whole || best.found) {
		go_to_candidate(d, &best, stop);
		d->crossed = d->moment;
	} else if (direction == FORWARDS) {
		debugger_stop_at_end(d, thread, stop);
	} else {
		debugger_move(d, thread, d->threads[thread].first);
		stop->kind = STOP_START;
	}
	debugger_look_after_move(d, stop);
}

void debugger_continue(
        struct debugger *d, uint32_t thread, bool alone, enum direction direction, struct stop *stop)
{
	if (d->now && direction == FORWARDS) {
		present_continue(d, thread, stop);
		return;
	}
	if (!look_back(d, stop))
		return;
	if (d->present)
		present_leave(d);
	bool at_end = place_compare(debugger_place(d, thread), d->threads[thread].last) >= 0;
	debugger_continue_recorded(d, thread, alone, direction, stop);
	if (!d->present || direction == BACKWARDS)
		return;
	if (stop->kind == STOP_END && !present_breaks(d, stop) && (at_end || !present_ends(d))) {
		present_continue(d, thread, stop);
		return;
	}
	present_reached(d);
	debugger_look_after_move(d, stop);
}

/* ---- opening ---- */

uint32_t debugger_know_thread(struct debugger *d, uint32_t id)
{
	uint32_t known = debugger_find_thread(d, id);

	if (known != UINT32_MAX)
		return known;
	d->threads = realloc(d->threads, (d->thread_count + 1) * sizeof *d->threads);
	struct chronicle_thread *recorded = calloc(1, sizeof *recorded);
	if (!d->threads || !recorded)
		abort();
	recorded->id = id;
	d->threads[d->thread_count] = (struct debugged_thread){.recorded = recorded};
	return d->thread_count++;
}

/* Who ended the process, or else the first thread. */
static uint32_t last_thread(struct debugger *d)
{
	for (uint32_t i = 0; i < d->thread_count; i++) {
		const struct happening *end = chronicle_end(&d->chronicle, id_of(d, i));
		if (end && end->kind == HAPPENED_END && end->end != END_THREAD_EXIT)
			return i;
	}
	return 0;
}

bool debugger_open_recording(struct debugger *d, const struct recorded *recorded, char *why, size_t why_size)
{
	uint32_t before = d->thread_count ? id_of(d, d->current) : 0;

	d->recorded = recorded;
	chronicle_open(&d->chronicle, recorded);
	images_find(&d->images, recorded);
	d->explorer = explorer_create(recorded, why, why_size);
	if (!d->explorer)
		return false;
	for (uint32_t i = 0; i < d->thread_count; i++)
		d->threads[i].absent = true;
	for (uint32_t i = 0; i < d->chronicle.thread_count; i++) {
		uint32_t index = debugger_know_thread(d, d->chronicle.threads[i].id);
		struct debugged_thread *t = &d->threads[index];
		*t->recorded = d->chronicle.threads[i];
		t->absent = false;
		const struct happening *end = chronicle_end(&d->chronicle, t->recorded->id);
		t->first = (struct place){chronicle_first(&d->chronicle, t->recorded->id), 0};
		t->last = (struct place){end ? end->position : t->first.position, 0};
		if (end)
			t->last = debugger_about(d, index, end->position);
	}
	if (!d->thread_count)
		return fail_because(why, why_size, "there is no thread in it");
	operations_count(d);
	uint32_t last = d->now ? debugger_find_thread(d, before) : last_thread(d);
	debugger_move(d, last, d->threads[last].last);
	for (uint32_t i = 0; d->now && i < d->thread_count; i++) {
		d->threads[i].place = d->threads[i].last;
		d->threads[i].moment = d->moment;
	}
	return debugger_look(d, last, why, why_size) != NULL;
}

void debugger_close_recording(struct debugger *d)
{
	debugger_forget_words(d);
	untouched_deinit(&d->untouched);
	for (uint32_t i = 0; i < d->thread_count; i++)
		d->threads[i].standing = NULL;
	if (d->explorer)
		explorer_destroy(d->explorer);
	d->explorer = NULL;
	if (d->recorded) {
		loads_deinit(&d->loads);
		images_deinit(&d->images);
		chronicle_close(&d->chronicle);
	}
	d->probed.count = 0;
	d->recorded = NULL;
}

bool debugger_open(struct debugger *d, const struct recorded *recorded, char *why, size_t why_size)
{
	*d = (struct debugger){0};
	return debugger_open_recording(d, recorded, why, why_size);
}

void debugger_close(struct debugger *d)
{
	present_close(d);
	if (d->recorded)
		debugger_close_recording(d);
	breakpoints_clear(&d->breakpoints);
	catches_clear(&d->catches);
	vector_free(&d->watches);
	vector_free(&d->crossings);
	vector_free(&d->probed);
	for (uint32_t i = 0; i < d->thread_count; i++)
		free(d->threads[i].recorded);
	free(d->threads);
}
