#include "replay/schedule.h"

/* To begin anywhere costs something: memory is emptied, the first lines and pages come anew. */
#define STRETCH_WORK 50000
#define SHARES       2 /* a session takes its part of 1/SHARES of what is left */

static uint64_t work_of(const struct section *stretch)
{
	return STRETCH_WORK + (stretch->last > stretch->first ? stretch->last - stretch->first : 0);
}

uint64_t schedule_work(const struct timeline *timeline)
{
	uint64_t work = 0;

	for (size_t i = 0; i < timeline->count; i++)
		work += work_of(timeline->stretches[i]);
	return work;
}

void schedule_init(struct schedule *schedule, const struct timeline *timeline, unsigned workers)
{
	*schedule = (struct schedule){
	        .timeline = timeline,
	        .workers = workers,
	        .left = schedule_work(timeline),
	        .failure = SIZE_MAX,
	};
	pthread_mutex_init(&schedule->mutex, NULL);
}

void schedule_deinit(struct schedule *schedule)
{
	pthread_mutex_destroy(&schedule->mutex);
}

bool schedule_is_moot(const struct schedule *schedule, size_t stretch)
{
	return stretch > __atomic_load_n(&schedule->failure, __ATOMIC_RELAXED);
}

bool schedule_take(struct schedule *schedule, size_t *first, size_t *end)
{
	const struct timeline *timeline = schedule->timeline;

	pthread_mutex_lock(&schedule->mutex);
	size_t next = schedule->next;
	bool any = next < timeline->count && !schedule_is_moot(schedule, next);
	if (any) {
		uint64_t share = schedule->left / (SHARES * schedule->workers), taken = 0;
		*first = next;
		/* One that does all does so in one go: nothing is looked at twice then. */
		while (next < timeline->count && (schedule->workers == 1 || taken <= share))
			taken += work_of(timeline->stretches[next++]);
		*end = schedule->next = next;
		schedule->left -= taken;
	}
	pthread_mutex_unlock(&schedule->mutex);
	return any;
}

void schedule_fail(struct schedule *schedule, size_t stretch)
{
	pthread_mutex_lock(&schedule->mutex);
	if (stretch < schedule->failure)
		__atomic_store_n(&schedule->failure, stretch, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&schedule->mutex);
}
