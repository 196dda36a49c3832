#include "debug/races.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "debug/descriptors.h"
#include "debug/handovers.h"

#define OWNER_DIED 0x40000000u /* FUTEX_OWNER_DIED */
#define SPINS      3           /* loads of a value at one place in a row, before it changes: somebody waits */

/* A thread's last accesses to a word, byte by byte. */
struct visit {
	uint32_t thread, next; /* the next one of the word + 1, or 0 */
	uint64_t clock;        /* of the last of them */
	struct visited {
		uint64_t load_clock, store_clock; /* 0: none */
		uint32_t load_step, store_step;
	} bytes[8];
};

struct race_word {
	uint32_t first_visit;        /* + 1, or 0 */
	uint8_t synchronises, spins; /* bytes of it that do, and that a thread waits for in a loop */
	uint8_t atomic;              /* bytes of those that are so by their type or by who accesses them */
	uint64_t *released;          /* the clocks of whoever released it, or NULL */
	uint32_t writer;             /* the thread that stored last, or NO_THREAD; */
	uint32_t writer_step;
};

struct unmapped {
	uint64_t start, end;
	uint64_t *clocks; /* of whoever has unmapped it */
};

struct detector {
	const struct accesses *accesses;
	const struct order *order;
	struct races *races;
	uint32_t threads;
	uint64_t **clocks; /* of each thread: for each thread, how much of it happened before */
	uint64_t **ends;   /* when it had ended, or NULL */
	struct race_word *words;
	VECTOR(struct visit) visits;
	struct index visit_index, race_index, handed_index;
	struct index atomic_code;     /* instructions that access only what is atomic by its type */
	struct index atomic_accesses; /* those that are atomic, whatever else accesses the same */
	VECTOR(uint64_t *) handed;    /* over by calls */
	VECTOR(struct unmapped) unmapped;
	uint64_t *died;                     /* threads that have ended */
	uint32_t *next_freed;               /* of each thread, its next step of this kind, */
	uint32_t *next_called, *end_called; /* and of those of system calls; where these end */
	uint64_t heap_end;                  /* as brk last told; 0: it has not */
	struct descriptors descriptors;
	VECTOR(uint64_t *) written; /* to descriptors, by their channels */
	uint64_t **signals;         /* sent to each thread */
};

static const struct step *step_at(const struct detector *d, uint32_t thread, uint32_t step)
{
	return &d->accesses->threads[thread].steps.items[step];
}

/* ---- clocks ---- */

static uint64_t *new_clocks(const struct detector *d)
{
	uint64_t *clocks = calloc(d->threads, sizeof *clocks);

	if (!clocks)
		abort();
	return clocks;
}

/* to: also what happened before `from`. */
static void join(const struct detector *d, uint64_t *to, const uint64_t *from)
{
	for (uint32_t i = 0; from && i < d->threads; i++) {
		if (from[i] > to[i])
			to[i] = from[i];
	}
}

/* What the thread has done is before whatever acquires from there. */
static void release(const struct detector *d, uint32_t thread, uint64_t **place, bool alone)
{
	if (!*place)
		*place = new_clocks(d);
	if (alone)
		memset(*place, 0, d->threads * sizeof **place);
	join(d, *place, d->clocks[thread]);
	d->clocks[thread][thread]++;
}

static void acquire(const struct detector *d, uint32_t thread, const uint64_t *place)
{
	join(d, d->clocks[thread], place);
}

/* ---- which words synchronise ---- */

static void find_locked(struct detector *d)
{
	for (uint32_t t = 0; t < d->threads; t++) {
		const struct accessing_thread *thread = &d->accesses->threads[t];
		for (uint32_t i = 0; i < thread->steps.count; i++) {
			const struct step *step = &thread->steps.items[i];
			if (step->kind == STEP_ACCESS && (step->locked || step->kernel))
				d->words[step->word].synchronises |= step->reads | step->writes;
		}
	}
}

/* The same load again and again, with nothing else shared in between, and then another value. */
static void find_spins(struct detector *d)
{
	for (uint32_t t = 0; t < d->threads; t++) {
		const struct accessing_thread *thread = &d->accesses->threads[t];
		unsigned times = 0;
		for (uint32_t i = 1; i < thread->steps.count; i++) {
			const struct step *step = &thread->steps.items[i], *before = step - 1;
			bool same = step->kind == STEP_ACCESS && before->kind == STEP_ACCESS &&
			            step->pc == before->pc && step->word == before->word && !step->writes;
			/* Repeated loads are two records: the first and the last. */
			if (same && step->before == before->before)
				times += step->position - before->position > 16 ? SPINS : 1;
			else if (same && times >= 1)
				d->words[step->word].spins |= step->reads;
			if (!same)
				times = 0;
		}
	}
}

