#include "record/budget.h"

#define WINDOW_NANOSECONDS   500000000
#define LENGTHENED_MOST      5 /* the default of 250M becomes 8G */
/* A program that starts has all its code translated; that is over some time. */
#define PATIENCE_NANOSECONDS UINT64_C(10000000000)
/* Keyframes for memory are no closer than this, or there would be little else. */
#define APART_NANOSECONDS    200000000
/* Keyframes that come again so soon are a cost that should be known. */
#define OFTEN_NANOSECONDS    1000000000
#define MOST_CACHE           (UINT64_C(128) << 20)

struct budget_shares budget_share(uint64_t memory)
{
	uint64_t cache = memory / 8;

	return (struct budget_shares){.ring = memory / 4, .cache = cache < MOST_CACHE ? cache : MOST_CACHE};
}

bool budget_due(const struct budget *budget, uint64_t now)
{
	return !budget->begun || now - budget->since.time >= WINDOW_NANOSECONDS;
}

static enum budget_advice judge(struct budget *budget, uint64_t now)
{
	if (budget->slowdown > budget->most_slowdown) {
		if (budget->lengthened < LENGTHENED_MOST) {
			budget->lengthened++;
			return BUDGET_INTERVAL;
		}
		if (!budget->over_since)
			budget->over_since = now;
		return now - budget->over_since >= PATIENCE_NANOSECONDS ? BUDGET_LEAVE : BUDGET_FINE;
	}
	budget->over_since = 0;
	/* Well below: what was lengthened for a while need not stay so. */
	if (budget->slowdown * 2 < budget->most_slowdown && budget->lengthened) {
		budget->lengthened--;
		return BUDGET_INTERVAL;
	}
	return BUDGET_FINE;
}

enum budget_advice budget_pace(struct budget *budget, const struct usage *usage)
{
	if (!budget->begun) {
		budget->begun = true;
		budget->cycle = slowdown_cycle();
		budget->since = *usage;
		return BUDGET_FINE;
	}
	double slowdown = slowdown_between(&budget->since, usage, budget->cycle);
	if (slowdown == 0)
		return BUDGET_FINE; /* it sleeps: the window goes on */
	budget->since = *usage;
	budget->slowdown = slowdown;
	return budget->most_slowdown > 0 ? judge(budget, usage->time) : BUDGET_FINE;
}

enum budget_memory_advice budget_hold(struct budget *budget, uint64_t now, uint64_t all, uint64_t shadows)
{
	budget->memory = all;
	if (!budget->most_memory || all <= budget->most_memory || now - budget->asked_at < APART_NANOSECONDS)
		return BUDGET_KEPT;
	bool again = budget->asked_at && now - budget->asked_at < OFTEN_NANOSECONDS;
	bool helps = all - shadows < budget->most_memory;
	budget->asked_at = now;
	if ((helps && !again) || budget->told)
		return BUDGET_KEYFRAMES;
	budget->told = true;
	return BUDGET_EXCEEDED;
}
