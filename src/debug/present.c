#include "debug/present.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug/debugger_private.h"
#include "record/process_facts.h"
#include "record/why.h"

/* How long it runs at a time while something is watched. */
#define FIRST_SLICE_MS 50
#define LAST_SLICE_MS  1600

struct present {
	struct live *live;
	const char *directory;
	struct recorded recorded; /* while the debugger has one opened */
	bool has_recorded;
	char path[PATH_MAX];    /* of that */
	char session[PATH_MAX]; /* what is kept of this session has this name in front */
	unsigned number;        /* of recordings so far */
	struct standing standing;
	uint32_t standing_thread; /* index of the thread that is in there */
	bool stands;
	struct place *from; /* of all threads, when it went on */
	uint32_t from_count;
};

/* ---- threads as they are ---- */

static void take_threads(struct debugger *d)
{
	const struct live *live = d->present->live;

	for (uint32_t i = 0; i < d->thread_count; i++)
		d->threads[i].absent = true;
	d->moment++;
	for (uint32_t i = 0; i < live->last.thread_count; i++) {
		const struct hold_thread *thread = &live->last.threads[i];
		uint32_t index = debugger_know_thread(d, thread->id);
		struct debugged_thread *t = &d->threads[index];
		t->absent = false;
		t->recorded->has_record = true;
		t->recorded->record.tid = thread->tid;
		process_thread_name(
		        live->pid, thread->tid, t->recorded->record.name, sizeof t->recorded->record.name);
		t->place = t->last = (struct place){thread->position, 0};
		t->moment = d->moment;
	}
	d->present->stands = false;
}

/* If the thread is not there any more, another one. */
static uint32_t there(const struct debugger *d, uint32_t thread)
{
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (!d->threads[thread].absent)
			break;
		thread = (thread + 1) % d->thread_count;
	}
	return thread;
}

const struct standing *present_look(struct debugger *d, uint32_t thread, char *why, size_t why_size)
{
	struct present *p = d->present;

	if (p->stands && p->standing_thread == thread)
		return &p->standing;
	p->stands = false;
	p->standing = (struct standing){.thread = d->threads[thread].recorded->id};
	if (d->threads[thread].absent || !live_registers(p->live, p->standing.thread, &p->standing.state)) {
		fail_because(why, why_size, "the thread is not there any more");
		return NULL;
	}
	p->standing.place.position = p->standing.state.position;
	p->standing_thread = thread;
	p->stands = true;
	return &p->standing;
}

/* ---- the recording of it ---- */

static void forget(struct debugger *d)
{
	struct present *p = d->present;

	if (!p->has_recorded)
		return;
	debugger_close_recording(d);
	recorded_close(&p->recorded);
	unlink(p->path);
	p->has_recorded = false;
}

static bool open_recording(struct debugger *d, char *why, size_t why_size)
{
	struct present *p = d->present;

	p->has_recorded = true;
	if (recorded_open(&p->recorded, p->path, NULL, NULL, why, why_size) &&
	        debugger_open_recording(d, &p->recorded, why, why_size)) {
		d->path = p->session;
		return true;
	}
	forget(d);
	return false;
}

/* What replay comes to must be what is there. */
static bool is_exact(struct debugger *d, uint32_t thread, char *why, size_t why_size)
{
	struct state_live all = {.flags = STATE_FLAGS};
	char what[256];

	memset(all.registers, 0xff, sizeof all.registers);
	const struct standing *live = present_look(d, thread, why, why_size);
	struct state state = live ? live->state : (struct state){0};
	const struct standing *replayed = live ? debugger_look(d, thread, why, why_size) : NULL;
	if (!replayed)
		return false;
	if (replayed->state.position == state.position &&
	        state_equal(&state, &replayed->state, &all, what, sizeof what))
		return true;
	if (replayed->state.position != state.position)
		snprintf(what, sizeof what, "replay comes to position %lu, and the thread is at %lu",
		        replayed->state.position, state.position);
	return fail_because(
	        why, why_size, "its recording is not what happened: %s; this is a bug in bugnet", what);
}

bool debugger_recall(struct debugger *d, char *why, size_t why_size)
{
	struct present *p = d->present;

	if (!p || p->has_recorded)
		return true;
	if (p->live->state != LIVE_STANDS)
		return fail_because(why, why_size, "the program has ended");
	if (d->thread_count == 1 && debugger_place(d, 0).position == 0)
		return fail_because(why, why_size, "nothing was executed yet");
	snprintf(p->path, sizeof p->path, "%s/now-%u.bug", p->directory, ++p->number);
	return live_save(p->live, p->path, why, why_size) && open_recording(d, why, why_size) &&
	       is_exact(d, d->current, why, why_size);
}

