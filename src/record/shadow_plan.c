#include "record/shadow_plan.h"

#define GIGABYTE (1ul << 30)
#define BELOW    (2 * GIGABYTE) /* the executable: our segment */
#define USER_END 0x7ffffffff000ul
#define FOLD     (1ul << FOLD_BIT)

/*
 * The first distance, and steps to others: none is round, or the same place of different
 * pages would compete for the same way of the first cache (measured: a round distance made
 * programs six times slower). Multiples of 64, so that lines stay lines.
 */
#define FIRST_DISTANCE 0x2ff735ab3840ul
#define LEAST_DISTANCE 0x200000000000ul /* of those that AddressSanitizer's memory gets by with */
#define WIDE_STEP      0x0422735ad8c0ul
#define STEP           0x008435ab3840ul
#define SMALL_STEP     0x000435ab3840ul

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
	if (plan->thread_count < threads && fits(plan, maps, -distance))
		plan->distances[plan->thread_count++] = -distance;
}

/* Far from each other as long as there is room: memory that comes later then finds room, too. */
static void choose_distances(struct shadow_plan *plan, const struct maps *maps, unsigned threads)
{
	static const uint64_t steps[] = {WIDE_STEP, STEP, SMALL_STEP};

	plan->thread_count = 1;
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		for (uint64_t d = FIRST_DISTANCE; d >= LEAST_DISTANCE; d -= steps[i]) {
			if (is_considerate(plan, -d))
				add_if_it_fits(plan, maps, threads, d);
		}
	}
	for (uint64_t d = SMALL_STEP; d < USER_END; d += SMALL_STEP)
		add_if_it_fits(plan, maps, threads, d);
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
