#include "record/ring.h"

#include "recording/stretch.h"

void ring_deinit(struct ring *ring)
{
	for (uint32_t i = 0; i < ring->stretches.count; i++)
		free(ring->stretches.items[i].stored);
	vector_free(&ring->stretches);
	vector_free(&ring->threads);
}

/* What a stretch takes, and its place in the file's index. */
static uint64_t size_of(const struct ring_stretch *stretch)
{
	return stretch->section.stored_size + sizeof *stretch + INDEX_ENTRY_SIZE;
}

static struct ring_thread *find_thread(struct ring *ring, uint32_t id)
{
	for (uint32_t i = 0; i < ring->threads.count; i++) {
		if (ring->threads.items[i].record.id == id)
			return &ring->threads.items[i];
	}
	return &ring->threads.items[vector_push(&ring->threads, (struct ring_thread){.record.id = id})];
}

/* A thread that has ended, and of which nothing is left, is forgotten. */
static void tidy_thread(struct ring *ring, struct ring_thread *thread)
{
	if (thread->living || thread->kept)
		return;
	*thread = ring->threads.items[--ring->threads.count];
	ring->threads_forgotten++;
}

void ring_add(struct ring *ring, const struct ring_stretch *stretch)
{
	struct ring_stretch kept = *stretch;
	struct ring_thread *thread = find_thread(ring, stretch_thread(&kept.section));

	kept.stored = malloc(kept.section.stored_size + 1);
	if (!kept.stored)
		abort();
	memcpy(kept.stored, stretch->stored, kept.section.stored_size);
	vector_push(&ring->stretches, kept);
	ring->used += size_of(&kept);
	thread->kept++;
	thread->anchors += !kept.leans_on;
}

void ring_note_thread(struct ring *ring, const struct thread_record *record, bool living, bool leans)
{
	struct ring_thread *thread = find_thread(ring, record->id);

	thread->record = *record;
	thread->living = living;
	thread->leans = leans;
	tidy_thread(ring, thread);
}

/* ---- dropping ---- */

enum eagerness {
	SPARE_LAST, /* leave to a living thread what it did last */
	TAKE_LAST,  /* there is nothing else left */
};

/* The first stretch of a thread leans on nothing. May it go, with those that lean on it? */
static bool may_go(const struct ring_thread *thread, enum eagerness eagerness)
{
	if (!thread->living || thread->anchors > 1)
		return true;
	return eagerness == TAKE_LAST && !thread->leans;
}

/* Index of the oldest stretch that may go, or the count. */
static uint32_t find_oldest(struct ring *ring, enum eagerness eagerness)
{
	while (ring->first < ring->stretches.count && !ring->stretches.items[ring->first].stored)
		ring->first++;
	for (uint32_t i = ring->first; i < ring->stretches.count; i++) {
		const struct ring_stretch *stretch = &ring->stretches.items[i];
		if (stretch->stored &&
		        may_go(find_thread(ring, stretch_thread(&stretch->section)), eagerness))
			return i;
	}
	return ring->stretches.count;
}

static void let_go(struct ring *ring, struct ring_stretch *stretch)
{
	ring->used -= size_of(stretch);
	ring->gone++;
	ring->dropped++;
	ring->dropped_executed += stretch->section.last - stretch->section.first;
	free(stretch->stored);
	stretch->stored = NULL;
}

/* The first stretch of its thread goes, and those behind it up to the next that leans on nothing. */
static void drop(struct ring *ring, uint32_t first)
{
	uint32_t id = stretch_thread(&ring->stretches.items[first].section);
	struct ring_thread *thread = find_thread(ring, id);

	for (uint32_t i = first; i < ring->stretches.count; i++) {
		struct ring_stretch *stretch = &ring->stretches.items[i];
		if (!stretch->stored || stretch_thread(&stretch->section) != id)
			continue;
		if (i != first && !stretch->leans_on)
			break;
		thread->kept--;
		thread->anchors -= !stretch->leans_on;
		let_go(ring, stretch);
	}
	tidy_thread(ring, thread);
}

/* Closes the gaps, once it is worth it. */
static void close_gaps(struct ring *ring)
{
	uint32_t kept = 0;

	if (ring->gone < 16 + ring->stretches.count / 8)
		return;
	for (uint32_t i = 0; i < ring->stretches.count; i++) {
		if (ring->stretches.items[i].stored)
			ring->stretches.items[kept++] = ring->stretches.items[i];
	}
	ring->stretches.count = kept;
	ring->gone = 0;
	ring->first = 0;
}

uint64_t ring_began(const struct ring *ring)
{
	uint64_t began = 0;

	for (uint32_t i = ring->first; i < ring->stretches.count; i++) {
		const struct ring_stretch *stretch = &ring->stretches.items[i];
		if (stretch->stored && (!began || stretch->began < began))
			began = stretch->began;
	}
	return began;
}

void ring_shrink(struct ring *ring, uint64_t limit)
{
	for (enum eagerness eagerness = SPARE_LAST; ring->used > limit;) {
		uint32_t oldest = find_oldest(ring, eagerness);
		if (oldest < ring->stretches.count)
			drop(ring, oldest);
		else if (eagerness == TAKE_LAST)
			break;
		else
			eagerness = TAKE_LAST;
	}
	close_gaps(ring);
}
