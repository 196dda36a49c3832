#include "record/shadow_plan.h"

#define GIGABYTE     (1ul << 30)
#define LIBRARIES    (256 * GIGABYTE) /* below the first mapping the kernel made */
#define LIBRARIES_UP (8 * GIGABYTE)
#define STACK        (8 * GIGABYTE)
#define HEAP         (64 * GIGABYTE) /* above the executable */
#define BELOW        (2 * GIGABYTE)  /* the executable: our segment */
#define USER_END     0x7ffffffff000ul
#define FOLD         (1ul << FOLD_BIT)

/*
 * The first distance, and the step to the next: neither is round, or the same place
 * of different pages would compete for the same way of the first cache (measured: a
 * round distance made programs six times slower). Multiples of 64, so that lines stay lines.
 */
#define FIRST_DISTANCE 0x1ff735ab3840ul
#define STEP           0x0422735ad8c0ul
#define SMALL_STEP     0x000435ab3840ul

static void add_window(struct shadow_plan *plan, uint64_t start, uint64_t end)
{
	if (end > USER_END)
		end = USER_END;
	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range *window = &plan->windows[i];
		if (start < window->end && window->start < end) {
			if (start < window->start)
				window->start = start;
			if (end > window->end)
				window->end = end;
			return;
		}
	}
	if (plan->window_count < MAX_WINDOWS)
		plan->windows[plan->window_count++] = (struct range){start, end};
}

static bool overlap(struct range a, struct range b)
{
	return a.start < b.end && b.start < a.end;
}

/* Is the shadow at this distance clear of all windows and of the shadows of other threads? */
static bool fits(const struct shadow_plan *plan, uint64_t distance)
{
	for (unsigned i = 0; i < plan->window_count; i++) {
		struct range own = shadow_range(plan->windows[i], distance);
		if (own.start < GIGABYTE || own.end > USER_END || own.end < own.start)
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

static void choose_distances(struct shadow_plan *plan)
{
	plan->thread_count = 1;
	for (uint64_t step = STEP, distance = FIRST_DISTANCE;
	        plan->thread_count < MAX_RECORDED_THREADS && distance < USER_END; distance += step) {
		step = fits(plan, -distance) ? STEP : SMALL_STEP;
		if (step == STEP)
			plan->distances[plan->thread_count++] = -distance;
	}
	/* Closer ones, where there were not enough. */
	for (uint64_t distance = SMALL_STEP;
	        plan->thread_count < MAX_RECORDED_THREADS && distance < FIRST_DISTANCE;
	        distance += SMALL_STEP) {
		if (fits(plan, -distance))
			plan->distances[plan->thread_count++] = -distance;
	}
}

void shadow_plan(struct shadow_plan *plan, const struct maps *maps, uint64_t library, uint64_t stack,
        uint64_t low, uint64_t high)
{
	*plan = (struct shadow_plan){.low_memory = high && high < FOLD};
	uint64_t top = stack;

	for (size_t i = 0; i < maps->count; i++) {
		if (maps->mappings[i].start <= stack && stack < maps->mappings[i].end)
			top = maps->mappings[i].end;
		plan->low_memory |= maps->mappings[i].start < FOLD;
	}
	add_window(plan, top - STACK, top + (1ul << 20));
	add_window(plan, library > LIBRARIES ? library - LIBRARIES : GIGABYTE, library + LIBRARIES_UP);
	if (high && low >= FOLD)
		add_window(plan, low - BELOW, high + HEAP);
	if (plan->low_memory)
		add_window(plan, FOLD - BELOW, FOLD + HEAP);
	choose_distances(plan);
}
