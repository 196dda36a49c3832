/*
 * A plain counter right beside an atomic one, in the same eight bytes.
 *
 * race: pair
 */
#include "race.h"

static struct {
	atomic_int users;
	IF_RACING(int) IF_FIXED(atomic_int) count;
} pair __attribute__((aligned(8)));

static NOINLINE void *add(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		pair.count++;
	atomic_fetch_add(&pair.users, 1);
	return unused;
}

int main(void)
{
	run_two(add, add);
	puts("done");
	return 0;
}
