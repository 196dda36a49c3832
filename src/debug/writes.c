#include "debug/writes.h"

#include <stdlib.h>
#include <string.h>

#include "debug/call_writes.h"
#include "target/feed.h"

#define CALLS_BACK  4096        /* system calls to look at */
#define CHAINED     256         /* writes that may have come in another order */
#define KNOWN_AHEAD (1ul << 20) /* instructions in which a thread tells what it knows */

struct finding;
typedef bool wanted_write(const struct finding *finding, const struct write *write);

struct finding {
	wanted_write *wanted;
	struct watch what;
	uint32_t thread;
	enum direction direction;
	struct place from, to;
	uint64_t known_from;      /* backwards: what was found there or later is explained */
	const struct write *seen; /* what another thread found: who stored it is looked for; or NULL */
	struct write write;
	bool found;
	struct writes *all; /* or NULL: one is looked for, else so many at most, */
	uint32_t most;
	bool cut; /* and `write` is the first one that is not there */
};

uint8_t writes_within(const struct watch *what, uint64_t word)
{
	uint8_t bytes = 0;

	for (unsigned i = 0; i < 8; i++)
		bytes |= (uint8_t)((word + i - what->address < what->size) << i);
	return bytes;
}

struct write write_of_record(uint32_t thread, const struct trace_record *record)
{
	bool patch = record->kind == TRACE_PATCH;

	return (struct write){.thread = thread,
	        .position = record->position,
	        .pc = patch ? 0 : record->pc,
	        .found = patch,
	        .address = record->address,
	        .before = record->before,
	        .after = record->after,
	        .bytes = record->writes,
	        .known = (uint8_t)record->known};
}

/* Of a byte at that address, the bits that are asked for. */
static uint8_t asked_bits(const struct watch *what, uint64_t address)
{
	uint8_t bits = address - what->address < what->size ? 0xff : 0;

	if (address == what->address)
		bits &= (uint8_t)(0xff << what->spared_low);
	if (address == what->address + what->size - 1)
		bits &= (uint8_t)(0xff >> what->spared_high);
	return bits;
}

/* Of what is asked for, the bytes that differ. */
static uint8_t differing(const struct watch *what, uint64_t address, uint64_t before, uint64_t after)
{
	uint8_t bytes = 0;

	for (unsigned i = 0; i < 8; i++)
		bytes |=
		        (uint8_t)(((before ^ after) >> 8 * i & asked_bits(what, address + i) ? 1u : 0u) << i);
	return bytes;
}

/* Of those that were not known it cannot be told. */
static uint8_t unsure_bytes(const struct watch *what, const struct write *write)
{
	return writes_within(what, write->address) & write->bytes & (uint8_t)~write->known;
}

static uint8_t changed_bytes(const struct watch *what, const struct write *write)
{
	return (differing(what, write->address, write->before, write->after) & write->bytes) |
	       unsure_bytes(what, write);
}

bool writes_knows_before(const struct write *write, struct watch what)
{
	return !unsure_bytes(&what, write);
}

/*
 * Was it this store that another thread found? It need not have changed what the thread that made it knew;
 * and of what was found for the first time it need not have stored everything.
 */
static bool explains(const struct watch *what, const struct write *stored, const struct write *found)
{
	uint8_t new = changed_bytes(what, found), differs = new &(uint8_t)~unsure_bytes(what, found);

	return !stored->found && stored->thread != found->thread && stored->address == found->address &&
	       stored->bytes & new && (stored->bytes & differs) == differs &&
	       !(differing(what, found->address, stored->after, found->after) & new & stored->bytes);
}

bool writes_changes(const struct write *write, struct watch what)
{
	return changed_bytes(&what, write);
}

static bool is_change(const struct finding *f, const struct write *write)
{
	return changed_bytes(&f->what, write);
}

static bool is_store_there(const struct finding *f, const struct write *write)
{
	return !write->found && write->address == f->seen->address &&
	       write->bytes & changed_bytes(&f->what, f->seen);
}

static bool is_explanation(const struct finding *f, const struct write *write)
{
	return explains(&f->what, write, f->seen);
}

