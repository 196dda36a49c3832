/*
 * Memory, as it is where the debugger stands: from the files, from what the current thread knows there, from
 * what it knew before its last keyframes, and from other threads, who may know better.
 */
#include <stdlib.h>
#include <string.h>

#include "debug/debugger.h"
#include "debug/debugger_private.h"
#include "debug/live.h"
#include "debug/writes.h"

#define PAGE                 4096ul
#define LINE                 ((uint64_t)EVENT_LINE_BYTES)
/* How far back to look for memory that was not touched since. */
#define EARLIER_INSTRUCTIONS (600ul << 20)
#define EARLIER_MOST         40
#define OTHERS               16 /* threads that are asked */
/* What is looked through for everything that was written to a word. */
#define LISTED_INSTRUCTIONS  (100ul << 20)
#define LISTED_MOST          100000
#define AHEAD_INSTRUCTIONS   (64ul << 10)

/* What was written to a word, by all threads. */
struct known_word {
	uint64_t address;
	bool listed;
	struct writes writes;
};

/* ---- the thread itself, before ---- */

/*
 * So many stretches before the one that the thread stands in are looked at: as many as can be kept of all
 * threads that are asked, so that the next question costs little. *whole: there are no more.
 */
static unsigned earlier_count(const struct debugger *d, const struct debugged_thread *t, bool *whole)
{
	const struct timeline *timeline = &d->recorded->timeline;
	size_t stretch = t->standing->stretch;
	uint64_t start = timeline->stretches[stretch]->first;
	unsigned asked = d->thread_count < OTHERS + 1 ? d->thread_count : OTHERS + 1;
	unsigned most = EARLIER_MOST / asked, count = 0;

	while (timeline_continues(timeline, stretch) && count < most &&
	        start - timeline->stretches[stretch - 1]->first <= EARLIER_INSTRUCTIONS) {
		stretch--;
		count++;
	}
	*whole = !timeline_continues(timeline, stretch);
	return count;
}

/* Where one of them ended: the number 0 is the one right before. */
static struct place earlier_place(const struct debugger *d, const struct debugged_thread *t, unsigned number)
{
	return (struct place){d->recorded->timeline.stretches[t->standing->stretch - number]->first, 0};
}

static void read_earlier(struct debugger *d, struct debugged_thread *t, uint64_t address, uint8_t *to,
        uint8_t *known, size_t size)
{
	bool whole;
	unsigned count = earlier_count(d, t, &whole);
	char why[512];

	for (unsigned i = 0; i < count && memchr(known, 0, size); i++) {
		const struct standing *earlier =
		        explorer_go(d->explorer, t->recorded->id, earlier_place(d, t, i), why, sizeof why);
		if (!earlier)
			break;
		explorer_read(d->explorer, earlier, address, to, known, size);
		explorer_release(d->explorer, earlier);
	}
}

/* ---- other threads ---- */

struct other {
	uint32_t thread;
	uint64_t end;
};

static int compare_ends(const void *a, const void *b)
{
	const struct other *left = a, *right = b;

	return left->end > right->end ? -1 : left->end < right->end;
}

/* Those that may know something, who ended last behind those that are there. */
static uint32_t find_others(struct debugger *d, uint32_t thread, struct other others[OTHERS])
{
	struct other *all = calloc(d->thread_count + 1, sizeof *all);
	uint32_t count = 0;

	if (!all)
		abort();
	for (uint32_t i = 0; i < d->thread_count; i++) {
		const struct happening *end = chronicle_end(&d->chronicle, d->threads[i].recorded->id);
		if (i == thread || !debugger_has_begun(d, i))
			continue;
		all[count++] = (struct other){i, debugger_is_alive(d, i) || !end ? UINT64_MAX : end->time};
	}
	qsort(all, count, sizeof *all, compare_ends);
	count = count < OTHERS ? count : OTHERS;
	memcpy(others, all, count * sizeof *all);
	free(all);
	return count;
}