/* ---- going on ---- */

void present_leave(struct debugger *d)
{
	struct present *p = d->present;

	free(p->from);
	p->from = calloc(d->thread_count + 1, sizeof *p->from);
	if (!p->from)
		abort();
	p->from_count = d->thread_count;
	for (uint32_t i = 0; i < d->thread_count; i++)
		p->from[i] = d->threads[i].absent ? (struct place){0} : debugger_place(d, i);
}

static bool breaks_at_end(struct debugger *d, uint32_t thread)
{
	char why[512];

	if (d->threads[thread].absent || thread >= d->present->from_count ||
	        place_compare(d->present->from[thread], d->threads[thread].last) >= 0)
		return false;
	const struct standing *standing = present_look(d, thread, why, sizeof why);
	return standing && breakpoints_have(&d->breakpoints, standing->state.registers.pc);
}

bool present_breaks(struct debugger *d, struct stop *stop)
{
	const struct live *live = d->present->live;
	/* The one for which it stands first. */
	uint32_t first = debugger_find_thread(d, live->last.thread);

	for (uint32_t i = 0; live->state == LIVE_STANDS && i < d->thread_count; i++) {
		uint32_t thread = ((first == UINT32_MAX ? 0 : first) + i) % d->thread_count;
		if (!breaks_at_end(d, thread))
			continue;
		debugger_move(d, thread, d->threads[thread].last);
		stop->kind = STOP_BREAK;
		return true;
	}
	return false;
}

/* It has ended, or is about to: everything is in the recording of all of it. */
static void come_to_end(struct debugger *d, struct stop *stop)
{
	struct present *p = d->present;

	snprintf(p->path, sizeof p->path, "%s", p->live->end);
	d->now = false;
	if (!open_recording(d, stop->why, sizeof stop->why)) {
		live_end(p->live);
		stop->kind = STOP_EXITED;
		stop->status = p->live->status;
		return;
	}
	d->threads[d->current].place.position = 0; /* so that it is told how it ends */
	debugger_stop_at_end(d, d->current, stop);
	d->just_before = p->live->state == LIVE_ENDS;
}

/* A signal has been delivered: it is shown where it comes. */
static void show_signal(struct debugger *d, uint32_t thread, struct stop *stop)
{
	if (!debugger_recall(d, stop->why, sizeof stop->why)) {
		stop->kind = STOP_FAILED;
		return;
	}
	d->now = false;
	debugger_arrive(d, thread, d->threads[thread].last.position, stop);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (i != thread)
			d->threads[i].place = d->threads[i].last;
		d->threads[i].moment = d->moment;
	}
	d->just_before = stop->kind == STOP_SIGNAL;
	present_reached(d);
}

static void come_to_stand(struct debugger *d, uint32_t thread, struct stop *stop)
{
	const struct hold_event *event = &d->present->live->last;

	take_threads(d);
	d->now = true;
	if (event->thread != HOLD_NOBODY)
		thread = debugger_know_thread(d, event->thread);
	d->current = there(d, thread);
	d->told = CAUGHT_NOTHING;
	switch ((enum hold_reason)event->reason) {
	case HOLD_AT_STOP:
		stop->kind = STOP_BREAK;
		break;
	case HOLD_STEPPED:
		stop->kind = STOP_STEP;
		break;
	case HOLD_SIGNAL:
		show_signal(d, d->current, stop);
		break;
	case HOLD_WANTED:
		stop->kind = STOP_INTERRUPTED;
		break;
	}
}

static void go_on(struct debugger *d, uint32_t thread, const struct live_run *how, struct stop *stop)
{
	struct present *p = d->present;
	struct live_run run = *how;
	uint64_t *stops = calloc(d->breakpoints.items.count + 1, sizeof *stops);
	bool interrupted;

	if (!stops)
		abort();
	for (uint32_t i = 0; i < d->breakpoints.items.count; i++)
		stops[i] = d->breakpoints.items.items[i].pc;
	run.stops = stops;
	run.stop_count = d->breakpoints.items.count;
	for (unsigned i = 1; i < 65; i++)
		run.passed |= (uint64_t)d->catches.passes[i] << (i - 1);
	run.interrupted = d->interrupted;
	run.context = d->context;
	forget(d);
	live_go(p->live, &run, &interrupted);
	free(stops);
	if (p->live->state == LIVE_STANDS)
		come_to_stand(d, thread, stop);
	else
		come_to_end(d, stop);
	if (stop->kind == STOP_INTERRUPTED && !interrupted)
		stop->kind = STOP_STEP; /* a thread that had nothing to execute, or time is over */
}

