#include "record/shadow_plan.h"

#include <stdlib.h>

#include "record/vector.h"

#define GIGABYTE (1ul << 30)
#define BELOW    (2 * GIGABYTE) /* the executable: our segment */
#define USER_END 0x7ffffffff000ul
#define FOLD     (1ul << FOLD_BIT)

/*
 * The first distance, and steps to others. Multiples of 64, so that lines stay lines.
 *
 * None may be round: the first cache of AMD's processors finds lines by a hash of the address which
 * is the same again after ROUND bytes, and what has the same hash pushes each other out, however large the
 * cache is. Memory and its shadow did, for the fifth thread of every program, which was five times slower.
 */
#define ROUND          (1ul << 28)
#define ROUND_NEAR     (1ul << 22) /* pages next to each other are used together */
#define FIRST_DISTANCE 0x2ff735ab3840ul
#define LEAST_DISTANCE 0x200000000000ul /* of those that AddressSanitizer's memory gets by with */
#define WIDE_STEP      0x0422735ad8c0ul
#define STEP           0x008435ab3840ul
#define SMALL_STEP     0x000435ab3840ul
#define LEAST_STEPS                                                                                          \
	4 /* low memory ends below that, unless it is known from the start, or when it is mapped */

/*
 * The first ones differ by less than what AddressSanitizer has, its heap and its own shadow of heap,
 * libraries and executable, is away from libraries and executable (5.2 TB): so its shadow is where nobody has
 * windows. Nor has it that of the same memory there: its heap is in regions of 64 GB, used from their start
 * and from seven eighths of them on, and its own shadow of that in regions of 8 GB. No multiple of half of
 * this step, up to the fortieth, is closer than 93 MB to what leads from one such place to another.
 */
#define CLOSE 0x050000000000ul
#define APART 0x004102e8b980ul

/* Sparse shadows: steps that are tried, and by how much each may be larger for the homes to be apart. */
#define HOME_STEP_MOST  0x000435ab3840ul
#define HOME_STEP_LEAST 0x0001c0000000ul
#define HOME_STEP_LESS  0x000080000000ul
#define HOME_SHIFT      0x000001235ac0ul
#define HOME_SHIFTS     128
#define HOME_ABOVE      (GIGABYTE / 4)  /* libraries, or a heap, above what is there at the start */
#define HOME_BELOW      (40 * GIGABYTE) /* stacks of threads, as the kernel places them */
#define SPREAD          64              /* how far from each other the first ones are, in steps */

/*
 * Programs built with AddressSanitizer insist on these: their own shadow, whose shadow in turn is folded, and
 * their heap. As many threads as there is room for elsewhere stay away from there.
 */
static const struct range insisted_on[] = {{0, 0x10007fff8000}, {0x600000000000, 0x640000000000}};
static const struct range folded = {FOLD - BELOW, FOLD + 0x10007fff8000};

static bool overlap(struct range a, struct range b)
{
	return a.start < b.end && b.start < a.end;
}

/* Takes in those that it overlaps, one after the other: what came of the first may reach the next. */
static void add_window(struct shadow_plan *plan, uint64_t start, uint64_t end)
{
	struct range window = {start, end > USER_END ? USER_END : end};

	for (unsigned i = 0; i < plan->window_count;) {
		struct range other = plan->windows[i];
		if (!overlap(window, other)) {
			i++;
			continue;
		}
		if (other.start < window.start)
			window.start = other.start;
		if (other.end > window.end)
			window.end = other.end;
		plan->windows[i] = plan->windows[--plan->window_count];
		i = 0;
	}
	if (plan->window_count < MAX_WINDOWS)
		plan->windows[plan->window_count++] = window;
}

static bool is_insisted_on(struct range range)
{
	for (unsigned i = 0; i < sizeof insisted_on / sizeof insisted_on[0]; i++) {
		if (overlap(range, insisted_on[i]))
			return true;
	}
	return false;
}

static bool is_mapped(const struct maps *maps, struct range range)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (overlap(range, (struct range){maps->mappings[i].start, maps->mappings[i].end}))
			return true;
	}
	return false;
}

static bool is_round(uint64_t distance)
{
	return (distance + ROUND_NEAR) % ROUND <= 2 * ROUND_NEAR;
}

/* Is the shadow at this distance clear of what there is, of all windows and of the shadows of other threads?
 */
static bool fits(const struct shadow_plan *plan, const struct maps *maps, uint64_t distance)
{
	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range own = shadow_range(plan->windows[i], distance);
		if (own.start < GIGABYTE || own.end > USER_END || own.end < own.start || is_mapped(maps, own))
			return false;
		for (unsigned k = 0; k < plan->window_count; k++) {
			if (overlap(own, plan->windows[k]))
				return false;
			for (unsigned n = 1; n < plan->thread_count; n++) {
				if (overlap(own, shadow_range(plan->windows[k], plan->distances[n])))
					return false;
			}
		}
	}
	return true;
}

