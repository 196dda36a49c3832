#include "debug/loads.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "debug/debugger.h"

#define PAGE        4096ul
/* All logs are read for it. Of longer ones that is done with the first move, not when a recording is opened:
 * until then everything counts as loaded. */
#define QUICK_BYTES (16ul << 20)

struct finding {
	struct debugger *debugger;
	struct loads *loads;
	VECTOR(struct load) calls; /* of all threads */
	VECTOR(uint64_t) ranges;   /* start and end of what each of them is about: `image` has its number */
};

/* ---- calls ---- */

static bool failed(const struct happening *h)
{
	return h->result < 0 && h->result > -4096;
}

static bool covers_image(const struct images *images, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < images->items.count; i++) {
		uint64_t first = images->items.items[i].start & -PAGE;
		if (first >= start && first < end)
			return true;
	}
	return false;
}

static void note(struct finding *f, uint32_t thread, const struct happening *h, uint64_t start, uint64_t size)
{
	uint64_t end = start + ((size + PAGE - 1) & -PAGE);

	if (!covers_image(&f->debugger->images, start, end))
		return;
	vector_push(&f->calls, (struct load){.thread = thread,
	                               .position = h->position,
	                               .time = h->time_after,
	                               .image = f->ranges.count / 2});
	vector_push(&f->ranges, start);
	vector_push(&f->ranges, end);
}

static void find_calls(struct finding *f)
{
	struct debugger *d = f->debugger;

	for (uint32_t i = 0; i < d->thread_count; i++) {
		uint32_t id = d->threads[i].recorded->id;
		for (const struct happening *h = chronicle_next(&d->chronicle, id, 0); h;
		        h = chronicle_following(&d->chronicle, id, h)) {
			if (h->kind != HAPPENED_CALL || failed(h))
				continue;
			if (h->number == SYS_mmap)
				note(f, id, h, (uint64_t)h->result, h->arguments[1]);
			else if (h->number == SYS_munmap || h->number == SYS_mremap)
				note(f, id, h, h->arguments[0], h->arguments[1]);
		}
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->thread == y->thread && x->position != y->position)
		return x->position < y->position ? -1 : 1;
	return x->image < y->image ? -1 : x->image > y->image;
}

/* ---- which file it was ---- */

static bool is_of(const struct code_piece *piece, const struct image *image)
{
	return piece->file == image->file->number &&
	       piece->address - image->start < image->end - image->start;
}

static bool is_behind(struct debugger *d, const struct code_piece *piece, const struct load *call)
{
	if (piece->thread == call->thread)
		return piece->position > call->position;
	return chronicle_time(&d->chronicle, piece->thread, (struct place){piece->position, 0}) >= call->time;
}

/* Was code of the image about to be run behind the one call, and not behind the other one? Either may be
 * NULL. What is loaded again is in the history again, also if it is the same. */
static bool runs_between(
        struct debugger *d, const struct image *image, const struct load *from, const struct load *to)
{
	const struct code_history *history = &d->recorded->history;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct code_piece *piece = &history->pieces[i];
		if (is_of(piece, image) && (!from || is_behind(d, piece, from)) &&
		        !(to && is_behind(d, piece, to)))
			return true;
	}
	return false;
}

static void find_image(struct finding *f, uint32_t index)
{
	struct debugger *d = f->debugger;
	const struct image *image = &d->images.items.items[index];
	uint64_t start = image->start & -PAGE;
	VECTOR(struct load) calls = {0};

	for (uint32_t i = 0; i < f->calls.count; i++) {
		const uint64_t *range = &f->ranges.items[2 * f->calls.items[i].image];
		if (start >= range[0] && start < range[1])
			vector_push(&calls, f->calls.items[i]);
	}
	bool was = calls.count && runs_between(d, image, NULL, &calls.items[0]);
	for (uint32_t i = 0; i < calls.count; i++) {
		struct load load = calls.items[i];
		bool is = runs_between(d, image, &load, i + 1 < calls.count ? &calls.items[i + 1] : NULL);
		load.image = index;
		load.loaded = is;
		if (is != was)
			vector_push(&f->loads->items, load);
		was = is;
	}
	vector_free(&calls);
}