static bool is_atomic(const struct detector *d, const struct step *step)
{
	return d->atomic_accesses.count && index_find(&d->atomic_accesses, step->pc) != INDEX_NONE;
}

/* Does the step by what it loads, or by what it stores? */
static bool synchronises(const struct detector *d, const struct step *step, uint8_t bytes)
{
	const struct race_word *word = &d->words[step->word];

	return bytes && ((word->synchronises | word->spins) & bytes || is_atomic(d, step));
}

/* ---- accesses ---- */

static struct visit *visit_for(struct detector *d, uint32_t word, uint32_t thread)
{
	uint64_t key = (uint64_t)word * d->threads + thread;
	uint32_t number = index_find(&d->visit_index, key);

	if (number == INDEX_NONE) {
		number = vector_push(
		        &d->visits, (struct visit){.thread = thread, .next = d->words[word].first_visit});
		d->words[word].first_visit = number + 1;
		index_add(&d->visit_index, key, number);
	}
	return &d->visits.items[number];
}

/* Has the first one loaded something else than the second one stored? Then it came before it. */
static bool missed(const struct step *first, const struct step *second)
{
	for (unsigned left = first->reads & second->writes; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		if ((first->before ^ second->after) >> 8 * i & 0xff)
			return true;
	}
	return false;
}

static void add_race(struct detector *d, struct race_access first, struct race_access second, bool ordered)
{
	const struct step *a = step_at(d, first.thread, first.step);
	const struct step *b = step_at(d, second.thread, second.step);
	uint64_t low = a->pc < b->pc ? a->pc : b->pc, high = a->pc < b->pc ? b->pc : a->pc;
	uint64_t key = low * 0x9e3779b97f4a7c15ul ^ high;
	uint32_t number = index_find(&d->race_index, key);
	const struct race_word *word = &d->words[b->word];

	if (number != INDEX_NONE) {
		struct race *race = &d->races->races.items[number];
		race->count++;
		race->words += race->address >> 3 != a->address >> 3;
		return;
	}
	uint8_t both = (a->reads | a->writes) & (b->reads | b->writes);
	/* Nobody knows what is stored then. */
	bool beside = a->kind >= STEP_BESIDE || b->kind >= STEP_BESIDE,
	     saw = a->writes & b->reads && word->writer == first.thread && word->writer_step == first.step &&
	           !beside;
	struct race race = {
	        .first = first,
	        .second = second,
	        .count = 1,
	        .words = 1,
	        .ordered = ordered && !beside && (saw || missed(a, b)),
	        .saw = saw,
	        .both_store = a->writes && b->writes,
	        .spins = word->spins & both,
	        .address = a->address + (unsigned)__builtin_ctz(both),
	};
	index_add(&d->race_index, key, vector_push(&d->races->races, race));
}

/* Does it load and store as no atomic access does? */
static bool changes_plainly(const struct step *step)
{
	return step->kind == STEP_ACCESS && step->reads & step->writes && !step->locked && !step->kernel;
}

/* Two stores to bytes that synchronise, of which one is no atomic one. */
static bool compare_changes(struct detector *d, const struct order_event *event, const struct step *step,
        const struct visit *visit)
{
	const struct race_word *word = &d->words[step->word];
	uint64_t known = d->clocks[event->thread][visit->thread];
	bool plain = changes_plainly(step_at(d, event->thread, event->step));

	for (unsigned left = step->writes & word->synchronises & (uint8_t)~word->atomic; left;
	        left &= left - 1) {
		const struct visited *byte = &visit->bytes[__builtin_ctz(left)];
		if (byte->store_clock <= known)
			continue;
		if (!plain && !changes_plainly(step_at(d, visit->thread, byte->store_step)))
			continue;
		add_race(d, (struct race_access){visit->thread, byte->store_step},
		        (struct race_access){event->thread, event->step}, event->source != SOURCE_UNORDERED);
		return true;
	}
	return false;
}

static bool are_atomic(const struct detector *d, const struct step *step, uint32_t thread, uint32_t other)
{
	return is_atomic(d, step) && is_atomic(d, step_at(d, thread, other));
}

