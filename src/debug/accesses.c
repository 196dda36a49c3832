#include "debug/accesses.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "debug/call_accesses.h"
#include "debug/initial.h"
#include "record/why.h"
#include "recording/decode.h"
#include "replay/explorer.h"
#include "replay/replayer.h"
#include "target/feed.h"

#define PAGE         4096ul
#define LINE         64ul
#define RECORD_BYTES 256ul /* what an access takes, with its place in the order */
#define RECORDS_MOST (1ul << 31)
#define SEVERAL      UINT32_MAX

/* ---- the pages that several threads touch ---- */

/* A page or a word, and the thread that touches it, or SEVERAL. */
struct owned {
	uint64_t address;
	uint32_t owner;
	bool written;
	bool cleared; /* by the kernel, at the end of a thread */
};

struct owners {
	struct index index;  /* of pages, or */
	struct word_map map; /* of words */
	VECTOR(struct owned) items;
};

static struct owned *touch(struct owners *owners, uint32_t number, uint32_t thread)
{
	struct owned *item = &owners->items.items[number];

	if (item->owner != thread)
		item->owner = SEVERAL;
	return item;
}

static void touch_page(struct owners *owners, uint64_t address, uint32_t thread)
{
	uint32_t number = index_find(&owners->index, address);

	if (number == INDEX_NONE) {
		number = vector_push(&owners->items, (struct owned){address, thread, false, false});
		index_add(&owners->index, address, number);
	}
	touch(owners, number, thread);
}

static struct owned *touch_word(
        struct owners *owners, struct word_cursor *cursor, uint64_t address, uint32_t thread)
{
	uint32_t number = word_map_look(&owners->map, cursor, address);

	if (number == WORD_NONE) {
		number = vector_push(&owners->items, (struct owned){address, thread, false, false});
		word_map_set(&owners->map, address, number);
		*cursor = (struct word_cursor){0};
	}
	return touch(owners, number, thread);
}

static void owners_deinit(struct owners *owners)
{
	index_deinit(&owners->index);
	word_map_deinit(&owners->map);
	vector_free(&owners->items);
}

struct collection {
	const struct recorded *recorded;
	const struct call_accesses *calls; /* or NULL */
	pthread_mutex_t mutex;
	struct owners pages, words;
	bool all_pages; /* there were too many to tell */
	struct accesses *accesses;
	uint8_t filter[TRACE_FILTER_BYTES];
	VECTOR(struct trace_record) * traces; /* for each stretch */
	uint64_t records, most;               /* that are kept, and can be */
};

static void take_touched(void *context, size_t stretch, const uint64_t *pages, uint32_t count)
{
	struct collection *collection = context;
	uint32_t thread = stretch_thread(collection->recorded->timeline.stretches[stretch]);

	pthread_mutex_lock(&collection->mutex);
	for (uint32_t i = 0; i < count; i++) {
		if (pages[i] == UINT64_MAX)
			collection->all_pages = true;
		else
			touch_page(&collection->pages, pages[i], thread);
	}
	pthread_mutex_unlock(&collection->mutex);
}

static void let_through(struct collection *collection, uint64_t address)
{
	collection->filter[address >> TRACE_SHIFT & (TRACE_FILTER_BYTES - 1)] = 1;
}

static void filter_pages(struct collection *collection)
{
	memset(collection->filter, collection->all_pages, sizeof collection->filter);
	for (uint32_t i = 0; i < collection->pages.items.count; i++) {
		const struct owned *page = &collection->pages.items.items[i];
		for (uint64_t at = 0; page->owner == SEVERAL && at < PAGE; at += 1 << TRACE_SHIFT)
			let_through(collection, page->address + at);
	}
}

static bool is_shared_page(const struct collection *collection, uint64_t address)
{
	uint32_t number = index_find(&collection->pages.index, address & -PAGE);

	return collection->all_pages ||
	       (number != INDEX_NONE && collection->pages.items.items[number].owner == SEVERAL);
}

/* ---- the words that they share ---- */

