/*
 * One of two paths forgets the lock.
 *
 * race: balance
 */
#include "race.h"

static long balance;

static NOINLINE void *pay_in(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		LOCK();
		balance += 2;
		UNLOCK();
	}
	return unused;
}

static NOINLINE void *pay_out(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		balance -= 1;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

int main(void)
{
	run_two(pay_in, pay_out);
	printf("%d\n", balance != 0);
	return 0;
}