/* Of another thread's accesses, the first one found that this one races with. */
static void compare_with(struct detector *d, const struct order_event *event, const struct step *step,
        const struct visit *visit)
{
	uint64_t known = d->clocks[event->thread][visit->thread];
	struct race_access here = {event->thread, event->step};
	bool ordered = event->source != SOURCE_UNORDERED;
	uint8_t synchronised = d->words[step->word].synchronises;

	if (synchronised & step->writes && compare_changes(d, event, step, visit))
		return;
	for (unsigned left = (step->reads | step->writes) & (uint8_t)~synchronised; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		const struct visited *byte = &visit->bytes[i];
		if (byte->store_clock > known && !are_atomic(d, step, visit->thread, byte->store_step)) {
			add_race(d, (struct race_access){visit->thread, byte->store_step}, here, ordered);
			return;
		}
		if (step->writes >> i & 1 && byte->load_clock > known &&
		        !are_atomic(d, step, visit->thread, byte->load_step)) {
			add_race(d, (struct race_access){visit->thread, byte->load_step}, here, ordered);
			return;
		}
	}
}

static void compare(struct detector *d, const struct order_event *event, const struct step *step)
{
	const uint64_t *known = d->clocks[event->thread];

	for (uint32_t v = d->words[step->word].first_visit; v; v = d->visits.items[v - 1].next) {
		const struct visit *visit = &d->visits.items[v - 1];
		if (visit->thread != event->thread && visit->clock > known[visit->thread])
			compare_with(d, event, step, visit);
	}
}

static void remember(struct detector *d, const struct order_event *event, const struct step *step)
{
	struct visit *visit = visit_for(d, step->word, event->thread);
	uint64_t clock = d->clocks[event->thread][event->thread];

	visit->clock = clock;
	for (unsigned i = 0; i < 8; i++) {
		struct visited *byte = &visit->bytes[i];
		if (step->reads >> i & 1) {
			byte->load_clock = clock;
			byte->load_step = event->step;
		}
		if (step->writes >> i & 1) {
			byte->store_clock = clock;
			byte->store_step = event->step;
		}
	}
	if (step->writes) {
		d->words[step->word].writer = event->thread;
		d->words[step->word].writer_step = event->step;
	}
}

/* A store that was delayed takes place, for others, now. */
static void become_visible(struct detector *d, const struct order_event *event, const struct step *step)
{
	struct race_word *word = &d->words[step->word];
	struct step store = *step;

	store.reads = 0;
	if (!step->kernel)
		compare(d, event, &store);
	remember(d, event, &store);
	if (synchronises(d, step, store.writes))
		release(d, event->thread, &word->released, !step->locked);
}

/* The kernel has marked a robust lock, whose owner has died. */
static bool tells_death(const struct step *step)
{
	return (step->reads & 0x0f && step->before & OWNER_DIED) ||
	       (step->reads & 0xf0 && step->before >> 32 & OWNER_DIED);
}

static void access_word(struct detector *d, const struct order_event *event, const struct step *step)
{
	struct race_word *word = &d->words[step->word];
	struct step now = *step;

	/* A spinning thread waits for somebody, on purpose; whether it does so in a way that the compiler
	 * must respect, only the source says. That is told, but what follows is ordered by it. */
	if (event->delayed)
		now.writes = 0;
	if (!step->kernel)
		compare(d, event, &now);
	if (synchronises(d, step, step->reads))
		acquire(d, event->thread, word->released);
	if (word->synchronises & step->reads && tells_death(step))
		acquire(d, event->thread, d->died);
	remember(d, event, &now);
	if (synchronises(d, step, now.writes))
		release(d, event->thread, &word->released, !step->locked);
}

/* ---- calls ---- */

static bool writes_descriptor(const struct step *step)
{
	switch (step->address) {
	case SYS_write:
	case SYS_writev:
		return step->arguments[0] != 1 && step->arguments[0] != 2;
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_shutdown:
	case SYS_close:
		return true;
	default:
		return false;
	}
}

static bool reads_descriptor(const struct step *step)
{
	switch (step->address) {
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return true;
	default:
		return false;
	}
}

/* Those that wait for any of several descriptors. */
static bool waits_for_several(const struct step *step)
{
	return step->address == SYS_poll || step->address == SYS_ppoll || step->address == SYS_select ||
	       step->address == SYS_pselect6 || step->address == SYS_epoll_wait ||
	       step->address == SYS_epoll_pwait;
}