/* A call that makes a thread: the address that the kernel clears at its end, or 0. */
static uint64_t cleared_by(const struct trace_record *record)
{
	bool clone =
	        record->kind == TRACE_CALL && (record->address == SYS_clone || record->address == SYS_clone3);

	return clone && (int64_t)record->before > 0 && record->after & CLONE_CHILD_CLEARTID ? record[1].after
	                                                                                    : 0;
}

static void take_words(void *context, size_t stretch, const struct trace_record *records, uint32_t count)
{
	struct collection *collection = context;
	uint32_t thread = stretch_thread(collection->recorded->timeline.stretches[stretch]);
	struct word_cursor cursor = {0};
	uint64_t page = 0;
	bool shared = false;

	pthread_mutex_lock(&collection->mutex);
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_record *record = &records[i];
		if (record->kind == TRACE_ACCESS && (record->address & -PAGE) + 1 != page) {
			page = (record->address & -PAGE) + 1;
			shared = is_shared_page(collection, record->address);
		}
		if (record->kind == TRACE_ACCESS && shared)
			touch_word(&collection->words, &cursor, record->address, thread)->written |=
			        record->writes != 0;
		else if (cleared_by(record))
			touch_word(&collection->words, &cursor, cleared_by(record) & -8ul, thread)->cleared =
			        true;
	}
	pthread_mutex_unlock(&collection->mutex);
}

/* Numbers the words that are shared: stored to by one thread, and accessed by another. */
static void find_words(struct accesses *accesses, struct collection *collection)
{
	for (uint32_t i = 0; i < collection->words.items.count; i++) {
		const struct owned *word = &collection->words.items.items[i];
		if ((word->owner == SEVERAL && word->written) || word->cleared)
			word_map_set(&accesses->word_map, word->address,
			        vector_push(&accesses->words, word->address));
	}
	owners_deinit(&collection->words);
	collection->words = (struct owners){0};
	memset(collection->filter, 0, sizeof collection->filter);
	for (uint32_t i = 0; i < accesses->words.count; i++)
		let_through(collection, accesses->words.items[i]);
	if (!initial_is_known(collection->recorded))
		return;
	accesses->initial = calloc(accesses->words.count + 1, sizeof *accesses->initial);
	if (!accesses->initial)
		abort();
	for (uint32_t i = 0; i < accesses->words.count; i++)
		accesses->initial[i] = initial_word(collection->recorded, accesses->words.items[i]);
}

/* ---- what system calls access ---- */

/* Of memory that is gone only those count that somebody has touched. */
static void touch_called_pages(struct collection *collection)
{
	struct owners *pages = &collection->pages;

	for (uint32_t i = 0; collection->calls && i < collection->calls->items.count; i++) {
		const struct call_access *call = &collection->calls->items.items[i];
		uint64_t first = call->start & -PAGE;
		if (call->kind != CALL_UNMAPS) {
			for (uint64_t at = first; at < call->end; at += PAGE)
				touch_page(pages, at, call->thread);
			continue;
		}
		/* Whichever are fewer. */
		if ((call->end - first) / PAGE <= pages->items.count) {
			for (uint64_t at = first; at < call->end; at += PAGE) {
				uint32_t number = index_find(&pages->index, at);
				if (number != INDEX_NONE)
					touch(pages, number, call->thread);
			}
			continue;
		}
		for (uint32_t k = 0; k < pages->items.count; k++) {
			if (pages->items.items[k].address >= first &&
			        pages->items.items[k].address < call->end)
				touch(pages, k, call->thread);
		}
	}
}

/*
 * A word that threads share only because of a call has all its accesses traced and ordered, and calls hand
 * over much memory: of a large piece its beginning counts, and one word in each of these.
 */
#define SAMPLED_WHOLE 512ul
#define SAMPLED_APART 512ul

static bool is_sampled(const struct call_access *call, uint64_t at)
{
	return at < call->start + SAMPLED_WHOLE || at % SAMPLED_APART == 0;
}