static bool see(void *context, const struct trace_record *record)
{
	struct finding *f = context;
	bool patch = record->kind == TRACE_PATCH;

	if ((record->kind != TRACE_ACCESS && !patch) || !record->writes)
		return false;
	/* A patch where the thread stands is there already; a store is still to come. */
	uint64_t position = record->position;
	if (f->direction == FORWARDS
	                ? position + !patch <= f->from.position
	                : position - patch >= f->to.position || (patch && position >= f->known_from))
		return false;
	struct write write = write_of_record(f->thread, record);
	if (!f->wanted(f, &write))
		return false;
	if (f->all && f->most) {
		f->most--;
		vector_push(&f->all->items, write);
		return false;
	}
	f->cut = f->all;
	f->found = true;
	f->write = write;
	return f->direction == FORWARDS;
}

static bool find_in_thread(struct debugger *d, struct finding *f, char *why, size_t why_size)
{
	struct place to = f->to;

	if (f->direction == FORWARDS || f->all)
		return debugger_trace(
		        d, f->thread, f->what.address, f->what.size, f->from, f->to, see, f, why, why_size);
	while (!f->found && place_compare(f->from, to) < 0) {
		struct place from = debugger_trace_base(d, f->thread, to);
		if (place_compare(from, f->from) < 0)
			from = f->from;
		if (!debugger_trace(
		            d, f->thread, f->what.address, f->what.size, from, to, see, f, why, why_size))
			return false;
		to = from;
	}
	return true;
}

static uint64_t time_of(struct debugger *d, const struct write *write)
{
	return chronicle_time(&d->chronicle, d->threads[write->thread].recorded->id,
	        (struct place){write->position + !write->found, 0});
}

/* What a thread found was there before the next thing it did that is stamped: what others did that is stamped
 * later came too late. */
static uint64_t latest_time(struct debugger *d, const struct write *found)
{
	const struct happening *next =
	        chronicle_next(&d->chronicle, d->threads[found->thread].recorded->id, found->position + 1);

	if (!next || next->kind == HAPPENED_END || next->kind == HAPPENED_CUT)
		return CHRONICLE_ALWAYS;
	return next->time;
}

static bool find_between(struct debugger *d, struct finding *f, struct place from, struct place to,
        enum direction direction, wanted_write *wanted, char *why, size_t why_size)
{
	f->from = from;
	f->to = to;
	f->direction = direction;
	f->wanted = wanted;
	return place_compare(from, to) >= 0 || find_in_thread(d, f, why, why_size);
}

/*
 * Of the thread that `f` names. What was stored last before the time at which it was found, as far as stamps
 * tell; or else the first such store that may have been in time; or else the last one before. False: `why`
 * tells.
 */
static bool find_store_of(struct debugger *d, struct finding *f, char *why, size_t why_size)
{
	const struct debugged_thread *t = &d->threads[f->thread];
	uint32_t id = t->recorded->id;
	struct place then = chronicle_at(&d->chronicle, id, time_of(d, f->seen)),
	             latest = chronicle_at(&d->chronicle, id, latest_time(d, f->seen));

	if (!find_between(d, f, t->first, then, BACKWARDS, is_store_there, why, why_size))
		return false;
	bool before = f->found;
	f->found = before && is_explanation(f, &f->write);
	if (!f->found && !find_between(d, f, then, latest, FORWARDS, is_explanation, why, why_size))
		return false;
	return f->found || !before ||
	       find_between(d, f, t->first, then, BACKWARDS, is_explanation, why, why_size);
}

bool writes_store(struct debugger *d, struct watch what, const struct write *found, struct write *stored,
        bool *any, char *why, size_t why_size)
{
	*any = false;
	for (uint32_t i = 0; i < d->thread_count; i++) {
		struct finding f = {.what = what, .thread = i, .known_from = UINT64_MAX, .seen = found};
		if (i == found->thread || d->threads[i].absent)
			continue;
		if (!find_store_of(d, &f, why, why_size))
			return false;
		f.write.time = f.found ? time_of(d, &f.write) : 0;
		if (f.found && (!*any || f.write.time > stored->time)) {
			*stored = f.write;
			*any = true;
		}
	}
	return true;
}

/*
 * Is the store not between the place that is looked from, where `thread` stands, and what is looked for?
 * Where the others stand is known by stamps only: a store that the thread itself has found came before,
 * wherever that was.
 */
static bool is_elsewhere(
        struct debugger *d, uint32_t thread, const struct finding *f, const struct write *stored)
{
	uint64_t here = debugger_place(d, stored->thread).position;

	return f->direction == FORWARDS ? stored->position < here
	                                : stored->position >= here && f->thread != thread;
}

/* What the thread loads next, where that is what it knew already: by that, too, it is told what came before.
 */