static uint64_t **written_to(struct detector *d, uint32_t channel)
{
	while (channel >= d->written.count)
		vector_push(&d->written, NULL);
	return &d->written.items[channel];
}

static void hear(struct detector *d, uint32_t thread, const struct step *step)
{
	uint32_t channel = descriptors_channel(&d->descriptors, step->arguments[0]);

	for (uint32_t i = 0; i < d->written.count; i++) {
		if (i == channel || waits_for_several(step))
			acquire(d, thread, d->written.items[i]);
	}
}

static uint64_t **handed_at(struct detector *d, uint64_t key)
{
	uint32_t number = index_find(&d->handed_index, key);

	if (number == INDEX_NONE) {
		number = vector_push(&d->handed, NULL);
		index_add(&d->handed_index, key, number);
	}
	return &d->handed.items[number];
}

/* Of the futex, if it is one that threads share. */
static struct race_word *futex_word(struct detector *d, const struct step *step)
{
	uint32_t number = word_map_find(&d->accesses->word_map, step->arguments[0] & -8ul);

	return number == WORD_NONE ? NULL : &d->words[number];
}

/* Memory that is unmapped may be mapped again by another thread: only when the first one has done with it. */
static void unmap(struct detector *d, uint32_t thread, uint64_t start, uint64_t size)
{
	struct unmapped range = {start, start + size, NULL};

	release(d, thread, &range.clocks, true);
	vector_push(&d->unmapped, range);
}

static void map(struct detector *d, uint32_t thread, uint64_t start, uint64_t size)
{
	uint64_t end = start + size;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->unmapped.count; i++) {
		struct unmapped *range = &d->unmapped.items[i];
		if (range->start < end && start < range->end)
			acquire(d, thread, range->clocks);
		if (range->start >= start && range->end <= end)
			free(range->clocks);
		else
			d->unmapped.items[kept++] = *range;
	}
	d->unmapped.count = kept;
}

static void make_call(struct detector *d, uint32_t thread, const struct step *step)
{
	uint64_t key;

	if (writes_descriptor(step))
		release(d, thread, written_to(d, descriptors_channel(&d->descriptors, step->arguments[0])),
		        false);
	if (handover_gives(step, &key))
		release(d, thread, handed_at(d, key), false);
	if (handover_is_of_lock(step) && futex_word(d, step))
		release(d, thread, &futex_word(d, step)->released, false);
	if (step->address == SYS_munmap || step->address == SYS_mremap)
		unmap(d, thread, step->arguments[0], step->arguments[1]);
	if (step->address != SYS_tgkill && step->address != SYS_tkill &&
	        step->address != SYS_rt_tgsigqueueinfo && step->address != SYS_kill)
		return;
	for (uint32_t t = 0; t < d->threads; t++) {
		uint64_t tid =
		        step->arguments[step->address == SYS_tkill || step->address == SYS_kill ? 0 : 1];
		if (step->address == SYS_kill || (uint64_t)d->accesses->threads[t].record.tid == tid)
			release(d, thread, &d->signals[t], false);
	}
}

static void return_from_call(struct detector *d, uint32_t thread, const struct step *step)
{
	uint64_t key;

	if ((int64_t)step->before < 0)
		return;
	if (reads_descriptor(step))
		hear(d, thread, step);
	descriptors_follow(&d->descriptors, step);
	if (handover_takes(step, &key))
		acquire(d, thread, *handed_at(d, key));
	if (handover_is_of_lock(step) && futex_word(d, step))
		acquire(d, thread, futex_word(d, step)->released);
	if (step->address == SYS_rt_sigtimedwait)
		acquire(d, thread, d->signals[thread]);
	if (step->address == SYS_mmap)
		map(d, thread, step->before, step->arguments[1]);
	if (step->address == SYS_mremap)
		map(d, thread, step->before, step->arguments[2]);
	if (step->address == SYS_brk)
		d->heap_end = step->before;
}

/* Blocks that the thread has freed before the position: as if it had stored to all of them. */
static void free_blocks(struct detector *d, uint32_t thread, uint64_t position)
{
	uint32_t *next = &d->next_freed[thread];

	for (; *next < d->accesses->threads[thread].steps.count; (*next)++) {
		const struct step *step = step_at(d, thread, *next);
		struct order_event event = {.thread = thread, .step = *next};
		if (step->position >= position)
			return;
		compare(d, &event, step);
		remember(d, &event, step);
	}
}