/* ---- places to stop at ---- */

static int compare_stops(const void *a, const void *b)
{
	const struct load_stop *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* One library after the other, as the dynamic linker maps those of a program. */
static bool is_followed(struct debugger *d, const struct load *load, const struct load *next)
{
	return load->loaded && next->loaded && next->thread == load->thread &&
	       !runs_between(d, &d->images.items.items[load->image], load, next);
}

static void add_stop(struct loads *loads, struct load_stop stop)
{
	struct load_stop *last = loads->stops.count ? &loads->stops.items[loads->stops.count - 1] : NULL;

	if (last && last->thread == stop.thread && last->position == stop.position) {
		last->forwards |= stop.forwards;
		last->backwards |= stop.backwards;
	} else {
		vector_push(&loads->stops, stop);
	}
}

static void find_stops(struct finding *f)
{
	struct loads *loads = f->loads;
	bool follows = false;

	for (uint32_t i = 0; i < loads->items.count; i++) {
		const struct load *load = &loads->items.items[i];
		bool followed = i + 1 < loads->items.count && is_followed(f->debugger, load, load + 1);
		if (!followed || !follows)
			add_stop(
			        loads, (struct load_stop){load->thread, load->position, !followed, !follows});
		follows = followed;
	}
	if (loads->stops.count)
		qsort(loads->stops.items, loads->stops.count, sizeof *loads->stops.items, compare_stops);
}

bool loads_stop_at(const struct loads *loads, uint32_t thread, uint64_t position, bool backwards)
{
	struct load_stop wanted = {.thread = thread, .position = position};
	const struct load_stop *found = loads->stops.count
	                                        ? bsearch(&wanted, loads->stops.items, loads->stops.count,
	                                                  sizeof wanted, compare_stops)
	                                        : NULL;

	return found && (backwards ? found->backwards : found->forwards);
}

/* ---- what is there ---- */

static bool takes_long(const struct debugger *d)
{
	const struct timeline *timeline = &d->recorded->timeline;
	uint64_t bytes = 0;

	for (size_t i = 0; i < timeline->count; i++)
		bytes += timeline->stretches[i]->stored_size;
	return bytes > QUICK_BYTES;
}

static void prepare(struct debugger *d)
{
	struct finding f = {.debugger = d, .loads = &d->loads};

	d->loads.prepared = true;
	find_calls(&f);
	if (f.calls.count)
		qsort(f.calls.items, f.calls.count, sizeof *f.calls.items, compare_times);
	for (uint32_t i = 0; i < d->images.items.count; i++)
		find_image(&f, i);
	if (d->loads.items.count)
		qsort(d->loads.items.items, d->loads.items.count, sizeof *d->loads.items.items,
		        compare_times);
	find_stops(&f);
	vector_free(&f.calls);
	vector_free(&f.ranges);
}

void loads_mark(struct debugger *d)
{
	struct loads *loads = &d->loads;

	if (!d->recorded)
		return;
	if (!loads->opened)
		loads->opened = d->moment;
	if (!loads->prepared && (loads->opened != d->moment || !takes_long(d)))
		prepare(d);
	/* Where no call was passed it is the other way round than behind the first one. */
	for (uint32_t i = loads->items.count; i-- > 0;)
		d->images.items.items[loads->items.items[i].image].loaded = !loads->items.items[i].loaded;
	for (uint32_t i = 0; i < loads->items.count; i++) {
		const struct load *load = &loads->items.items[i];
		uint32_t thread = debugger_find_thread(d, load->thread);
		if (debugger_place(d, thread).position > load->position)
			d->images.items.items[load->image].loaded = load->loaded;
	}
}

void loads_deinit(struct loads *loads)
{
	vector_free(&loads->items);
	vector_free(&loads->stops);
	*loads = (struct loads){0};
}