/* Can all of it be looked through while somebody waits? */
static bool is_short(const struct debugger *d)
{
	return debugger_instructions(d) <= LISTED_INSTRUCTIONS;
}

/* What the thread does not know, and what others know otherwise. */
static bool read_others(struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known,
        uint8_t *disputed, size_t size)
{
	struct other others[OTHERS];
	uint32_t count = find_others(d, thread, others);
	bool any = false;
	char why[512];

	for (uint32_t i = 0; i < count; i++) {
		uint8_t bytes[PAGE], theirs[PAGE] = {0};
		if (!debugger_look(d, others[i].thread, why, sizeof why))
			continue;
		explorer_read(
		        d->explorer, d->threads[others[i].thread].standing, address, bytes, theirs, size);
		for (size_t k = 0; k < size; k++) {
			if (theirs[k] && !known[k]) {
				to[k] = bytes[k];
				known[k] = 1;
			} else if (theirs[k] && to[k] != bytes[k]) {
				disputed[k] = 1;
				any = true;
			}
		}
	}
	for (uint32_t i = 0; i < count && is_short(d); i++) {
		if (memchr(known, 0, size) && debugger_look(d, others[i].thread, why, sizeof why))
			read_earlier(d, &d->threads[others[i].thread], address, to, known, size);
	}
	return any;
}

/* Everything that was written to the word, kept for whoever asks again; NULL: that would take long. */
static const struct writes *history_of(struct debugger *d, uint64_t word)
{
	char why[512];

	if (!d->words && !(d->words = calloc(KNOWN_WORDS, sizeof *d->words)))
		abort();
	struct known_word *kept = &d->words[word / 8 % KNOWN_WORDS];
	if (kept->listed && kept->address == word)
		return &kept->writes;
	if (!is_short(d))
		return NULL;
	if (kept->listed)
		writes_deinit(&kept->writes);
	kept->address = word;
	kept->listed = writes_list(d, (struct watch){.address = word, .size = 8}, LISTED_MOST, &kept->writes,
	                       why, sizeof why) &&
	               !kept->writes.cut;
	return kept->listed ? &kept->writes : NULL;
}

/*
 * Each thread knows what it last saw. Where they disagree, memory is what was stored last: by whichever
 * thread, or by the kernel, as one of them found it.
 */
static bool find_last(struct debugger *d, uint32_t thread, struct watch what, struct write *write)
{
	char why[512];
	const struct writes *writes = history_of(d, what.address & -8ul);

	if (!writes)
		return writes_find(d, thread, what, BACKWARDS, write, why, sizeof why);
	const struct write *last =
	        writes_last(d, writes, thread, (uint8_t)((0xffu >> (8 - what.size)) << what.address % 8));
	if (last)
		*write = *last;
	return last != NULL;
}

static void settle(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *disputed, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		struct watch what = {.address = address + i};
		struct write write;
		while (i + what.size < size && disputed[i + what.size] &&
		        (address + i + what.size) / 8 == (address + i) / 8)
			what.size++;
		if (!what.size)
			continue;
		if (!find_last(d, thread, what, &write)) {
			memset(disputed + i, 0, what.size);
			continue;
		}
		for (size_t k = i; k < i + what.size; k++) {
			unsigned byte = (unsigned)(address + k - write.address);
			if (byte < 8 && write.bytes >> byte & 1) {
				to[k] = (uint8_t)(write.after >> 8 * byte);
				disputed[k] = 0;
			}
		}
		i -= disputed[i]; /* and what that one did not write */
	}
}

/* ---- what needs no thread ---- */

/* Files have what cannot be written, and the code history has code. */
static void read_constants(struct debugger *d, const struct debugged_thread *t, uint64_t address, uint8_t *to,
        uint8_t *known, size_t size)
{
	const struct images *images = debugger_images(d);

	for (size_t i = 0; i < size; i++)
		known[i] = images_read(images, address + i, to + i) == IMAGE_CONSTANT;
	for (size_t i = 0; i < size; i++) {
		if (known[i])
			continue;
		size_t code = explorer_read_code(d->explorer, t->standing, address + i, to + i, size - i);
		memset(known + i, 1, code);
		i += code;
		if (!code)
			break;
	}
}