/* Memory that was there: of the heap the calls tell only where it ends. */
static bool takes_away(const struct detector *d, const struct step *step)
{
	return step->kind != STEP_CALL_UNMAPS || step->arguments[0] != SYS_brk || step->address < d->heap_end;
}

/* What the call at the position accesses: all of it, or as much as comes before anything of it is done. */
static void access_buffers(struct detector *d, uint32_t thread, uint64_t position, bool all)
{
	uint32_t *next = &d->next_called[thread];

	for (; *next < d->end_called[thread]; (*next)++) {
		const struct step *step = step_at(d, thread, *next);
		struct order_event event = {.thread = thread, .step = *next};
		if (step->position > position ||
		        (step->position == position && step->kind == STEP_CALL_STORES && !all))
			return;
		if (step->position < position || !takes_away(d, step))
			continue;
		compare(d, &event, step);
		remember(d, &event, step);
	}
}

static void run_event(struct detector *d, const struct order_event *event)
{
	const struct step *step = step_at(d, event->thread, event->step);
	const struct accessing_thread *thread = &d->accesses->threads[event->thread];

	if (!event->visible)
		free_blocks(d, event->thread, step->position);

	switch ((enum step_kind)step->kind) {
	case STEP_START:
		if (thread->maker != NO_THREAD)
			acquire(d, event->thread, d->ends[event->thread]);
		break;
	case STEP_ACCESS:
		if (event->visible)
			become_visible(d, event, step);
		else
			access_word(d, event, step);
		break;
	case STEP_CALL:
		/* Of a thread that it makes, this is the start. */
		for (uint32_t t = 0; t < d->threads; t++) {
			if (d->accesses->threads[t].maker == event->thread &&
			        d->accesses->threads[t].made_by == event->step)
				release(d, event->thread, &d->ends[t], true);
		}
		access_buffers(d, event->thread, step->position, false);
		make_call(d, event->thread, step);
		break;
	case STEP_RETURN:
		return_from_call(d, event->thread, step);
		access_buffers(d, event->thread, step->position, true);
		break;
	case STEP_SIGNAL:
		acquire(d, event->thread, d->signals[event->thread]);
		break;
	case STEP_END:
		release(d, event->thread, &d->died, false);
		break;
	default:
		break;
	}
}

/* ---- the list ---- */

static int suspicion(const struct race *race)
{
	return (race->spins ? 0 : 4) + (race->both_store ? 2 : 0) + (race->saw ? 0 : 1);
}

static int compare_races(const void *a, const void *b)
{
	const struct race *left = a, *right = b;

	if (suspicion(left) != suspicion(right))
		return suspicion(right) - suspicion(left);
	return left->count > right->count ? -1 : left->count < right->count;
}

static void start_threads(struct detector *d)
{
	d->clocks = calloc(d->threads, sizeof *d->clocks);
	d->ends = calloc(d->threads, sizeof *d->ends);
	d->signals = calloc(d->threads, sizeof *d->signals);
	d->next_freed = calloc(d->threads, sizeof *d->next_freed);
	d->next_called = calloc(d->threads, sizeof *d->next_called);
	d->end_called = calloc(d->threads, sizeof *d->end_called);
	if (!d->clocks || !d->ends || !d->signals || !d->next_freed || !d->next_called || !d->end_called)
		abort();
	for (uint32_t t = 0; t < d->threads; t++) {
		uint32_t *first = &d->next_freed[t];
		d->clocks[t] = new_clocks(d);
		d->clocks[t][t] = 1;
		*first = d->accesses->threads[t].steps.count;
		while (*first && step_at(d, t, *first - 1)->kind == STEP_FREE)
			--*first;
		d->end_called[t] = d->next_called[t] = *first;
		while (d->next_called[t] && step_at(d, t, d->next_called[t] - 1)->kind >= STEP_BESIDE)
			d->next_called[t]--;
	}
}