static void touch_by_call(struct owned *word, const struct call_access *call)
{
	if (word->owner == call->thread || word->owner == SEVERAL || is_sampled(call, word->address)) {
		if (word->owner != call->thread)
			word->owner = SEVERAL;
		word->written |= call->kind != CALL_LOADS;
	}
}

static void touch_buffer(struct collection *collection, const struct call_access *call)
{
	struct owners *words = &collection->words;
	struct word_cursor cursor = {0};

	for (uint64_t at = call->start & -8ul; at < call->end; at += 8) {
		if (!is_shared_page(collection, at)) {
			at = (at & -PAGE) + PAGE - 8;
			continue;
		}
		uint32_t number = word_map_look(&words->map, &cursor, at);
		if (number != WORD_NONE)
			touch_by_call(&words->items.items[number], call);
		else if (is_sampled(call, at))
			touch_word(words, &cursor, at, call->thread)->written = call->kind == CALL_STORES;
	}
}

static void touch_unmapped(struct collection *collection, const struct call_access *call)
{
	struct owners *words = &collection->words;
	struct word_cursor cursor = {0};

	/* Whichever are fewer. */
	if ((call->end - call->start) / 8 <= words->items.count) {
		for (uint64_t at = call->start & -8ul; at < call->end; at += 8) {
			uint32_t number = word_map_look(&words->map, &cursor, at);
			if (number != WORD_NONE)
				touch_by_call(&words->items.items[number], call);
		}
		return;
	}
	for (uint32_t i = 0; i < words->items.count; i++) {
		if (words->items.items[i].address >= call->start && words->items.items[i].address < call->end)
			touch_by_call(&words->items.items[i], call);
	}
}

static void touch_called_words(struct collection *collection)
{
	for (uint32_t i = 0; collection->calls && i < collection->calls->items.count; i++) {
		const struct call_access *call = &collection->calls->items.items[i];
		if (call->kind == CALL_UNMAPS)
			touch_unmapped(collection, call);
		else
			touch_buffer(collection, call);
	}
}

/* ---- the accesses ---- */

/*
 * Each stretch is one session's, so only the number of all of them is shared. Locked accesses are kept
 * whatever they access: their line is part of the order.
 */
static void take_trace(void *context, size_t stretch, const struct trace_record *records, uint32_t count)
{
	struct collection *collection = context;
	struct word_cursor cursor = {0};
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count && collection->records <= collection->most; i++) {
		if (records[i].kind == TRACE_ACCESS && !records[i].locked &&
		        word_map_look(&collection->accesses->word_map, &cursor, records[i].address) ==
		                WORD_NONE)
			continue;
		vector_push(&collection->traces[stretch], records[i]);
		kept++;
	}
	__atomic_add_fetch(&collection->records, kept, __ATOMIC_RELAXED);
}

static bool replay_for(struct collection *collection, const struct replay_tracer *tracer,
        uint64_t *instructions, char *why, size_t why_size)
{
	struct replay_options options = {.to = UINT64_MAX, .thread = UINT32_MAX, .tracer = tracer};
	struct replay_result result;

	replay_opened(&options, collection->recorded, &result);
	*instructions = result.instructions;
	return result.outcome == REPLAY_EXACT || fail_because(why, why_size, "%s", result.message);
}

static bool trace(struct collection *collection, uint64_t *instructions, char *why, size_t why_size)
{
	struct replay_tracer pages = {.context = collection, .touched = take_touched};
	struct replay_tracer words = {
	        .context = collection, .trace = take_words, .filter = collection->filter};
	struct replay_tracer all = {.context = collection, .trace = take_trace, .filter = collection->filter};

	if (!replay_for(collection, &pages, instructions, why, why_size))
		return false;
	touch_called_pages(collection);
	filter_pages(collection);
	if (!replay_for(collection, &words, instructions, why, why_size))
		return false;
	touch_called_words(collection);
	find_words(collection->accesses, collection);
	if (!replay_for(collection, &all, instructions, why, why_size))
		return false;
	return collection->records <= collection->most ||
	       fail_because(why, why_size,
	               "its threads make more than %lu accesses to memory that they share: too many for the "
	               "memory "
	               "that is available here",
	               collection->most);
}

