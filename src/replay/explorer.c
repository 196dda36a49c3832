#include "replay/explorer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/why.h"
#include "replay/session.h"

#define PAGE              4096ul
#define KEYFRAME_COST     100000   /* instructions: to begin at a keyframe takes as long as these */
#define WAIT              10000000 /* ns */
#define PARKED            (FEED_PARKED - 1)
#define RECENT            24 /* uses of parked processes after which one may go */
#define USER_ADDRESS_BITS 47
#define PAGEMAP_PRESENT   (3ul << 62) /* in memory, or swapped out */

/* What of the feed belongs to the process that runs, and is another one's when that goes on. */
#define FEED_OWN offsetof(struct feed, parking)

struct parked {
	struct standing standing; /* first: a standing is known by its address */
	bool root;                /* the process as it was before it stood anywhere */
	bool diverted;            /* it is no place of the recording */
	unsigned pins;            /* so many look at it */
	uint64_t used;            /* when it was last made or gone on from */
	size_t fed;               /* the stretch that it is fed from: may be the next one already */
	pid_t pid;
	int memory, pagemap; /* -1: not open yet */
	struct feeder feeder;
	uint8_t slots[THREAD_FPSTATE];
	uint8_t feed[FEED_OWN];
};

struct explorer {
	const struct recorded *recorded;
	struct replay_options options;
	struct replay_tracer tracer;
	struct schedule schedule;
	struct session session;
	uint64_t *instructions; /* for each stretch */
	struct parked *parked[PARKED];
	uint8_t filter[TRACE_FILTER_BYTES];
	explorer_visitor *see;
	void *context;
	bool enough;   /* the visitor has what it wanted */
	uint64_t uses; /* of parked processes, so far */
	struct explorer_counts counts;
};

/* ---- parked processes ---- */

static void sleep_on(void *word, uint32_t value)
{
	struct timespec nap = {.tv_nsec = WAIT};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &nap, NULL, 0);
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static void unpark(struct explorer *explorer, unsigned slot)
{
	struct parked *parked = explorer->parked[slot];

	if (parked->memory >= 0)
		close(parked->memory);
	if (parked->pagemap >= 0)
		close(parked->pagemap);
	feeder_deinit(&parked->feeder);
	end_process(parked->pid);
	free(parked);
	explorer->parked[slot] = NULL;
	explorer->counts.parked--;
}

static bool is_place(const struct parked *parked)
{
	return !parked->root && !parked->diverted;
}

/* How far behind the one before it of the same thread: what would be lost without it. */
static uint64_t worth(const struct explorer *explorer, const struct parked *parked)
{
	uint64_t before = explorer->recorded->timeline.stretches[parked->standing.stretch]->first;

	for (unsigned i = 0; i < PARKED; i++) {
		const struct parked *other = explorer->parked[i];
		if (other && is_place(other) && other != parked &&
		        other->standing.thread == parked->standing.thread &&
		        place_compare(other->standing.place, parked->standing.place) < 0 &&
		        other->standing.place.position > before)
			before = other->standing.place.position;
	}
	return parked->standing.place.position - before;
}

/* The one that is worth least, of those that were not made or gone on from lately if `lately` is false. */
static unsigned least_worth(const struct explorer *explorer, bool lately)
{
	unsigned least = PARKED;
	uint64_t least_worth = UINT64_MAX;

	for (unsigned i = 0; i < PARKED; i++) {
		const struct parked *parked = explorer->parked[i];
		if (parked->root || parked->pins || worth(explorer, parked) >= least_worth ||
		        (!lately && explorer->uses - parked->used < RECENT))
			continue;
		least = i;
		least_worth = worth(explorer, parked);
	}
	return least;
}

static unsigned free_slot(struct explorer *explorer)
{
	for (unsigned i = 0; i < PARKED; i++) {
		if (!explorer->parked[i])
			return i;
	}
	unsigned least = least_worth(explorer, false);
	if (least == PARKED)
		least = least_worth(explorer, true);
	if (least == PARKED)
		abort(); /* whoever looks at that many at once has forgotten to release some */
	unpark(explorer, least);
	return least;
}

/* ---- running ---- */

