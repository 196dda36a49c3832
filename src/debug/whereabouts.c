#include "debug/whereabouts.h"

#include <stdlib.h>
#include <string.h>

#include "debug/debugger_private.h"

static const uint8_t syscall_code[] = {0x0f, 0x05};

/* At the end of what was recorded of it; false: it goes on. */
static bool find_end(struct debugger *d, uint32_t thread, struct whereabouts *w)
{
	const struct debugged_thread *t = &d->threads[thread];
	const struct happening *end = chronicle_end(&d->chronicle, t->recorded->id);

	if (!end || d->now || place_compare(w->place, t->last) < 0)
		return false;
	w->number = end->number;
	w->state = end->kind == HAPPENED_CUT ? WHEREABOUTS_CUT
	           : end->end == END_KILLED  ? WHEREABOUTS_DIES
	           : end->end == END_EXIT    ? WHEREABOUTS_EXITS
	                                     : WHEREABOUTS_ENDS;
	return true;
}

static void find(struct debugger *d, uint32_t thread, struct whereabouts *w)
{
	const struct debugged_thread *t = &d->threads[thread];
	uint8_t code[sizeof syscall_code];
	char why[512];

	w->place = debugger_place(d, thread);
	if (!debugger_is_alive(d, thread)) {
		const struct happening *end = chronicle_end(&d->chronicle, t->recorded->id);
		w->state = !d->now && end && end->time > d->time ? WHEREABOUTS_TO_COME : WHEREABOUTS_ENDED;
		return;
	}
	const struct standing *standing = debugger_look(d, thread, why, sizeof why);
	if (!standing) {
		w->state = WHEREABOUTS_UNKNOWN;
		return;
	}
	w->pc = standing->state.registers.pc;
	w->state = WHEREABOUTS_RUNNING;
	/* One that was in a call when the program died is in that call, which is more to know. */
	bool ends = find_end(d, thread, w);
	if (ends && w->state != WHEREABOUTS_CUT)
		return;
	uint64_t number = standing->state.registers.gpr[RAX];
	if (debugger_read(d, thread, w->pc, code, sizeof code) == sizeof code &&
	        memcmp(code, syscall_code, sizeof code) == 0) {
		w->state = WHEREABOUTS_CALL;
		w->number = (int64_t)number;
	}
}

struct whereabouts *whereabouts_now(struct debugger *d)
{
	struct whereabouts *all = calloc(d->thread_count, sizeof *all);

	if (!all)
		abort();
	for (uint32_t i = 0; i < d->thread_count; i++)
		find(d, i, &all[i]);
	return all;
}

struct whereabouts *whereabouts_at(struct debugger *d, uint32_t thread, uint64_t position)
{
	struct debugger before = *d;
	struct debugged_thread *threads = calloc(d->thread_count, sizeof *threads);

	if (!threads)
		abort();
	memcpy(threads, d->threads, d->thread_count * sizeof *threads);
	d->now = false;
	debugger_move(d, thread, debugger_about(d, thread, position));
	struct whereabouts *all = whereabouts_now(d);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		d->threads[i].place = threads[i].place;
		d->threads[i].moment = threads[i].moment;
	}
	d->current = before.current;
	d->now = before.now;
	d->just_before = before.just_before;
	d->told = before.told;
	d->time = before.time;
	d->moment = before.moment;
	free(threads);
	return all;
}