/* As many accesses as fit into memory. */
static uint64_t most_records(void)
{
	uint64_t available = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * PAGE, kilobytes;
	char line[256];
	FILE *file = fopen("/proc/meminfo", "re");

	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "MemAvailable: %lu kB", &kilobytes) == 1)
			available = kilobytes << 10;
	}
	if (file)
		fclose(file);
	available /= RECORD_BYTES;
	return available < RECORDS_MOST ? available : RECORDS_MOST;
}

static uint32_t line_number(struct accesses *accesses, uint64_t address)
{
	uint32_t number = index_find(&accesses->line_index, address & -LINE);

	if (number == INDEX_NONE) {
		number = vector_push(&accesses->lines, address & -LINE);
		index_add(&accesses->line_index, address & -LINE, number);
	}
	return number;
}

/* ---- steps ---- */

/* One stretch: the log's events and the trace, which are merged by position. */
struct merging {
	struct accesses *accesses;
	struct accessing_thread *thread;
	struct word_cursor cursor;
	const struct trace_record *record, *end; /* the next one of the trace */
	uint64_t clock;
	bool told; /* the log has a stamp for the next operation */
	struct event_order order;
};

static struct step *push_step(struct merging *m, struct step step)
{
	return &m->thread->steps.items[vector_push(&m->thread->steps, step)];
}

static void stamp(struct merging *m, struct step *step)
{
	step->stamp = m->told ? m->order.stamp : m->clock + 1;
	step->loose = m->told && m->order.loose;
	step->since = step->loose ? m->order.since : step->stamp - 1;
	m->clock = step->stamp;
	m->told = false;
}

static void merge_access(struct merging *m, const struct trace_record *record)
{
	uint32_t word = word_map_look(&m->accesses->word_map, &m->cursor, record->address);

	if (word == WORD_NONE)
		return;
	push_step(m, (struct step){.kind = STEP_ACCESS,
	                     .position = record->position,
	                     .pc = record->pc,
	                     .address = record->address,
	                     .before = record->before,
	                     .after = record->after,
	                     .reads = record->reads,
	                     .writes = record->writes,
	                     .locked = record->locked,
	                     .word = word});
}

static void merge_operation(struct merging *m)
{
	const struct trace_record *record = m->record++;
	struct step step = {
	        .kind = STEP_OPERATION, .position = record->position, .pc = record->pc, .word = NO_WORD};

	/* Its line is that of its first access, which follows. */
	if (m->record < m->end && m->record->kind == TRACE_ACCESS && m->record->locked) {
		step.address = m->record->address;
		step.word = line_number(m->accesses, m->record->address);
	}
	stamp(m, &step);
	push_step(m, step);
}

/* The trace up to a position. */
static void merge_trace(struct merging *m, uint64_t position)
{
	while (m->record < m->end && m->record->position < position) {
		if (m->record->kind == TRACE_OPERATION)
			merge_operation(m);
		else if (m->record->kind == TRACE_ACCESS)
			merge_access(m, m->record++);
		else
			m->record++;
	}
}

static struct step call_step(const struct merging *m, const struct event *event)
{
	struct step step = {.kind = STEP_CALL,
	        .position = event->position,
	        .address = event_call_number(&event->syscall),
	        .before = (uint64_t)event->syscall.result,
	        .word = NO_WORD};

	if (m->record + 1 < m->end && m->record->kind == TRACE_CALL &&
	        m->record->position == event->position) {
		step.pc = m->record->pc;
		step.arguments[0] = m->record->after;
		step.arguments[1] = m->record[1].address;
		step.arguments[2] = m->record[1].before;
		step.arguments[3] = m->record[1].after;
	}
	return step;
}