static bool fail_in_session(struct explorer *explorer, char *why, size_t why_size)
{
	struct session *s = &explorer->session;

	fail_because(why, why_size, "%s", s->message);
	if (s->target.pid > 0)
		end_process(s->target.pid);
	s->target.pid = 0;
	s->done = s->held = false;
	explorer->schedule.failure = SIZE_MAX;
	free(s->states);
	s->states = NULL;
	return false;
}

/* The process has been told to park. */
static bool wait_until_parked(struct explorer *explorer, unsigned slot, char *why, size_t why_size)
{
	struct session *s = &explorer->session;
	struct feed_parked *parked = &s->target.feed->parked[slot];
	int status;

	while (!__atomic_load_n(&parked->waiting, __ATOMIC_SEQ_CST)) {
		sleep_on(&parked->waiting, 0);
		if (target_has_ended(&s->target, &status))
			return fail_because(why, why_size, "the process it is replayed in has ended");
	}
	return true;
}

/* The last stretch of the thread that begins before the position, or its first one. */
static bool stretch_before(
        const struct explorer *explorer, uint32_t thread, uint64_t position, size_t *stretch)
{
	const struct timeline *timeline = &explorer->recorded->timeline;
	bool found = false;

	for (size_t i = 0; i < timeline->count; i++) {
		if (stretch_thread(timeline->stretches[i]) != thread)
			continue;
		if (!found || timeline->stretches[i]->first < position)
			*stretch = i;
		found = true;
	}
	return found;
}

/* The session's process was held: it is parked now. */
static struct parked *take_parked(struct explorer *explorer, unsigned slot, char *why, size_t why_size)
{
	struct session *s = &explorer->session;
	struct parked *parked = calloc(1, sizeof *parked);

	if (!parked)
		abort();
	if (!wait_until_parked(explorer, slot, why, why_size)) {
		free(parked);
		return NULL;
	}

	parked->pid = s->target.pid;
	parked->memory = parked->pagemap = -1;
	feeder_copy(&parked->feeder, &s->feeder);
	memcpy(parked->slots, s->target.slots, sizeof parked->slots);
	memcpy(parked->feed, s->target.feed, sizeof parked->feed);
	session_state(s, &parked->standing.state);
	parked->standing.thread = s->thread;
	parked->fed = s->current;
	parked->standing.pieces = code_source_current(s->source);
	parked->standing.place.position = parked->standing.state.position;
	stretch_before(explorer, s->thread, parked->standing.place.position, &parked->standing.stretch);
	if (parked->standing.place.position == s->feeder.hold.position)
		parked->standing.place.signals = s->feeder.hold.passed;
	else
		parked->standing.ended = true;
	s->target.pid = 0;
	parked->used = ++explorer->uses;
	explorer->parked[slot] = parked;
	explorer->counts.parked++;
	return parked;
}

/* Has a slot ready for the next time the session's process is held. */
static unsigned prepare_slot(struct explorer *explorer)
{
	struct session *s = &explorer->session;
	unsigned slot = free_slot(explorer);
	struct feed_parked *parked = &s->target.feed->parked[slot];

	parked->waiting = 0;
	parked->child = 0;
	__atomic_store_n(&parked->command, PARK_STAY, __ATOMIC_SEQ_CST);
	s->park = slot + 1;
	return slot;
}

/* Runs the session's process until it is held. */
static struct parked *run_until_held(struct explorer *explorer, unsigned slot, char *why, size_t why_size)
{
	struct session *s = &explorer->session;

	session_serve(s);
	if (!s->held) {
		fail_in_session(explorer, why, why_size);
		return NULL;
	}
	s->held = false;
	return take_parked(explorer, slot, why, why_size);
}