/* Everything but the words' kinds, and the races. */
static void forget(struct detector *d)
{
	for (uint32_t t = 0; t < d->threads; t++) {
		free(d->clocks[t]);
		free(d->ends[t]);
		free(d->signals[t]);
	}
	for (uint32_t i = 0; i < d->accesses->words.count; i++) {
		struct race_word *word = &d->words[i];
		free(word->released);
		*word = (struct race_word){.synchronises = word->synchronises,
		        .spins = word->spins,
		        .atomic = word->atomic,
		        .writer = NO_THREAD};
	}
	for (uint32_t i = 0; i < d->handed.count; i++)
		free(d->handed.items[i]);
	vector_free(&d->handed);
	for (uint32_t i = 0; i < d->unmapped.count; i++)
		free(d->unmapped.items[i].clocks);
	vector_free(&d->unmapped);
	free(d->died);
	d->died = NULL;
	vector_free(&d->visits);
	index_deinit(&d->visit_index);
	index_deinit(&d->race_index);
	index_deinit(&d->handed_index);
	d->visit_index = d->race_index = d->handed_index = (struct index){0};
	for (uint32_t i = 0; i < d->written.count; i++)
		free(d->written.items[i]);
	vector_free(&d->written);
	descriptors_deinit(&d->descriptors);
	d->descriptors = (struct descriptors){0};
	free(d->clocks);
	free(d->ends);
	free(d->signals);
	free(d->next_freed);
	free(d->next_called);
	free(d->end_called);
	d->heap_end = 0;
}

/* All that these instructions access synchronises. */
static void note_atomic_code(struct detector *d)
{
	for (uint32_t t = 0; t < d->threads; t++) {
		const struct accessing_thread *thread = &d->accesses->threads[t];
		for (uint32_t i = 0; i < thread->steps.count; i++) {
			const struct step *step = &thread->steps.items[i];
			if (step->kind == STEP_ACCESS && index_find(&d->atomic_code, step->pc) != INDEX_NONE)
				d->words[step->word].synchronises |= step->reads | step->writes;
		}
	}
}

static bool note_pc(struct index *code, uint64_t pc)
{
	if (index_find(code, pc) != INDEX_NONE)
		return false;
	index_add(code, pc, 0);
	return true;
}

/* Those of the racing words that are atomic by their type, or by who accesses them, synchronise; false: none
 * is. */
static bool find_atomic(struct detector *d, race_judge *judge, void *context)
{
	bool found = false, code = false;

	for (uint32_t i = 0; judge && i < d->races->races.count; i++) {
		const struct race *race = &d->races->races.items[i];
		const struct step *first = step_at(d, race->first.thread, race->first.step),
		                  *second = step_at(d, race->second.thread, race->second.step);
		struct race_word *word = &d->words[first->word];
		uint8_t bytes = (first->reads | first->writes) & (second->reads | second->writes);
		if (!(bytes & ~word->synchronises))
			continue;
		enum race_kind kind = judge(context, race->address, first->pc, second->pc);
		if (kind == RACE_BY_ATOMICS) {
			found |= note_pc(&d->atomic_accesses, first->pc) |
			         note_pc(&d->atomic_accesses, second->pc);
			continue;
		}
		if (kind == RACE_PLAIN)
			continue;
		if (kind == RACE_BY_ATOMIC_TYPE)
			code |= note_pc(&d->atomic_code, first->pc) | note_pc(&d->atomic_code, second->pc);
		word->synchronises |= bytes;
		word->atomic |= bytes;
		found = true;
	}
	if (code)
		note_atomic_code(d);
	return found;
}

void races_find(struct races *races, const struct accesses *accesses, const struct order *order,
        race_judge *judge, void *context)
{
	struct detector d = {.accesses = accesses,
	        .order = order,
	        .races = races,
	        .threads = accesses->thread_count,
	        .words = calloc(accesses->words.count + 1, sizeof *d.words)};

	*races = (struct races){0};
	if (!d.words)
		abort();
	for (uint32_t i = 0; i < accesses->words.count; i++)
		d.words[i].writer = NO_THREAD;
	find_locked(&d);
	find_spins(&d);
	/* What is atomic orders other accesses: then all is looked at again. */
	do {
		races->races.count = 0;
		start_threads(&d);
		for (uint32_t i = 0; i < order->events.count; i++)
			run_event(&d, &order->events.items[i]);
		forget(&d);
	} while (find_atomic(&d, judge, context));
	if (races->races.count)
		qsort(races->races.items, races->races.count, sizeof *races->races.items, compare_races);
	index_deinit(&d.atomic_code);
	index_deinit(&d.atomic_accesses);
	free(d.words);
}

void races_deinit(struct races *races)
{
	vector_free(&races->races);
}