struct known {
	struct watch what;
	uint64_t address, value; /* a word, of which these */
	uint8_t bytes;           /* are known */
};

static bool see_next(void *context, const struct trace_record *record)
{
	struct known *known = context;
	uint8_t bytes = writes_within(&known->what, record->address);

	if ((record->kind != TRACE_ACCESS && record->kind != TRACE_PATCH) ||
	        !(bytes & (record->reads | record->writes)))
		return false;
	if (record->kind == TRACE_ACCESS) {
		known->address = record->address;
		known->value = record->before;
		known->bytes = bytes & record->reads;
	}
	return true;
}

static bool find_known(struct debugger *d, uint32_t thread, struct watch what, struct known *known, char *why,
        size_t why_size)
{
	struct place here = debugger_place(d, thread), to = d->threads[thread].last;
	const struct happening *next =
	        chronicle_next(&d->chronicle, d->threads[thread].recorded->id, here.position);

	*known = (struct known){.what = what};
	if (next && next->position < to.position)
		to = (struct place){next->position, 0};
	if (to.position - here.position > KNOWN_AHEAD)
		to = (struct place){here.position + KNOWN_AHEAD, 0};
	return place_compare(here, to) >= 0 ||
	       debugger_trace(d, thread, what.address, what.size, here, to, see_next, known, why, why_size);
}

/* Has the store not been made yet, although it may have been, by stamps? */
static bool is_refuted(const struct known *known, const struct write *stored)
{
	return stored->address == known->address &&
	       differing(&known->what, stored->address, stored->after, known->value) & stored->bytes &
	               known->bytes;
}

/* ---- what it was before ---- */

/* `earlier` tells what the bytes were that were not known. */
static void know_before(struct write *write, const struct write *earlier)
{
	uint8_t told = (earlier->known | earlier->bytes) & (uint8_t)~write->known;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t mask = 0xfful << 8 * i;
		if (told >> i & 1)
			write->before = (write->before & ~mask) | (earlier->after & mask);
	}
	write->known |= told;
}

static bool is_any(const struct finding *f, const struct write *write)
{
	return write->bytes & writes_within(&f->what, write->address);
}

/* A keyframe empties memory: of what comes first behind it, it is found out what was there before. */
static bool look_before(
        struct debugger *d, const struct finding *f, struct write *write, char *why, size_t why_size)
{
	struct finding earlier = {.wanted = is_any,
	        .what = {.address = write->address, .size = 8},
	        .thread = f->thread,
	        .direction = BACKWARDS,
	        .from = d->threads[f->thread].first,
	        .to = {write->position, 0},
	        .known_from = write->found ? write->position : UINT64_MAX};

	if (!unsure_bytes(&f->what, write))
		return true;
	if (!find_in_thread(d, &earlier, why, why_size))
		return false;
	if (earlier.found)
		know_before(write, &earlier.write);
	return true;
}

/*
 * What was never seen before is no change because it is loaded: it was so already. Unless another thread
 * stored it, or a system call was given that memory.
 */
static bool is_first_sight(struct debugger *d, const struct watch *what, const struct write *write)
{
	return write->found && unsure_bytes(what, write) && !writes_call(d, write);
}

/* ---- one of them ---- */

/* Is what was found not what is looked for? If it is, what the thread only found becomes who stored it.
 * False: `why` tells. */
static bool judge(struct debugger *d, uint32_t thread, const struct known *known, struct finding *f,
        bool *left_out, char *why, size_t why_size)
{
	struct write stored;
	bool any;

	if (!look_before(d, f, &f->write, why, why_size))
		return false;
	*left_out = !changed_bytes(&f->what, &f->write);
	if (*left_out)
		return true;
	if (!f->write.found) {
		*left_out = f->thread != thread && is_refuted(known, &f->write);
		return true;
	}
	if (!writes_store(d, f->what, &f->write, &stored, &any, why, why_size))
		return false;
	*left_out = any ? is_elsewhere(d, thread, f, &stored) : is_first_sight(d, &f->what, &f->write);
	if (any && !*left_out)
		f->write = stored;
	return true;
}