/* Makes a process go on from where another one is parked; it runs when the session serves it. */
static bool go_on_from(struct explorer *explorer, unsigned from, char *why, size_t why_size)
{
	struct session *s = &explorer->session;
	struct parked *parked = explorer->parked[from];
	struct feed *feed = s->target.feed;
	struct feed_parked *place = &feed->parked[from];
	int32_t child;

	feeder_deinit(&s->feeder);
	feeder_copy(&s->feeder, &parked->feeder);
	s->thread = parked->standing.thread;
	s->current = parked->fed;
	if (!parked->root && parked->standing.pieces != code_source_current(s->source))
		session_set_code(s, parked->standing.pieces);
	memcpy((void *)s->target.slots, parked->slots, sizeof parked->slots);
	memcpy(feed, parked->feed, sizeof parked->feed);
	*(struct feed_record *)feed->buffers[1] = (struct feed_record){.kind = FEED_MORE};
	feed->next = offsetof(struct feed, buffers[1]);
	s->buffer = 0;
	s->filled = false;
	place->child = 0;
	__atomic_store_n(&place->command, PARK_FORK, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &place->command, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (!(child = __atomic_load_n(&place->child, __ATOMIC_SEQ_CST)))
		sleep_on(&place->child, 0);
	if (child < 0)
		return fail_because(
		        why, why_size, "cannot make a process to replay in: %s", strerror(-child));
	s->target.pid = child;
	parked->used = ++explorer->uses;
	explorer->counts.forks++;
	return true;
}

static unsigned root_slot(const struct explorer *explorer)
{
	unsigned slot = 0;

	while (!explorer->parked[slot] || !explorer->parked[slot]->root)
		slot++;
	return slot;
}

/* ---- the way to a place ---- */

/* The parked process from which it is shortest, or PARKED: from the keyframe. */
static unsigned nearest(
        const struct explorer *explorer, uint32_t thread, struct place place, uint64_t keyframe)
{
	uint64_t best = keyframe > place.position ? UINT64_MAX : place.position - keyframe + KEYFRAME_COST;
	unsigned found = PARKED;

	for (unsigned i = 0; i < PARKED; i++) {
		const struct parked *parked = explorer->parked[i];
		if (!parked || !is_place(parked) || parked->standing.thread != thread ||
		        place_compare(parked->standing.place, place) > 0 ||
		        place.position - parked->standing.place.position >= best)
			continue;
		best = place.position - parked->standing.place.position;
		found = i;
	}
	return found;
}

static bool begin(struct explorer *explorer, uint32_t thread, struct place place, struct place *from,
        char *why, size_t why_size)
{
	struct session *s = &explorer->session;
	const struct timeline *timeline = &explorer->recorded->timeline;
	size_t stretch = 0;

	if (!stretch_before(explorer, thread, place.position, &stretch))
		return fail_because(why, why_size, "there is no thread %u", thread);
	unsigned base = nearest(explorer, thread, place, timeline->stretches[stretch]->first);
	if (!go_on_from(explorer, base == PARKED ? root_slot(explorer) : base, why, why_size))
		return false;
	*from = base == PARKED ? (struct place){timeline->stretches[stretch]->first, 0}
	                       : explorer->parked[base]->standing.place;
	if (base == PARKED) {
		s->thread = thread;
		s->current = stretch;
		feeder_begin(&s->feeder, stretch);
	}
	return true;
}

/*
 * Where to leave a process on the way: close to the end, closer and closer, since whoever goes there
 * will look at what is just before; and now and then.
 */
static const uint64_t rungs[] = {32u << 20, 4u << 20, 512u << 10, 64u << 10, 8u << 10, 1u << 10};
#define GRID (64ul << 20)

static struct place next_rung(struct place from, struct place to)
{
	uint64_t left = to.position - from.position;

	if (left > GRID + rungs[0])
		return (struct place){from.position + GRID, 0};
	for (unsigned i = 0; i < sizeof rungs / sizeof *rungs; i++) {
		if (left > rungs[i] + rungs[i] / 2)
			return (struct place){to.position - rungs[i], 0};
	}
	return to;
}

static struct parked *exactly_at(const struct explorer *explorer, uint32_t thread, struct place place)
{
	for (unsigned i = 0; i < PARKED; i++) {
		struct parked *parked = explorer->parked[i];
		if (parked && is_place(parked) && parked->standing.thread == thread &&
		        place_compare(parked->standing.place, place) == 0)
			return parked;
	}
	return NULL;
}

static unsigned slot_of(const struct explorer *explorer, const struct parked *parked)
{
	unsigned slot = 0;

	while (explorer->parked[slot] != parked)
		slot++;
	return slot;
}

/* Goes on from `from`, which the session's process is at, to `to`. */
static struct parked *run_to(
        struct explorer *explorer, struct place from, struct place to, char *why, size_t why_size)
{
	struct session *s = &explorer->session;

	for (;;) {
		struct place next = next_rung(from, to);
		unsigned slot = prepare_slot(explorer);
		feeder_hold(&s->feeder, next.position, next.signals);
		struct parked *parked = run_until_held(explorer, slot, why, why_size);
		if (!parked)
			return NULL;
		explorer->counts.instructions += parked->standing.place.position - from.position;
		if (parked->standing.ended || place_compare(next, to) == 0 || explorer->enough)
			return parked;
		from = parked->standing.place;
		if (!go_on_from(explorer, slot_of(explorer, parked), why, why_size))
			return NULL;
	}
}

static struct parked *bring(
        struct explorer *explorer, uint32_t thread, struct place place, char *why, size_t why_size)
{
	struct parked *parked = exactly_at(explorer, thread, place);
	struct place from;

	explorer->counts.moves++;
	if (parked)
		return parked;
	if (!begin(explorer, thread, place, &from, why, why_size))
		return NULL;
	return run_to(explorer, from, place, why, why_size);
}

const struct standing *explorer_go(
        struct explorer *explorer, uint32_t thread, struct place place, char *why, size_t why_size)
{
	struct parked *parked = bring(explorer, thread, place, why, why_size);

	if (!parked)
		return NULL;
	parked->pins++;
	return &parked->standing;
}

const struct standing *explorer_parked(const struct explorer *explorer, uint32_t thread, struct place place)
{
	const struct parked *parked = exactly_at(explorer, thread, place);

	return parked ? &parked->standing : NULL;
}

void explorer_release(struct explorer *explorer, const struct standing *standing)
{
	(void)explorer;
	((struct parked *)standing)->pins--;
}

struct place explorer_base(const struct explorer *explorer, uint32_t thread, struct place place)
{
	size_t stretch = 0;

	stretch_before(explorer, thread, place.position, &stretch);
	struct place base = {explorer->recorded->timeline.stretches[stretch]->first, 0};
	for (unsigned i = 0; i < PARKED; i++) {
		const struct parked *parked = explorer->parked[i];
		if (parked && is_place(parked) && parked->standing.thread == thread &&
		        place_compare(parked->standing.place, place) < 0 &&
		        place_compare(parked->standing.place, base) > 0)
			base = parked->standing.place;
	}
	return base;
}

/* ---- memory ---- */

static void open_memory(struct parked *parked)
{
	char path[64];

	if (parked->memory >= 0)
		return;
	snprintf(path, sizeof path, "/proc/%d/mem", parked->pid);
	parked->memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%d/pagemap", parked->pid);
	parked->pagemap = open(path, O_RDONLY | O_CLOEXEC);
}

static bool is_ours(const struct explorer *explorer, uint64_t address)
{
	for (unsigned i = 0; i < explorer->recorded->segment_count; i++) {
		const struct segment_layout *segment = &explorer->recorded->segments[i];
		if (address - segment->base < segment->size)
			return true;
	}
	return false;
}

/* Looking at a page makes it appear: so it is asked for first whether it is there. */
static bool has_page(const struct parked *parked, uint64_t address)
{
	uint64_t entry = 0;

	if (pread(parked->pagemap, &entry, sizeof entry, (off_t)(address / PAGE * sizeof entry)) !=
	        sizeof entry)
		return false;
	return entry & PAGEMAP_PRESENT;
}

/* The program's memory in a parked process. */
static void each_range(const struct explorer *explorer, const struct parked *parked,
        void (*see)(void *context, uint64_t start, uint64_t end), void *context)
{
	char path[64], line[512];
	uint64_t start, end;

	snprintf(path, sizeof path, "/proc/%d/maps", parked->pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof line, maps)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		        start - KNOWN_TABLE >= KNOWN_END - KNOWN_TABLE && !(start >> USER_ADDRESS_BITS) &&
		        !is_ours(explorer, start))
			see(context, start, end);
	}
	if (maps)
		fclose(maps);
}