static void merge_event(struct merging *m, const struct event *event)
{
	struct step step = {.position = event->position, .word = NO_WORD};

	switch (event->kind) {
	case EVENT_ORDER:
		if (event->order.kind == ORDER_CLOCK) {
			m->clock = event->order.stamp;
		} else if (event->order.kind == ORDER_RETURN) {
			/* The return was given the next number, before this was known. */
			struct step *last = &m->thread->steps.items[m->thread->steps.count - 1];
			if (m->thread->steps.count && last->kind == STEP_RETURN)
				last->stamp = event->order.stamp;
			m->clock = event->order.stamp;
		} else {
			merge_trace(m, event->position);
			m->told = true;
			m->order = event->order;
		}
		return;
	case EVENT_SYSCALL:
		merge_trace(m, event->position);
		step = call_step(m, event);
		stamp(m, &step);
		push_step(m, step);
		step.kind = STEP_RETURN;
		stamp(m, &step);
		push_step(m, step);
		return;
	case EVENT_SIGNAL:
		step.kind = STEP_SIGNAL;
		step.address = event->signal.number;
		step.pc = event->signal.registers.pc;
		break;
	case EVENT_END:
		step.kind = STEP_END;
		step.pc = event->end.registers.pc;
		break;
	default:
		return;
	}
	merge_trace(m, event->position);
	stamp(m, &step);
	push_step(m, step);
}

/* The last of some loads that are one record. */
struct repeated {
	uint64_t position;
	uint32_t number; /* of the record */
};

static int compare_repeated(const void *a, const void *b)
{
	const struct repeated *left = a, *right = b;

	if (left->position != right->position)
		return left->position < right->position ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

/* Loads that are one record become two again, the first and the last; records are in the order of their
 * positions. */
static void spread_loads(struct trace_record **items, uint32_t *count)
{
	VECTOR(struct repeated) repeated = {0};
	uint32_t given = *count, next = 0, filled = 0;

	for (uint32_t i = 0; i < given; i++) {
		const struct trace_record *record = &(*items)[i];
		if (record->kind == TRACE_ACCESS && record->last > record->position)
			vector_push(&repeated, (struct repeated){record->last, i});
	}
	if (repeated.count == 0)
		return;
	qsort(repeated.items, repeated.count, sizeof *repeated.items, compare_repeated);
	struct trace_record *all = malloc((size_t)(given + repeated.count) * sizeof *all);
	if (!all)
		abort();
	for (uint32_t i = 0; i <= given; i++) {
		/* At one position: as they came. */
		for (; next < repeated.count; next++) {
			const struct repeated *last = &repeated.items[next];
			if (i < given &&
			        (last->position > (*items)[i].position ||
			                (last->position == (*items)[i].position && last->number > i)))
				break;
			all[filled] = (*items)[last->number];
			all[filled++].position = last->position;
		}
		if (i < given)
			all[filled++] = (*items)[i];
	}
	vector_free(&repeated);
	free(*items);
	*items = all;
	*count = filled;
}

static bool merge_stretch(struct merging *m, const struct recorded *recorded, const struct section *section,
        char *why, size_t why_size)
{
	struct reader reader = recorded->reader;
	static struct decoder decoder;
	struct event event;
	uint8_t *bytes;
	char text[128];

	if (stretch_read(&reader, section, &bytes))
		return fail_because(
		        why, why_size, "%s", recording_error_text(&reader.error, text, sizeof text));
	decoder_init(&decoder, bytes, section->raw_size);
	while (decoder_next(&decoder, &event) == DECODE_EVENT)
		merge_event(m, &event);
	merge_trace(m, UINT64_MAX);
	free(bytes);
	return true;
}

static bool read_thread_record(const struct recorded *recorded, uint32_t id, struct thread_record *record)
{
	struct reader reader = recorded->reader;
	const struct section *section = NULL, *last = NULL;

	while ((section = reader_find(&reader, SECTION_THREAD, id, section)))
		last = section;
	return last && thread_record_read(&reader, last, record) == RECORDING_OK;
}

static bool make_steps(struct accesses *accesses, struct collection *collection, char *why, size_t why_size)
{
	const struct recorded *recorded = collection->recorded;
	const struct timeline *timeline = &recorded->timeline;
	struct merging m = {.accesses = accesses};

	accesses->threads = calloc(timeline->threads, sizeof *accesses->threads);
	if (!accesses->threads)
		abort();
	for (size_t i = 0; i < timeline->count; i++) {
		const struct section *section = timeline->stretches[i];
		struct trace_record *items = collection->traces[i].items;
		uint32_t count = collection->traces[i].count;
		if (!m.thread || m.thread->id != stretch_thread(section)) {
			m.thread = &accesses->threads[accesses->thread_count++];
			m.thread->id = stretch_thread(section);
			if (!read_thread_record(recorded, m.thread->id, &m.thread->record))
				m.thread->record.parent = THREAD_NO_PARENT;
			m.clock = 0;
			push_step(
			        &m, (struct step){
			                    .kind = STEP_START, .position = section->first, .word = NO_WORD});
		}
		spread_loads(&items, &count);
		m.record = items;
		m.end = items + count;
		m.told = false;
		bool good = merge_stretch(&m, recorded, section, why, why_size);
		accesses->traced += count;
		free(items);
		collection->traces[i].items = NULL;
		if (!good)
			return false;
	}
	return true;
}

/* A call that made a thread. */
struct making {
	uint32_t maker, step;
	uint32_t before; /* the one before it by the same maker that gave the same tid: + 1, or 0 */
};

struct makings {
	struct index index; /* maker and tid -> the last one, as it is moved back */
	VECTOR(struct making) items;
	VECTOR(uint32_t) last; /* + 1, or 0 */
};

static uint64_t making_key(uint32_t maker, uint64_t tid)
{
	return (uint64_t)maker << 32 | (uint32_t)tid;
}

static void note_makings(struct makings *makings, const struct accesses *accesses)
{
	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++) {
			const struct step *step = &accesses->threads[t].steps.items[i];
			if (step->kind != STEP_CALL || (int64_t)step->before <= 0 ||
			        (step->address != SYS_clone && step->address != SYS_clone3))
				continue;
			uint64_t key = making_key(t, step->before);
			uint32_t number = index_find(&makings->index, key);
			if (number == INDEX_NONE)
				index_add(&makings->index, key, number = vector_push(&makings->last, 0));
			makings->last.items[number] =
			        vector_push(
			                &makings->items, (struct making){t, i, makings->last.items[number]}) +
			        1;
		}
	}
}