/* Finds one in one thread, or who stored what it found. False: `why` tells. */
static bool find_origin(struct debugger *d, uint32_t thread, const struct known *known, struct finding *f,
        char *why, size_t why_size)
{
	bool left_out;

	while (place_compare(f->from, f->to) < 0) {
		if (!find_in_thread(d, f, why, why_size))
			return false;
		if (!f->found)
			return true;
		if (!judge(d, thread, known, f, &left_out, why, why_size))
			return false;
		if (!left_out)
			return true;
		f->found = false;
		if (f->direction == FORWARDS) {
			f->from = (struct place){f->write.position + 1, 0};
		} else {
			f->to = (struct place){f->write.position, 0};
			f->known_from = f->write.found ? f->write.position : f->known_from;
		}
	}
	return true;
}

/* Did it find what the other one left? */
static bool continues(const struct watch *what, const struct write *write, const struct write *earlier)
{
	return write->address == earlier->address &&
	       !(differing(what, write->address, write->before, earlier->after) & write->known);
}

/* Where stamps leave the order open, values may tell it. */
static bool is_later(
        struct debugger *d, const struct watch *what, const struct write *write, const struct write *than)
{
	bool open = write->time <= latest_time(d, than) && than->time <= latest_time(d, write);
	bool continued = continues(what, write, than);

	if (open && continued != continues(what, than, write))
		return continued;
	return write->time > than->time;
}

bool writes_find(struct debugger *d, uint32_t thread, struct watch what, enum direction direction,
        struct write *write, char *why, size_t why_size)
{
	struct known known = {0};
	bool any = false;

	snprintf(why, why_size, "%s", "");
	if (direction == BACKWARDS && d->thread_count > 1 &&
	        !find_known(d, thread, what, &known, why, why_size))
		return false;
	for (uint32_t i = 0; i < d->thread_count; i++) {
		uint32_t which = (thread + i) % d->thread_count;
		const struct debugged_thread *t = &d->threads[which];
		struct place here = debugger_place(d, which);
		struct finding f = {.wanted = is_change,
		        .what = what,
		        .thread = which,
		        .direction = direction,
		        .from = direction == FORWARDS ? here : t->first,
		        .to = direction == FORWARDS ? t->last : here,
		        .known_from = UINT64_MAX};
		if (!find_origin(d, thread, &known, &f, why, why_size))
			return false;
		f.write.time = f.found ? time_of(d, &f.write) : 0;
		if (f.found && (!any || (direction == FORWARDS ? is_later(d, &what, write, &f.write)
		                                               : is_later(d, &what, &f.write, write)))) {
			*write = f.write;
			any = true;
		}
	}
	return any;
}

/* ---- all of them ---- */

static int compare_times(const void *a, const void *b)
{
	const struct write *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return left->position < right->position ? -1 : left->position > right->position;
}

/* Is the item, which a thread found, a store of another thread in the list, as far as stamps tell? Most are
 * of just before. */
static bool is_stored(
        struct debugger *d, const struct watch *what, const struct writes *writes, uint32_t item)
{
	const struct write *items = writes->items.items, *found = &items[item];
	uint64_t latest = latest_time(d, found);
	uint32_t end = item;

	while (end < writes->items.count && items[end].time <= latest)
		end++;
	while (end-- > 0) {
		if (explains(what, &items[end], found))
			return true;
	}
	return false;
}

/* What one thread stored and others came to see is in the list once; what was there already is not. */
static void drop_stored(struct debugger *d, const struct watch *what, struct writes *writes)
{
	uint32_t count = writes->items.count, kept = 0;
	bool *stored = calloc(count + 1, sizeof *stored);

	if (!stored)
		abort();
	for (uint32_t i = 0; i < count; i++)
		stored[i] = writes->items.items[i].found && is_stored(d, what, writes, i);
	for (uint32_t i = 0; i < count; i++) {
		struct write write = writes->items.items[i];
		if (stored[i])
			vector_push(&writes->seen, write);
		else if (!is_first_sight(d, what, &write))
			writes->items.items[kept++] = write;
	}
	writes->items.count = kept;
	free(stored);
}

/* Of one thread, in the order of its log: what each was before is what an earlier one left. */
static void know_all_before(const struct watch *what, struct writes *writes, uint32_t first)
{
	struct write *items = writes->items.items;
	uint32_t kept = first;

	for (uint32_t i = first; i < writes->items.count; i++) {
		for (uint32_t k = i; k-- > first && unsure_bytes(what, &items[i]);) {
			if (items[k].address == items[i].address)
				know_before(&items[i], &items[k]);
		}
	}
	for (uint32_t i = first; i < writes->items.count; i++) {
		if (changed_bytes(what, &items[i]))
			items[kept++] = items[i];
	}
	writes->items.count = kept;
}