/* Of memory that appears more is there than what was touched; but only that has pages. */
struct touched {
	struct parked *parked;
	void (*see)(void *context, uint64_t start, uint64_t end);
	void *context;
};

static void see_pages(void *context, uint64_t start, uint64_t end)
{
	struct touched *touched = context;
	uint64_t entries[512], first = 0, count;

	for (uint64_t at = start; at < end; at += count * PAGE) {
		count = (end - at) / PAGE < 512 ? (end - at) / PAGE : 512;
		ssize_t n = pread(touched->parked->pagemap, entries, count * sizeof *entries,
		        (off_t)(at / PAGE * sizeof *entries));
		for (uint64_t i = 0; i < count; i++) {
			bool there =
			        n >= (ssize_t)((i + 1) * sizeof *entries) && entries[i] & PAGEMAP_PRESENT;
			if (there && !first)
				first = at + i * PAGE;
			if (!there && first)
				touched->see(touched->context, first, at + i * PAGE);
			first = there ? first : 0;
		}
	}
	if (first)
		touched->see(touched->context, first, end);
}

void explorer_each_range(struct explorer *explorer, const struct standing *standing,
        void (*see)(void *context, uint64_t start, uint64_t end), void *context)
{
	struct touched touched = {(struct parked *)standing, see, context};

	open_memory(touched.parked);
	each_range(explorer, touched.parked, see_pages, &touched);
}