/* Which call made each thread: that of its maker whose result is its tid; the last of them for the last such
 * thread, since tids are used again. */
static void find_makers(struct accesses *accesses)
{
	struct makings makings = {0};
	struct index numbers = {0}; /* of threads, by id */

	note_makings(&makings, accesses);
	for (uint32_t t = 0; t < accesses->thread_count; t++)
		index_add(&numbers, accesses->threads[t].id, t);
	for (uint32_t t = accesses->thread_count; t-- > 0;) {
		struct accessing_thread *child = &accesses->threads[t];
		uint32_t maker = index_find(&numbers, child->record.parent);
		uint32_t found =
		        maker == INDEX_NONE || maker == t
		                ? INDEX_NONE
		                : index_find(&makings.index, making_key(maker, (uint64_t)child->record.tid));
		child->maker = NO_THREAD;
		if (found == INDEX_NONE || !makings.last.items[found])
			continue;
		const struct making *making = &makings.items.items[makings.last.items[found] - 1];
		const struct step *step = &accesses->threads[maker].steps.items[making->step];
		child->maker = maker;
		child->made_by = making->step;
		child->cleared = step->arguments[0] & CLONE_CHILD_CLEARTID ? step->arguments[3] : 0;
		makings.last.items[found] = making->before;
	}
	index_deinit(&numbers);
	index_deinit(&makings.index);
	vector_free(&makings.items);
	vector_free(&makings.last);
}

