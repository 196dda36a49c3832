/*
 * Replay cannot tell what was in memory that nobody has loaded yet. But where a recording begins with its
 * program, it is known what was there at first, and who can have changed it is either a thread, whose stores
 * are known, or the kernel, for a call of a thread, or for a signal: of the frame of which the vector
 * registers are not logged. What another process does to the program's memory from outside is not thought of.
 */
#include "debug/untouched.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "debug/call_writes.h"
#include "debug/debugger.h"
#include "debug/initial.h"

#define LINE       ((uint64_t)EVENT_LINE_BYTES)
#define PAGE       4096ul
#define FRAME_MOST (16ul << 10) /* of a signal, with all vector registers there may be */

/* ---- what the log says ---- */

struct listing {
	struct debugger *debugger;
	struct untouched *untouched;
	uint32_t thread;
	uint64_t heap_end; /* or 0 */
};

static void note(
        struct listing *l, const struct happening *h, enum kernel_deed what, uint64_t start, uint64_t end)
{
	struct kernel_did deed = {what, l->thread, h->position, h->time_after, start, end};

	vector_push(&l->untouched->deeds, deed);
}

/* A process that shares the memory and is not in the recording, which vfork and posix_spawn make, may write
 * what it likes. */
static bool shares_memory(const struct debugger *d, const struct happening *call)
{
	bool thread = false;

	if (call->number == SYS_vfork)
		return true;
	if (call->number == SYS_clone)
		return call->arguments[0] & CLONE_VM && !(call->arguments[0] & CLONE_THREAD);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		const struct chronicle_thread *t = d->threads[i].recorded;
		thread |= t->has_record && (int64_t)t->record.tid == call->result;
	}
	return call->number == SYS_clone3 && call->result > 0 && !thread;
}

static void note_mapping(struct listing *l, const struct happening *h)
{
	uint64_t start = (uint64_t)h->result, end = start + ((h->arguments[1] + PAGE - 1) & -PAGE);
	bool zeros = h->arguments[3] & MAP_ANONYMOUS && !(h->arguments[3] & MAP_SHARED);

	note(l, h, zeros ? KERNEL_MAPPED_ZEROS : KERNEL_MAPPED, start, end);
}

static void note_break(struct listing *l, const struct happening *h)
{
	uint64_t end = (uint64_t)h->result, before = l->heap_end ? l->heap_end : end;

	if (end > before)
		note(l, h, KERNEL_MAPPED_ZEROS, before, end);
	else if (end < before)
		note(l, h, KERNEL_MAPPED, end, before);
	l->heap_end = end;
}

static void note_call(struct listing *l, const struct happening *h)
{
	struct call_range ranges[CALL_RANGES];
	bool elsewhere, failed = h->result < 0 && h->result > -4096;
	unsigned count = call_ranges(h, ranges, &elsewhere);

	if (h->number == SYS_mmap || h->number == SYS_brk) {
		if (!failed)
			(h->number == SYS_mmap ? note_mapping : note_break)(l, h);
		return;
	}
	if (h->number == SYS_mremap && !failed)
		note(l, h, KERNEL_MAPPED, (uint64_t)h->result, (uint64_t)h->result + h->arguments[2]);
	if (elsewhere || shares_memory(l->debugger, h))
		note(l, h, KERNEL_WROTE, 0, UINT64_MAX);
	if (h->number == SYS_clone3) /* writes the thread's number next to its stack */
		note(l, h, KERNEL_WROTE_STACKS, 0, UINT64_MAX);
	for (unsigned i = 0; i < count; i++) {
		uint64_t end = ranges[i].address + ranges[i].size;
		note(l, h, KERNEL_WROTE, ranges[i].address, end < ranges[i].address ? UINT64_MAX : end);
	}
}

static void list_thread(struct listing *l)
{
	struct chronicle *chronicle = &l->debugger->chronicle;
	uint32_t id = l->debugger->threads[l->thread].recorded->id;

	for (const struct happening *h = chronicle_next(chronicle, id, 0); h;
	        h = chronicle_following(chronicle, id, h)) {
		if (h->kind == HAPPENED_CALL)
			note_call(l, h);
		else if (h->kind == HAPPENED_SIGNAL)
			note(l, h, KERNEL_WROTE, h->stack, h->stack + FRAME_MOST);
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct kernel_did *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->position < right->position ? -1 : left->position > right->position;
}

static void prepare(struct debugger *d, struct untouched *u)
{
	struct listing l = {.debugger = d, .untouched = u};

	u->prepared = true;
	u->usable = initial_is_known(d->recorded);
	for (uint32_t i = 0; i < d->thread_count; i++)
		u->usable &= !d->threads[i].absent;
	for (l.thread = 0; l.thread < d->thread_count && u->usable; l.thread++)
		list_thread(&l);
	if (u->deeds.count)
		qsort(u->deeds.items, u->deeds.count, sizeof *u->deeds.items, compare_times);
}

/* ---- what is there ---- */

/* Of a line, what the kernel did last; `zeros`: there is a mapping of zeros, which nothing was done to. */
static bool is_pristine(struct debugger *d, uint64_t line, bool *zeros)
{
	const struct untouched *u = &d->untouched;
	bool stacks = false;

	*zeros = false;
	for (uint32_t i = u->deeds.count; i-- > 0;) {
		const struct kernel_did *deed = &u->deeds.items[i];
		if (deed->start >= line + LINE || deed->end <= line ||
		        deed->position >= debugger_place(d, deed->thread).position)
			continue;
		if (deed->what == KERNEL_WROTE)
			return false;
		if (deed->what == KERNEL_WROTE_STACKS) {
			stacks = true;
			continue;
		}
		*zeros = deed->what == KERNEL_MAPPED_ZEROS && deed->start <= line && deed->end >= line + LINE;
		return !(stacks && *zeros);
	}
	return true;
}

void untouched_read(struct debugger *d, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	struct untouched *u = &d->untouched;
	uint64_t line = 1;
	bool zeros = false, pristine = false;

	if (!u->prepared)
		prepare(d, u);
	for (size_t i = 0; i < size && u->usable; i++) {
		if (known[i])
			continue;
		if (line != ((address + i) & -LINE)) {
			line = (address + i) & -LINE;
			pristine = is_pristine(d, line, &zeros);
		}
		if (!pristine)
			continue;
		known[i] = zeros || images_read(debugger_images(d), address + i, to + i) == IMAGE_INITIAL;
		to[i] = zeros ? 0 : to[i];
	}
}

void untouched_deinit(struct untouched *u)
{
	vector_free(&u->deeds);
	*u = (struct untouched){0};
}