/* Where stamps leave the order open, each comes behind the one that left what it found. */
static void chain(struct debugger *d, const struct watch *what, struct writes *writes)
{
	struct write *items = writes->items.items;

	for (uint32_t i = 1; i < writes->items.count; i++) {
		uint32_t next = i,
		         end = i + CHAINED < writes->items.count ? i + CHAINED : writes->items.count;
		uint64_t latest = latest_time(d, &items[i]);
		if (items[i].address != items[i - 1].address)
			continue;
		while (next < end && items[next].time <= latest &&
		        !continues(what, &items[next], &items[i - 1]))
			next++;
		if (next == i || next == end || items[next].time > latest)
			continue;
		struct write moved = items[next];
		memmove(&items[i + 1], &items[i], (next - i) * sizeof *items);
		items[i] = moved;
	}
}

/* Of those that are listed, how many come before the first one that is not: the list has holes behind it. */
static uint32_t count_before(const struct writes *writes, const struct write *left_out)
{
	uint32_t count = 0;

	while (count < writes->items.count && compare_times(&writes->items.items[count], left_out) < 0)
		count++;
	return count;
}

bool writes_list(struct debugger *d, struct watch what, uint32_t most, struct writes *writes, char *why,
        size_t why_size)
{
	struct write left_out = {.time = UINT64_MAX, .thread = UINT32_MAX}; /* the first one that is */

	*writes = (struct writes){0};
	for (uint32_t i = 0; i < d->thread_count; i++) {
		uint32_t first = writes->items.count;
		struct finding f = {.wanted = is_change,
		        .what = what,
		        .thread = i,
		        .direction = FORWARDS,
		        .from = d->threads[i].first,
		        .to = d->threads[i].last,
		        .all = writes,
		        .most = most + CHAINED};
		if (!find_in_thread(d, &f, why, why_size))
			return false;
		know_all_before(&what, writes, first);
		f.write.time = f.cut ? time_of(d, &f.write) : 0;
		if (f.cut && compare_times(&f.write, &left_out) < 0)
			left_out = f.write;
		writes->cut |= f.cut;
	}
	for (uint32_t i = 0; i < writes->items.count; i++)
		writes->items.items[i].time = time_of(d, &writes->items.items[i]);
	if (writes->items.count)
		qsort(writes->items.items, writes->items.count, sizeof *writes->items.items, compare_times);
	drop_stored(d, &what, writes);
	uint32_t whole = count_before(writes, &left_out);
	chain(d, &what, writes);
	/* What is left out might have been chained in between the last ones. */
	if (writes->cut && d->thread_count > 1)
		whole = whole > CHAINED ? whole - CHAINED : 0;
	whole = whole < most ? whole : most;
	writes->cut |= whole < writes->items.count;
	writes->items.count = whole;
	return true;
}

static bool is_before_here(struct debugger *d, const struct write *write)
{
	return write->position + !write->found <= debugger_place(d, write->thread).position;
}

/* What the thread itself has seen was there, also where the store is later by stamps. */
const struct write *writes_last(
        struct debugger *d, const struct writes *writes, uint32_t thread, uint8_t bytes)
{
	const struct write *last = NULL, *seen = NULL;

	for (uint32_t i = 0; i < writes->items.count; i++) {
		const struct write *write = &writes->items.items[i];
		last = write->bytes & bytes && is_before_here(d, write) ? write : last;
	}
	for (uint32_t i = 0; i < writes->seen.count; i++) {
		const struct write *write = &writes->seen.items[i];
		if (write->thread == thread && write->bytes & bytes && is_before_here(d, write) &&
		        (!seen || write->position > seen->position))
			seen = write;
	}
	return seen && (!last || seen->time > last->time) ? seen : last;
}

void writes_deinit(struct writes *writes)
{
	vector_free(&writes->items);
	vector_free(&writes->seen);
}

const struct happening *writes_call(struct debugger *d, const struct write *write)
{
	uint32_t id = d->threads[write->thread].recorded->id;
	uint64_t position = write->position;

	for (unsigned i = 0; i < CALLS_BACK; i++) {
		const struct happening *h = chronicle_previous(&d->chronicle, id, position);
		if (!h)
			return NULL;
		if (h->kind == HAPPENED_CALL && call_may_write(h, write->address, 8))
			return h;
		position = h->position;
	}
	return NULL;
}
