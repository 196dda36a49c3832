/*
 * Four threads keep a maximum.
 *
 * race: maximum
 */
#include "race.h"

static uint64_t maximum;

static NOINLINE void offer(uint64_t value)
{
	IF_RACING(if (value > maximum) maximum = value;)
	IF_FIXED(uint64_t seen = __atomic_load_n(&maximum, __ATOMIC_RELAXED);)
	IF_FIXED(while (seen < value && !__atomic_compare_exchange_n(&maximum, &seen, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));)
}

static NOINLINE void *work(void *number)
{
	for (uint64_t i = 0; i < ROUNDS; i++)
		offer(i * 4 + (uintptr_t)number);
	return NULL;
}

int main(void)
{
	struct runner runners[4];
	for (uintptr_t i = 0; i < 4; i++)
		runners[i] = (struct runner){.function = work, .argument = (void *)i};
	run(runners, 4);
	printf("%d\n", maximum > 0);
	return 0;
}