static bool read_notes(
        const struct explorer *explorer, struct parked *parked, uint64_t page, uint8_t notes[PAGE])
{
	uint64_t region = 0, at;

	open_memory(parked);
	if (page >> USER_ADDRESS_BITS || is_ours(explorer, page) ||
	        pread(parked->memory, &region, sizeof region,
	                (off_t)(KNOWN_TABLE + (page >> KNOWN_WINDOW_BITS) * sizeof region)) !=
	                sizeof region ||
	        region == KNOWN_ABSENT || region == KNOWN_SHARED)
		return false;
	at = region + page % (1ul << KNOWN_WINDOW_BITS);
	return has_page(parked, at) && pread(parked->memory, notes, PAGE, (off_t)at) == PAGE;
}

void explorer_read(struct explorer *explorer, const struct standing *standing, uint64_t address, uint8_t *to,
        uint8_t *known, size_t size)
{
	struct parked *parked = (struct parked *)standing;
	uint8_t bytes[PAGE], notes[PAGE];

	for (size_t done = 0; done < size;) {
		uint64_t page = (address + done) & -PAGE, at = address + done - page;
		size_t part = PAGE - at < size - done ? PAGE - at : size - done;
		bool there = read_notes(explorer, parked, page, notes) &&
		             pread(parked->memory, bytes, PAGE, (off_t)page) == PAGE;
		for (size_t i = 0; there && i < part; i++) {
			if (known[done + i] || !notes[at + i])
				continue;
			to[done + i] = bytes[at + i];
			known[done + i] = 1;
		}
		done += part;
	}
}

bool explorer_is_crowded(const struct explorer *explorer)
{
	return explorer->session.target.feed->crowded;
}

size_t explorer_read_code(
        struct explorer *explorer, const struct standing *standing, uint64_t address, void *to, size_t size)
{
	struct session *s = &explorer->session;

	if (standing->pieces != code_source_current(s->source))
		session_set_code(s, standing->pieces);
	return code_source_read(s->source, address, to, size);
}

void explorer_fill_code(struct explorer *explorer, const struct standing *standing, uint64_t address,
        uint8_t *to, uint8_t *known, size_t size)
{
	struct session *s = &explorer->session;

	if (standing->pieces != code_source_current(s->source))
		session_set_code(s, standing->pieces);
	code_source_read_known(s->source, address, to, known, size);
}

/* ---- searching ---- */

static void take_trace(void *context, size_t stretch, const struct trace_record *records, uint32_t count)
{
	struct explorer *explorer = context;

	(void)stretch;
	for (uint32_t i = 0; i < count && explorer->see && !explorer->enough; i++)
		explorer->enough = explorer->see(explorer->context, &records[i]);
}

void explorer_probe(struct explorer *explorer, uint64_t pc, bool wanted)
{
	struct target *target = &explorer->session.target;

	space_probe(target->space, pc, wanted);
	if (target->space->exhausted)
		space_reset(target->space);
	target->feed->generation++;
}

void explorer_condition_none(struct explorer *explorer)
{
	explorer->session.target.feed->condition_count = 0;
}