/* ---- watching ---- */

/* Is there something to stop at that only a recording tells of? */
static bool searches(const struct debugger *d)
{
	return d->watches.count || d->catches.calls;
}

/*
 * Looks through what was recorded since the program went on for the first thing to stop at. Then that is
 * where it is shown, and the program itself is further.
 */
static bool find_watched(struct debugger *d, uint32_t thread, struct stop *stop)
{
	struct present *p = d->present;
	struct stop found;

	if (!debugger_recall(d, stop->why, sizeof stop->why)) {
		stop->kind = STOP_FAILED;
		return true;
	}
	uint32_t current = d->current;
	bool now = d->now;
	struct place place = debugger_place(d, current);
	d->now = false;
	debugger_move(d, thread, p->from[thread]);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		d->threads[i].place =
		        i < p->from_count && !d->threads[i].absent ? p->from[i] : d->threads[i].first;
		d->threads[i].moment = d->moment;
	}
	const struct loads *loads = d->catches.loads;
	d->catches.loads = NULL; /* gdb has heard of them as the program went on */
	debugger_continue_recorded(d, thread, false, FORWARDS, &found);
	d->catches.loads = loads;
	bool before_end = found.kind != STOP_END && !(found.kind == STOP_SIGNAL && stop->kind == STOP_SIGNAL);
	if (before_end) {
		*stop = found;
		present_reached(d);
		return true;
	}
	d->now = now;
	debugger_move(d, current, place);
	if (stop->kind == STOP_SIGNAL)
		d->told = CAUGHT_SIGNAL;
	return false;
}

/* ---- moves ---- */

static bool is_over(struct debugger *d, struct stop *stop)
{
	struct live *live = d->present->live;

	if (live->state == LIVE_STANDS)
		return false;
	if (!live->reaped)
		live_end(live);
	stop->kind = STOP_EXITED;
	stop->status = live->status;
	return true;
}

void present_step(struct debugger *d, uint32_t thread, bool alone, struct stop *stop)
{
	struct live_run run = {.step = d->threads[thread].recorded->id, .others = !alone};

	*stop = (struct stop){.kind = STOP_STEP};
	if (is_over(d, stop))
		return;
	present_leave(d);
	go_on(d, thread, &run, stop);
	if (searches(d) && stop->kind != STOP_EXITED && stop->kind != STOP_FAILED)
		find_watched(d, thread, stop);
	debugger_look_after_move(d, stop);
}

void present_continue(struct debugger *d, uint32_t thread, struct stop *stop)
{
	struct live_run run = {.step = HOLD_NOBODY};
	bool again;

	*stop = (struct stop){.kind = STOP_STEP};
	if (is_over(d, stop))
		return;
	run.milliseconds = searches(d) ? FIRST_SLICE_MS : 0;
	do {
		present_leave(d);
		go_on(d, thread, &run, stop);
		if (!searches(d) || stop->kind == STOP_EXITED || stop->kind == STOP_FAILED)
			break;
		again = !find_watched(d, thread, stop) && stop->kind == STOP_STEP;
		if (run.milliseconds < LAST_SLICE_MS)
			run.milliseconds *= 2;
	} while (again);
	debugger_look_after_move(d, stop);
}

bool present_ends(const struct debugger *d)
{
	return d->present->live->state != LIVE_STANDS;
}

void present_reached(struct debugger *d)
{
	if (!d->present || d->present->live->state != LIVE_STANDS)
		return;
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (!d->threads[i].absent && place_compare(debugger_place(d, i), d->threads[i].last) < 0)
			return;
	}
	d->now = true;
}

/* ---- begin and end ---- */

void present_open(struct debugger *d, struct live *live, const char *directory)
{
	*d = (struct debugger){.now = true};
	d->present = calloc(1, sizeof *d->present);
	if (!d->present)
		abort();
	d->present->live = live;
	d->present->directory = directory;
	snprintf(d->present->session, sizeof d->present->session, "%s/session", directory);
	d->path = d->present->session;
	d->live = live;
	take_threads(d);
}

void present_close(struct debugger *d)
{
	if (!d->present)
		return;
	forget(d);
	free(d->present->from);
	free(d->present);
	d->present = NULL;
}