static bool is_considerate(const struct shadow_plan *plan, uint64_t distance)
{
	bool free = !is_insisted_on(shadow_range(folded, distance));

	for (unsigned i = 0; free && i < plan->window_count; i++)
		free = !is_insisted_on(shadow_range(plan->windows[i], distance));
	return free;
}

static void add_if_it_fits(
        struct shadow_plan *plan, const struct maps *maps, unsigned threads, uint64_t distance)
{
	if (plan->thread_count < threads && plan->thread_count < WINDOWED_THREADS && !is_round(distance) &&
	        fits(plan, maps, -distance))
		plan->distances[plan->thread_count++] = -distance;
}

/* Far from each other as long as there is room: memory that comes later then finds room, too. */
static void choose_distances(struct shadow_plan *plan, const struct maps *maps, unsigned threads)
{
	static const uint64_t steps[] = {WIDE_STEP, STEP, SMALL_STEP};

	plan->thread_count = 1;
	for (unsigned half = 0; half < 2; half++) {
		for (uint64_t d = FIRST_DISTANCE - half * (APART / 2); d > FIRST_DISTANCE - CLOSE;
		        d -= APART) {
			if (is_considerate(plan, -d))
				add_if_it_fits(plan, maps, threads, d);
		}
	}
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		for (uint64_t d = FIRST_DISTANCE; d >= LEAST_DISTANCE; d -= steps[i]) {
			if (is_considerate(plan, -d))
				add_if_it_fits(plan, maps, threads, d);
		}
	}
	for (uint64_t d = LEAST_STEPS * SMALL_STEP; d < USER_END; d += SMALL_STEP)
		add_if_it_fits(plan, maps, threads, d);
}

/* ---- sparse shadows ---- */

struct ranges {
	VECTOR(struct range) sorted; /* by both ends: none overlap */
};

static int by_start(const void *a, const void *b)
{
	const struct range *first = a, *second = b;

	return first->start < second->start ? -1 : first->start > second->start;
}

static void sort_and_merge(struct ranges *ranges)
{
	struct range *items = ranges->sorted.items;
	uint32_t count = 0;

	qsort(items, ranges->sorted.count, sizeof *items, by_start);
	for (uint32_t i = 0; i < ranges->sorted.count; i++) {
		if (count && items[i].start <= items[count - 1].end) {
			if (items[i].end > items[count - 1].end)
				items[count - 1].end = items[i].end;
		} else {
			items[count++] = items[i];
		}
	}
	ranges->sorted.count = count;
}

static bool is_clear(const struct ranges *ranges, struct range range)
{
	uint32_t low = 0, high = ranges->sorted.count;

	/* The first one that ends behind its start. */
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (ranges->sorted.items[middle].end <= range.start)
			low = middle + 1;
		else
			high = middle;
	}
	return low == ranges->sorted.count || ranges->sorted.items[low].start >= range.end;
}

/* Windows and what is mapped: no shadow may be there. */
static void list_programs(const struct shadow_plan *plan, const struct maps *maps, struct ranges *programs)
{
	for (unsigned i = 0; i < plan->window_count; i++)
		vector_push(&programs->sorted, plan->windows[i]);
	for (size_t i = 0; i < maps->count; i++)
		vector_push(
		        &programs->sorted, (struct range){maps->mappings[i].start, maps->mappings[i].end});
	sort_and_merge(programs);
}

static void list_shadows(const struct shadow_plan *plan, struct ranges *shadows)
{
	for (unsigned n = 1; n < plan->windowed; n++) {
		for (unsigned i = 0; i < plan->window_count; i++)
			vector_push(&shadows->sorted, shadow_range(plan->windows[i], plan->distances[n]));
	}
	sort_and_merge(shadows);
}

static void choose_homes(struct shadow_plan *plan, const struct shadow_places *places)
{
	uint64_t fold = places->executable.end && places->executable.start < FOLD ? FOLD : 0;

	plan->home_count = places->segment_count;
	for (unsigned i = 0; i < places->segment_count; i++) {
		struct range home = places->segments[i];
		uint64_t low = i ? places->executable.start | fold : places->library;
		uint64_t high = (i ? places->executable.end | fold : places->library) + HOME_ABOVE;
		if (low < home.start)
			home.start = low;
		if (high > home.end)
			home.end = high;
		plan->homes[i] = (struct range){home.start & ~0xffful, (home.end + 0xfff) & ~0xffful};
	}
}

/* Do homes that are any number of steps apart stay clear of each other? */
static bool keeps_apart(const struct shadow_plan *plan, uint64_t step)
{
	for (unsigned i = 0; i < plan->home_count; i++) {
		for (unsigned k = 0; k < plan->home_count; k++) {
			uint64_t size = plan->homes[k].end - plan->homes[k].start + 0x2000;
			/* From the start of k to the next start of i above it. */
			uint64_t between =
			        plan->homes[i].start >= plan->homes[k].start
			                ? (plan->homes[i].start - plan->homes[k].start) % step
			                : step - (plan->homes[k].start - plan->homes[i].start) % step;
			if (i == k ? step < size : between < size)
				return false;
		}
	}
	return true;
}