void explorer_condition(
        struct explorer *explorer, uint64_t pc, const struct explorer_condition *conditions, uint32_t count)
{
	struct feed *feed = explorer->session.target.feed;
	uint32_t at = feed->condition_count, used = 0, size = 0;

	for (uint32_t i = 0; i < feed->condition_count; i++)
		used += feed->conditions[i].size;
	for (uint32_t i = 0; i < count; i++)
		size += conditions[i].size;
	if (count > FEED_CONDITIONS - feed->condition_count || size > FEED_CONDITION_BYTES - used)
		return;
	while (at && feed->conditions[at - 1].pc > pc)
		at--;
	memmove(&feed->conditions[at + count], &feed->conditions[at],
	        (feed->condition_count - at) * sizeof *feed->conditions);
	feed->condition_count += count;
	for (uint32_t i = 0; i < count; used += conditions[i].size, i++) {
		feed->conditions[at + i] = (struct feed_condition){pc, used, conditions[i].size};
		memcpy(feed->condition_code + used, conditions[i].code, conditions[i].size);
	}
}

void explorer_watch_none(struct explorer *explorer)
{
	struct feed *feed = explorer->session.target.feed;

	memset(feed->trace_filter, 0, sizeof feed->trace_filter);
	memset(feed->trace_words, 0, sizeof feed->trace_words);
}

void explorer_watch(struct explorer *explorer, uint64_t address, uint64_t size)
{
	struct feed *feed = explorer->session.target.feed;
	uint64_t last = (address + size - 1) >> TRACE_SHIFT;

	/* An access that begins before may reach it: the longest instruction's is 64 bytes. */
	for (uint64_t i = (address - 64) >> TRACE_SHIFT;
	        i <= last && i - (address >> TRACE_SHIFT) + 1 <= TRACE_FILTER_BYTES; i++)
		feed->trace_filter[i & (TRACE_FILTER_BYTES - 1)] = 1;
	uint64_t word = address / 8, last_word = (address + size - 1) / 8;
	for (uint64_t i = 0; i < TRACE_WORDS && i <= last_word - word; i++)
		feed->trace_words[(word + i) % TRACE_WORDS] = 1;
	memcpy(feed->trace_words + TRACE_WORDS, feed->trace_words, TRACE_WORDS_MORE);
}

bool explorer_trace(struct explorer *explorer, uint32_t thread, struct place from, struct place to,
        explorer_visitor *see, void *context, struct place *reached, char *why, size_t why_size)
{
	struct parked *parked = bring(explorer, thread, from, why, why_size);

	if (!parked)
		return false;
	*reached = parked->standing.place;
	if (parked->standing.ended || place_compare(to, from) <= 0)
		return true;
	if (!go_on_from(explorer, slot_of(explorer, parked), why, why_size))
		return false;
	explorer->see = see;
	explorer->context = context;
	explorer->enough = false;
	parked = run_to(explorer, from, to, why, why_size);
	explorer->see = NULL;
	explorer->enough = false;
	if (!parked)
		return false;
	*reached = parked->standing.place;
	return true;
}

/* ---- copies that run on without the log ---- */

static void *put_record(uint8_t **at, enum feed_kind kind, uint64_t position, unsigned detail, size_t size)
{
	struct feed_record *record = (struct feed_record *)*at;

	*record = (struct feed_record){position, (uint16_t)kind, (uint16_t)detail, (uint32_t)size};
	*at += size;
	return record;
}

/* The state and the lines, and a report when it has executed what it may. */
static void put_diversion(uint8_t *at, const struct state *state, bool empty,
        const struct explorer_line *lines, uint32_t count, uint64_t instructions)
{
	uint64_t position = state->position;
	struct feed_state *record = put_record(&at, FEED_STATE, position,
	        FEED_HAS_XSAVE | FEED_HAS_BASES | (empty ? FEED_HAS_EMPTY : 0),
	        sizeof *record + FEED_XSAVE_BYTES);

	memcpy(record->registers.gpr, state->registers.gpr, sizeof record->registers.gpr);
	record->registers.pc = state->registers.pc;
	record->registers.flags = state->registers.flags;
	record->fs_base = state->fs_base;
	record->gs_base = state->gs_base;
	memcpy(record->xsave, state->vectors, FEED_XSAVE_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		struct feed_patch *patch =
		        put_record(&at, FEED_PATCH, position, 0xff, sizeof *patch + sizeof lines[i].words);
		patch->address = lines[i].address;
		memcpy(patch->words, lines[i].words, sizeof lines[i].words);
	}
	struct feed_number *report = put_record(&at, FEED_REPORT, position + instructions, 0, sizeof *report);
	report->number = 0;
	put_record(&at, FEED_MORE, 0, 0, sizeof(struct feed_record));
}