/* What the kernel does when the thread is gone. */
static void add_clearing(struct accesses *accesses, struct accessing_thread *thread)
{
	const struct step *last = &thread->steps.items[thread->steps.count - 1];
	uint32_t word = word_map_find(&accesses->word_map, thread->cleared & -8ul);

	if (!thread->cleared || word == WORD_NONE || last->kind != STEP_END ||
	        thread->record.end_kind != END_THREAD_EXIT)
		return;
	vector_push(&thread->steps, (struct step){.kind = STEP_ACCESS,
	                                    .position = last->position,
	                                    .address = thread->cleared & -8ul,
	                                    .writes = thread->cleared & 4 ? 0xf0 : 0x0f,
	                                    .kernel = true,
	                                    .word = word});
}

/* The address where a call that makes two descriptors leaves them, or 0. */
static uint64_t pair_of(const struct step *step)
{
	if (step->kind != STEP_RETURN || step->before != 0)
		return 0;
	if (step->address == SYS_pipe || step->address == SYS_pipe2)
		return step->arguments[0];
	return step->address == SYS_socketpair ? step->arguments[3] : 0;
}

/* What only memory tells: a thread is brought behind the call. */
static void read_pair(struct explorer *explorer, uint32_t thread, struct step *step)
{
	struct place place = {.position = step->position + 1};
	int32_t pair[2] = {0};
	uint8_t known[sizeof pair] = {0};
	char why[256];
	const struct standing *standing = explorer_go(explorer, thread, place, why, sizeof why);

	if (!standing)
		return;
	explorer_read(explorer, standing, pair_of(step), (uint8_t *)pair, known, sizeof pair);
	step->pair = !memchr(known, 0, sizeof known);
	step->arguments[2] = (uint64_t)(int64_t)pair[0];
	step->arguments[3] = (uint64_t)(int64_t)pair[1];
	explorer_release(explorer, standing);
}

static void read_pairs(struct accesses *accesses, const struct recorded *recorded)
{
	struct explorer *explorer = NULL;
	char why[256];

	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		struct accessing_thread *thread = &accesses->threads[t];
		for (uint32_t i = 0; i < thread->steps.count; i++) {
			if (!pair_of(&thread->steps.items[i]))
				continue;
			if (!explorer)
				explorer = explorer_create(recorded, why, sizeof why);
			if (!explorer)
				return;
			read_pair(explorer, thread->id, &thread->steps.items[i]);
		}
	}
	if (explorer)
		explorer_destroy(explorer);
}

bool accesses_collect(struct accesses *accesses, const struct recorded *recorded,
        const struct call_accesses *calls, char *why, size_t why_size)
{
	struct collection *collection = calloc(1, sizeof *collection);

	*accesses = (struct accesses){0};
	if (!collection)
		abort();
	collection->recorded = recorded;
	collection->calls = calls;
	collection->traces = calloc(recorded->timeline.count, sizeof *collection->traces);
	if (!collection->traces)
		abort();
	pthread_mutex_init(&collection->mutex, NULL);
	collection->accesses = accesses;
	collection->most = most_records();
	bool good = trace(collection, &accesses->instructions, why, why_size) &&
	            make_steps(accesses, collection, why, why_size);
	if (good) {
		find_makers(accesses);
		read_pairs(accesses, recorded);
	}
	for (uint32_t t = 0; good && t < accesses->thread_count; t++)
		add_clearing(accesses, &accesses->threads[t]);
	for (size_t i = 0; i < recorded->timeline.count; i++)
		free(collection->traces[i].items);
	free(collection->traces);
	owners_deinit(&collection->pages);
	owners_deinit(&collection->words);
	pthread_mutex_destroy(&collection->mutex);
	free(collection);
	return good;
}

void accesses_deinit(struct accesses *accesses)
{
	for (uint32_t i = 0; i < accesses->thread_count; i++)
		vector_free(&accesses->threads[i].steps);
	free(accesses->threads);
	word_map_deinit(&accesses->word_map);
	vector_free(&accesses->words);
	free(accesses->initial);
	index_deinit(&accesses->line_index);
	vector_free(&accesses->lines);
	*accesses = (struct accesses){0};
}
