/*
 * The work of a replay, shared out: stretches stand for themselves, so each of several
 * sessions takes some that lie together, and comes back for more. What it takes gets less
 * towards the end, so that all of them finish at about the same time.
 *
 * Whatever ends the replay early is told of by the first stretch in which it happens: those
 * behind it are given up, those before it are still replayed.
 */
#ifndef BUGNET_REPLAY_SCHEDULE_H
#define BUGNET_REPLAY_SCHEDULE_H

#include <pthread.h>

#include "replay/timeline.h"

struct schedule {
	pthread_mutex_t mutex;
	const struct timeline *timeline;
	unsigned workers;
	size_t next;
	uint64_t left;  /* work, see schedule_work */
	size_t failure; /* the first stretch that could not be replayed, or SIZE_MAX */
};

/* Work in about as many instructions as take the same time. */
uint64_t schedule_work(const struct timeline *timeline);

void schedule_init(struct schedule *schedule, const struct timeline *timeline, unsigned workers);
void schedule_deinit(struct schedule *schedule);

/* The next stretches to replay, [*first, *end); false: there are none. */
bool schedule_take(struct schedule *schedule, size_t *first, size_t *end);
/* A stretch cannot be replayed. */
void schedule_fail(struct schedule *schedule, size_t stretch);
/* Is it of no use any more to replay this one? */
bool schedule_is_moot(const struct schedule *schedule, size_t stretch);

#endif