#define DIVERSION_LINES 4096

const struct standing *explorer_divert(struct explorer *explorer, const struct standing *from,
        const struct state *state, bool empty, const struct explorer_line *lines, uint32_t count,
        uint64_t instructions, const struct session_diversion *diversion, unsigned *why_stopped,
        uint64_t *detail, char *why, size_t why_size)
{
	struct session *s = &explorer->session;
	struct feed *feed = s->target.feed;

	_Static_assert(sizeof(struct feed_state) + FEED_XSAVE_BYTES +
	                               DIVERSION_LINES * (sizeof(struct feed_patch) + EVENT_LINE_BYTES) +
	                               sizeof(struct feed_number) + sizeof(struct feed_record) <=
	                       FEED_BUFFER_BYTES,
	        "all of it fits into a buffer");
	if (count > DIVERSION_LINES) {
		fail_because(why, why_size, "too much memory is to be written");
		return NULL;
	}
	feed->diverting = 1;
	feed->diverted_from = state->registers.pc;
	memset(feed->trace_filter, 1, sizeof feed->trace_filter);
	memset(feed->trace_words, 1, sizeof feed->trace_words);
	struct parked *parked = NULL;
	if (go_on_from(explorer, slot_of(explorer, (const struct parked *)from), why, why_size)) {
		unsigned slot = prepare_slot(explorer);
		/* The process asks for the next buffer first. */
		put_diversion(feed->buffers[s->buffer], state, empty, lines, count, instructions);
		s->filled = true;
		s->diversion = diversion;
		parked = run_until_held(explorer, slot, why, why_size);
		s->diversion = NULL;
	}
	feed->diverting = 0;
	explorer_watch_none(explorer);
	if (!parked)
		return NULL;
	parked->diverted = true;
	parked->pins++;
	*why_stopped = feed->diverted;
	*detail = feed->diverted_detail;
	return &parked->standing;
}

void explorer_drop(struct explorer *explorer, const struct standing *standing)
{
	unpark(explorer, slot_of(explorer, (const struct parked *)standing));
}

struct explorer_counts explorer_counts(const struct explorer *explorer)
{
	return explorer->counts;
}

/* ---- the whole ---- */

struct explorer *explorer_create(const struct recorded *recorded, char *why, size_t why_size)
{
	struct explorer *explorer = calloc(1, sizeof *explorer);

	if (!explorer)
		abort();
	explorer->recorded = recorded;
	explorer->tracer =
	        (struct replay_tracer){.context = explorer, .trace = take_trace, .filter = explorer->filter};
	explorer->options = (struct replay_options){
	        .to = UINT64_MAX, .thread = UINT32_MAX, .sessions = 1, .tracer = &explorer->tracer};
	schedule_init(&explorer->schedule, &recorded->timeline, 1);
	explorer->instructions = calloc(recorded->timeline.count + 1, sizeof *explorer->instructions);
	if (!explorer->instructions)
		abort();
	session_init(&explorer->session, &explorer->options, recorded, &explorer->schedule,
	        explorer->instructions);
	explorer->session.explores = true;
	if (session_open(&explorer->session)) {
		unsigned slot = prepare_slot(explorer);
		struct parked *root = run_until_held(explorer, slot, why, why_size);
		if (root) {
			root->root = true;
			return explorer;
		}
	} else {
		fail_because(why, why_size, "%s", explorer->session.message);
	}
	explorer_destroy(explorer);
	return NULL;
}

void explorer_destroy(struct explorer *explorer)
{
	for (unsigned i = 0; i < PARKED; i++) {
		if (explorer->parked[i])
			unpark(explorer, i);
	}
	target_destroy(&explorer->session.target);
	session_deinit(&explorer->session);
	schedule_deinit(&explorer->schedule);
	free(explorer->instructions);
	free(explorer);
}