bool debugger_is_blank(struct debugger *d, uint64_t address)
{
	uint8_t initial;

	return images_read(debugger_images(d), address, &initial) != IMAGE_INITIAL || initial == 0;
}

/* ---- what comes next ---- */

struct ahead {
	uint64_t address;
	uint8_t *to, *known;
	uint8_t lost[PAGE]; /* it stores there first */
	size_t size;
};

static bool see_ahead(void *context, const struct trace_record *record)
{
	struct ahead *a = context;
	bool patch = record->kind == TRACE_PATCH;
	uint8_t seen = patch ? 0xff : record->reads;

	if (!patch && record->kind != TRACE_ACCESS)
		return false;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t at = record->address + i - a->address;
		if (at >= a->size || a->known[at] || a->lost[at])
			continue;
		if (seen >> i & 1) {
			a->to[at] = (uint8_t)((patch ? record->after : record->before) >> 8 * i);
			a->known[at] = 1;
		} else if (record->writes >> i & 1) {
			a->lost[at] = 1;
		}
	}
	return false;
}

/*
 * What the thread loads before anybody else can have changed it was there already: up to the next system call
 * or signal, if there is no other thread.
 */
static void read_ahead(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	struct ahead ahead = {.address = address, .to = to, .known = known, .size = size};
	struct place here = debugger_place(d, thread);
	uint64_t limit = debugger_next_event(d, thread, here.position);
	char why[512];

	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (i != thread && debugger_is_alive(d, i))
			return;
	}
	if (limit > here.position + AHEAD_INSTRUCTIONS)
		limit = here.position + AHEAD_INSTRUCTIONS;
	if (limit > here.position)
		debugger_trace(d, thread, address, size, here, (struct place){limit, 0}, see_ahead, &ahead,
		        why, sizeof why);
}

/* ---- what was never touched ---- */

/* Is everything looked at that the thread knew, back to its beginning? */
static bool is_whole(const struct debugger *d, const struct debugged_thread *t)
{
	bool whole = false;

	if (t->standing)
		earlier_count(d, t, &whole);
	return whole;
}

static void read_untouched(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	struct other others[OTHERS];
	uint32_t count = find_others(d, thread, others);
	bool whole = is_short(d) && is_whole(d, &d->threads[thread]) && count < OTHERS &&
	             !explorer_is_crowded(d->explorer);

	for (uint32_t i = 0; i < count; i++)
		whole &= is_whole(d, &d->threads[others[i].thread]);
	if (whole)
		untouched_read(d, address, to, known, size);
}

/* Whole lines of a part of memory that is not too large. `wanted` is what is to be right, if others know it
 * otherwise. */
static void read_lines(struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known,
        size_t size, struct watch wanted)
{
	struct debugged_thread *t = &d->threads[thread];
	uint8_t disputed[PAGE] = {0};
	char why[512];

	read_constants(d, t, address, to, known, size);
	if (!memchr(known, 0, size))
		return;
	explorer_read(d->explorer, t->standing, address, to, known, size);
	if (memchr(known, 0, size))
		read_earlier(d, t, address, to, known, size);
	if (d->thread_count > 1 && read_others(d, thread, address, to, known, disputed, size))
		settle(d, thread, wanted.address, to + (wanted.address - address),
		        disputed + (wanted.address - address), wanted.size);
	if (memchr(known + (wanted.address - address), 0, wanted.size))
		read_untouched(d, thread, address, to, known, size);
	/* Code among what is not known, as that of the vdso, which nobody has loaded. Where there are many
	 * threads it may have been left meanwhile. */
	if (memchr(known + (wanted.address - address), 0, wanted.size) &&
	        debugger_look(d, thread, why, sizeof why))
		explorer_fill_code(d->explorer, t->standing, address, to, known, size);
	if (memchr(known + (wanted.address - address), 0, wanted.size))
		read_ahead(d, thread, address, to, known, size);
}

