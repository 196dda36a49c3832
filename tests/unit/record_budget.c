/* Budgets: what follows from how slow and how large recording is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/budget.h"

#define MS UINT64_C(1000000)
#define MB (UINT64_C(1) << 20)

/* ---- how slow ---- */

static struct usage used;
static struct budget budget;

static void begin(double most)
{
	used = (struct usage){.time = 1000 * MS};
	budget = (struct budget){.most_slowdown = most};
	assert_int_equal(budget_pace(&budget, &used), BUDGET_FINE);
	budget.cycle = 0.5; /* so that four instructions are a nanosecond */
}

/* Half a second in which a program that would take 100 ms takes that many times as long. */
static enum budget_advice run(double times)
{
	assert_false(budget_due(&budget, used.time + 400 * MS));
	used.time += 500 * MS;
	used.user += (uint64_t)(100 * times) * MS;
	used.executed += 400 * MS;
	assert_true(budget_due(&budget, used.time));
	return budget_pace(&budget, &used);
}

static void estimates(void **state)
{
	(void)state;
	begin(0);
	assert_int_equal(run(3), BUDGET_FINE);
	assert_true(budget.slowdown > 2.99 && budget.slowdown < 3.01);
	/* what the kernel does for the program is no slower than before, what it does for the shadow is a
	 * cost */
	used.system += 200 * MS;
	assert_int_equal(run(3), BUDGET_FINE);
	assert_true(budget.slowdown > 1.66 && budget.slowdown < 1.67);
	used.system += 200 * MS;
	used.faults += 200000;
	assert_int_equal(run(3), BUDGET_FINE);
	assert_true(budget.slowdown > 4.99 && budget.slowdown < 5.01);
	used.waited += 200 * MS;
	assert_int_equal(run(3), BUDGET_FINE);
	assert_true(budget.slowdown > 4.99 && budget.slowdown < 5.01);
	/* never faster than natively */
	assert_int_equal(run(0.6), BUDGET_FINE);
	assert_true(budget.slowdown == 1);
}

/* One that sleeps most of the time is judged when it has done enough. */
static void sleeps(void **state)
{
	(void)state;
	begin(2);
	for (unsigned i = 0; i < 3; i++) {
		used.time += 500 * MS;
		used.user += 15 * MS;
		used.executed += 20 * MS;
		assert_int_equal(budget_pace(&budget, &used), BUDGET_FINE);
		assert_true(budget.slowdown == 0);
	}
	used.time += 500 * MS;
	used.user += 15 * MS;
	used.executed += 20 * MS;
	assert_int_equal(budget_pace(&budget, &used), BUDGET_INTERVAL);
	assert_true(budget.slowdown > 2.99 && budget.slowdown < 3.01);
}

/* Longer and longer intervals, then patience, then it is let go. */
static void too_slow(void **state)
{
	(void)state;
	begin(2);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(run(3), BUDGET_INTERVAL);
		assert_int_equal(budget.lengthened, i);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(run(3), BUDGET_FINE);
	assert_int_equal(run(3), BUDGET_LEAVE);
}

static void recovers(void **state)
{
	(void)state;
	begin(4);
	for (unsigned i = 1; i <= 5; i++)
		assert_int_equal(run(5), BUDGET_INTERVAL);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(run(5), BUDGET_FINE);
	assert_int_equal(run(3), BUDGET_FINE); /* patience begins anew */
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(run(5), BUDGET_FINE);
	assert_int_equal(run(1.5), BUDGET_INTERVAL);
	assert_int_equal(budget.lengthened, 4);
	assert_int_equal(run(2.5), BUDGET_FINE);
	assert_int_equal(budget.lengthened, 4);
}

static void measures_cycles(void **state)
{
	(void)state;
	double cycle = slowdown_cycle();

	assert_true(cycle > 0.05 && cycle < 20); /* 20 GHz to 50 MHz */
}

/* ---- how large ---- */

static void shares(void **state)
{
	(void)state;
	struct budget_shares small = budget_share(BUDGET_LEAST_MEMORY), large = budget_share(8192 * MB);

	assert_true(small.ring == 8 * MB && small.cache == 4 * MB);
	assert_true(large.ring == 2048 * MB && large.cache == 128 * MB);
}

static void holds(void **state)
{
	(void)state;
	struct budget held = {.most_memory = 64 * MB};

	assert_int_equal(budget_hold(&held, 1000 * MS, 64 * MB, 30 * MB), BUDGET_KEPT);
	assert_int_equal(budget_hold(&held, 1100 * MS, 65 * MB, 31 * MB), BUDGET_KEYFRAMES);
	/* they take a while to be made */
	assert_int_equal(budget_hold(&held, 1200 * MS, 70 * MB, 36 * MB), BUDGET_KEPT);
	assert_int_equal(budget_hold(&held, 5000 * MS, 70 * MB, 36 * MB), BUDGET_KEYFRAMES);
	/* again so soon: told, once */
	assert_int_equal(budget_hold(&held, 5300 * MS, 70 * MB, 36 * MB), BUDGET_EXCEEDED);
	assert_int_equal(budget_hold(&held, 5600 * MS, 70 * MB, 36 * MB), BUDGET_KEYFRAMES);
}

static void cannot_hold(void **state)
{
	(void)state;
	struct budget held = {.most_memory = 64 * MB};

	assert_int_equal(budget_hold(&held, 1000 * MS, 90 * MB, 10 * MB), BUDGET_EXCEEDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(estimates),
	        cmocka_unit_test(sleeps),
	        cmocka_unit_test(too_slow),
	        cmocka_unit_test(recovers),
	        cmocka_unit_test(measures_cycles),
	        cmocka_unit_test(shares),
	        cmocka_unit_test(holds),
	        cmocka_unit_test(cannot_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