static bool is_home(const struct shadow_plan *plan, const struct ranges *programs,
        const struct ranges *shadows, uint64_t distance)
{
	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range own = shadow_range(plan->windows[i], distance);
		if (own.start < GIGABYTE || own.end > USER_END || own.end < own.start ||
		        !is_clear(programs, own))
			return false;
	}
	for (unsigned i = 0; i < plan->home_count; i++) {
		struct range own = shadow_range(plan->homes[i], distance);
		if (!is_clear(programs, own)) /* narrow windows may be smaller than a home */
			return false;
		if (i == 0)
			own.start -= HOME_BELOW;
		if (!is_clear(shadows, own))
			return false;
	}
	return true;
}

/* Low memory has a shadow at all of them, whether or not there is some now. */
static unsigned find_homes(const struct shadow_plan *plan, const struct ranges *programs,
        const struct ranges *shadows, uint64_t step, uint64_t *found, unsigned most)
{
	unsigned count = 0;

	for (uint64_t d = LEAST_STEPS * SMALL_STEP; d < FOLD - BELOW && count < most; d += step) {
		if (!is_round(d) && is_home(plan, programs, shadows, -d))
			found[count++] = -d;
	}
	return count;
}

/* The largest step with which there are enough, or the smallest. */
static unsigned choose_step(struct shadow_plan *plan, const struct ranges *programs,
        const struct ranges *shadows, uint64_t *found, unsigned wanted, unsigned most)
{
	unsigned count = 0;

	for (uint64_t about = HOME_STEP_MOST; about >= HOME_STEP_LEAST && count < wanted;
	        about -= HOME_STEP_LESS) {
		uint64_t step = about;
		for (unsigned i = 0; i < HOME_SHIFTS && !keeps_apart(plan, step); i++)
			step += HOME_SHIFT;
		if (!keeps_apart(plan, step))
			continue;
		plan->home_step = step;
		count = find_homes(plan, programs, shadows, step, found, most);
	}
	return count;
}

/* The first ones far from each other, so that what their threads touch may be far apart, too. */
static void spread(struct shadow_plan *plan, const uint64_t *found, unsigned count, unsigned threads)
{
	for (unsigned step = SPREAD; step; step /= 2) {
		for (unsigned i = step == SPREAD ? 0 : step; i < count;
		        i += step == SPREAD ? step : 2 * step) {
			if (plan->thread_count < threads)
				plan->distances[plan->thread_count++] = found[i];
		}
	}
}

static void add_sparse(struct shadow_plan *plan, const struct maps *maps, const struct shadow_places *places,
        unsigned threads)
{
	enum { MOST = 2 * MAX_RECORDED_THREADS };
	struct ranges programs = {0}, shadows = {0};
	uint64_t *found = malloc(MOST * sizeof *found);

	if (!found)
		abort();
	choose_homes(plan, places);
	list_programs(plan, maps, &programs);
	list_shadows(plan, &shadows);
	unsigned count = choose_step(plan, &programs, &shadows, found, threads - plan->thread_count, MOST);
	spread(plan, found, count, threads);
	vector_free(&programs.sorted);
	vector_free(&shadows.sorted);
	free(found);
}

void shadow_plan(struct shadow_plan *plan, const struct maps *maps, const struct shadow_places *places,
        const struct shadow_reach *reach, unsigned threads)
{
	uint64_t low = places->executable.start, high = places->executable.end, top = places->stack;
	uint64_t library = places->library, bottom = library;

	*plan = (struct shadow_plan){.low_memory = high && high < FOLD};
	for (size_t i = 0; i < maps->count; i++) {
		if (maps->mappings[i].start <= places->stack && places->stack < maps->mappings[i].end)
			top = maps->mappings[i].end;
		plan->low_memory |= maps->mappings[i].start < FOLD;
	}
	if (places->segment_count && places->segments[0].start < bottom)
		bottom = places->segments[0].start; /* the kernel goes on below it */
	add_window(plan, top - reach->stack, top + (1ul << 20));
	add_window(plan, bottom > reach->libraries ? bottom - reach->libraries : GIGABYTE,
	        library + reach->libraries_up);
	if (high && low >= FOLD)
		add_window(plan, low, high + reach->heap);
	if (plan->low_memory)
		add_window(plan, FOLD, FOLD + (high < FOLD ? high : 0) + reach->heap);
	for (unsigned i = 0; i < places->segment_count; i++)
		add_window(plan, places->segments[i].start, places->segments[i].end);
	choose_distances(plan, maps, threads);
	plan->windowed = plan->thread_count;
	add_sparse(plan, maps, places, threads);
}

uint64_t shadow_plan_bytes(const struct shadow_plan *plan)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range shadow = shadow_range(plan->windows[i], plan->distances[1]);
		sum += shadow.end - shadow.start;
	}
	return sum;
}