/* Up to the end of a page at most. */
static void read_part(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	uint64_t first = address & -LINE, end = (address + size + LINE - 1) & -LINE;
	uint8_t bytes[PAGE], known_there[PAGE];

	read_lines(d, thread, first, bytes, known_there, end - first,
	        (struct watch){.address = address, .size = size});
	memcpy(to, bytes + (address - first), size);
	memcpy(known, known_there + (address - first), size);
}

/* ---- the whole ---- */

bool debugger_shows_program(const struct debugger *d)
{
	return d->now || d->just_before;
}

void debugger_look_around(struct debugger *d, uint32_t thread)
{
	struct other others[OTHERS];
	uint32_t count = find_others(d, thread, others);
	char why[512];

	for (uint32_t i = 0; i < count; i++)
		debugger_look(d, others[i].thread, why, sizeof why);
}

/* What one thread knows, of a line at most. */
static void read_thread(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	const struct debugged_thread *t = &d->threads[thread];
	bool whole;

	if (!t->standing || place_compare(t->standing_place, debugger_place(d, thread)) != 0)
		return;
	explorer_read(d->explorer, t->standing, address, to, known, size);
	unsigned count = earlier_count(d, t, &whole);
	for (unsigned i = 0; i < count && memchr(known, 0, size); i++) {
		const struct standing *earlier =
		        explorer_parked(d->explorer, t->recorded->id, earlier_place(d, t, i));
		if (!earlier)
			break;
		explorer_read(d->explorer, earlier, address, to, known, size);
	}
}

uint64_t debugger_read_here(struct debugger *d, uint32_t thread, uint64_t line, uint8_t to[LINE])
{
	uint8_t known[EVENT_LINE_BYTES] = {0}, disputed[EVENT_LINE_BYTES] = {0};
	uint64_t mask = 0;

	if (debugger_shows_program(d)) {
		memset(known, 1, live_read(d->live, line, to, LINE));
	} else {
		read_constants(d, &d->threads[thread], line, to, known, LINE);
		for (uint32_t i = 0; i < d->thread_count; i++) {
			uint8_t bytes[EVENT_LINE_BYTES], theirs[EVENT_LINE_BYTES] = {0};
			read_thread(d, (thread + i) % d->thread_count, line, bytes, theirs, LINE);
			for (unsigned k = 0; k < LINE; k++) {
				disputed[k] |= known[k] && theirs[k] && to[k] != bytes[k];
				to[k] = known[k] ? to[k] : bytes[k];
				known[k] |= theirs[k];
			}
		}
	}
	for (unsigned k = 0; k < LINE; k++)
		mask |= (uint64_t)(known[k] && !disputed[k]) << k;
	return mask;
}

void debugger_read_known(
        struct debugger *d, uint32_t thread, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	char why[512];

	memset(known, 0, size);
	if (debugger_shows_program(d)) {
		memset(known, 1, live_read(d->live, address, to, size));
		return;
	}
	if (!debugger_look(d, thread, why, sizeof why))
		return;
	for (size_t done = 0, part; done < size; done += part) {
		part = PAGE - (address + done) % PAGE;
		part = part < size - done ? part : size - done;
		read_part(d, thread, address + done, to + done, known + done, part);
	}
}

size_t debugger_read(struct debugger *d, uint32_t thread, uint64_t address, void *to, size_t size)
{
	uint8_t known[PAGE];
	size_t done = 0, part;

	do {
		part = PAGE - (address + done) % PAGE;
		part = part < size - done ? part : size - done;
		debugger_read_known(d, thread, address + done, (uint8_t *)to + done, known, part);
		const uint8_t *unknown = memchr(known, 0, part);
		if (unknown)
			return done + (size_t)(unknown - known);
		done += part;
	} while (done < size);
	return done;
}

void debugger_forget_words(struct debugger *d)
{
	for (unsigned i = 0; d->words && i < KNOWN_WORDS; i++) {
		if (d->words[i].listed)
			writes_deinit(&d->words[i].writes);
	}
	free(d->words);
	d->words = NULL;
}
