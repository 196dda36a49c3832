#include "debug/catches.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#define STOPS 4 /* for one happening */

bool catches_signal(const struct catches *catches, const struct happening *signal)
{
	return signal && !(signal->number > 0 && signal->number < 65 && catches->passes[signal->number]);
}

static bool catches_call(const struct catches *catches, const struct happening *call)
{
	for (uint32_t i = 0; i < catches->numbers.count; i++) {
		if (catches->numbers.items[i] == (uint64_t)call->number)
			return catches->calls;
	}
	return catches->calls && !catches->numbers.count;
}

/* clone3 has its flags in memory: a thread of the recording's that has this tid was made by it. */
static bool is_thread(const struct chronicle *chronicle, int64_t tid)
{
	for (uint32_t i = 0; i < chronicle->thread_count; i++) {
		if (chronicle->threads[i].has_record && chronicle->threads[i].record.tid == tid)
			return true;
	}
	return false;
}

/* A process with memory of its own. */
static bool makes_process(const struct chronicle *chronicle, const struct happening *call)
{
	if (call->result <= 0)
		return false;
	if (call->number == SYS_fork)
		return true;
	if (call->number == SYS_clone)
		return !(call->arguments[0] & (CLONE_THREAD | CLONE_VM));
	return call->number == SYS_clone3 && !is_thread(chronicle, call->result);
}

/* What it is stopped for at this happening, in order; returns how many. */
static unsigned stops_of(const struct catches *catches, struct chronicle *chronicle, uint32_t thread,
        const struct happening *h, bool backwards, struct caught stops[STOPS])
{
	struct place behind = {h->position + 1, 0};
	const struct happening *first;
	unsigned count = 0;

	if (h->kind == HAPPENED_SIGNAL && catches_signal(catches, h))
		stops[count++] = (struct caught){CAUGHT_SIGNAL, {h->position, 0}, h};
	if (h->kind != HAPPENED_CALL)
		return count;
	bool calls = catches_call(catches, h);
	bool loads = catches->loads && loads_stop_at(catches->loads, thread, h->position, backwards);
	struct place about = {h->position, 0};
	if (calls || loads)
		about.signals = chronicle_signals(chronicle, thread, h->position, &first);
	if (calls)
		stops[count++] = (struct caught){CAUGHT_CALL, about, h};
	if (loads)
		stops[count++] = backwards ? (struct caught){CAUGHT_LOAD_BACK, about, h}
		                           : (struct caught){CAUGHT_LOAD, behind, h};
	if (catches->forks && makes_process(chronicle, h))
		stops[count++] = (struct caught){CAUGHT_FORK, behind, h};
	if (calls)
		stops[count++] = (struct caught){CAUGHT_RETURN, behind, h};
	return count;
}

bool catches_next(const struct catches *catches, struct chronicle *chronicle, uint32_t thread,
        struct place place, int told, struct caught *caught)
{
	/* Whoever has stepped behind a call is behind its return. */
	int behind = told == CAUGHT_NOTHING ? CAUGHT_RETURN : told;
	uint64_t from = place.position ? place.position - 1 : 0;
	const struct happening *h = chronicle_next(chronicle, thread, from);
	struct caught stops[STOPS];

	for (; h; h = chronicle_following(chronicle, thread, h)) {
		unsigned count = stops_of(catches, chronicle, thread, h, false, stops);
		for (unsigned i = 0; i < count; i++) {
			int order = place_compare(stops[i].place, place);
			if (order < 0 || (order == 0 && (int)stops[i].kind <= behind))
				continue;
			*caught = stops[i];
			return true;
		}
	}
	return false;
}

bool catches_previous(const struct catches *catches, struct chronicle *chronicle, uint32_t thread,
        struct place place, int told, struct caught *caught)
{
	const struct happening *h = chronicle_previous(chronicle, thread, place.position + 1);
	struct caught stops[STOPS];

	while (h) {
		/* Several may be at one position. */
		uint64_t position = h->position;
		bool found = false;
		for (h = chronicle_next(chronicle, thread, position); h && h->position == position;
		        h = chronicle_following(chronicle, thread, h)) {
			unsigned count = stops_of(catches, chronicle, thread, h, true, stops);
			for (unsigned i = 0; i < count; i++) {
				int order = place_compare(stops[i].place, place);
				if (order > 0 || (order == 0 && (int)stops[i].kind >= told))
					continue;
				*caught = stops[i];
				found = true;
			}
		}
		/* What comes back from the call before may be at the place of what was found. */
		if (found)
			return true;
		h = chronicle_previous(chronicle, thread, position);
	}
	return false;
}

void catches_clear(struct catches *catches)
{
	vector_free(&catches->numbers);
	*catches = (struct catches){0};
}
