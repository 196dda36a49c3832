/* gdb's agent expressions: every operation, what has no value, and code that no gdb sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fuzz/random.h"
#include "target/agent.c"

#define MEMORY_START 0x1000u

static const uint8_t memory[16] = {0xf1, 0x82, 3, 4, 5, 6, 7, 0x88, 9, 10, 11, 12, 13, 14, 15, 16};

/* Registers 0 to 3 are known. */
static bool read_register(void *context, unsigned number, uint64_t *value)
{
	static const uint64_t values[] = {5, UINT64_MAX, 0x8000000000000000u, MEMORY_START};

	(void)context;
	if (number < 4)
		*value = values[number];
	return number < 4;
}

static bool read_memory(void *context, uint64_t address, void *to, size_t size)
{
	(void)context;
	if (address < MEMORY_START || address - MEMORY_START > sizeof memory - size)
		return false;
	memcpy(to, memory + (address - MEMORY_START), size);
	return true;
}

static const struct agent_world world = {read_register, read_memory, NULL};

/* Code in hex, with spaces; "" for `value`: it has none. */
static bool evaluate(const char *hex, uint64_t *value)
{
	uint8_t code[64];
	size_t size = 0;

	for (char *end; *hex; hex = *end == ' ' ? end + 1 : end)
		code[size++] = (uint8_t)strtoul(hex, &end, 16);
	return agent_evaluate(code, size, &world, value);
}

static void expect(const char *hex, uint64_t wanted)
{
	uint64_t value = 0xbad;

	if (!evaluate(hex, &value))
		fail_msg("%s has no value", hex);
	if (value != wanted)
		fail_msg("%s is %#lx instead of %#lx", hex, value, wanted);
}

static void expect_nothing(const char *hex)
{
	uint64_t value = 0xbad;

	if (evaluate(hex, &value))
		fail_msg("%s is %#lx", hex, value);
}

static void test_constants(void **state)
{
	(void)state;
	expect("22 85 27", 0x85);
	expect("23 85 01 27", 0x8501);
	expect("24 85 01 02 03 27", 0x85010203);
	expect("25 85 01 02 03 04 05 06 07 27", 0x8501020304050607);
	expect("26 00 00 27", 5);
	expect("26 00 01 27", UINT64_MAX);
}

static void test_arithmetic(void **state)
{
	(void)state;
	expect("22 05 22 07 02 27", 12);
	expect("22 05 22 07 03 27", (uint64_t)-2);
	expect("22 05 22 07 04 27", 35);
	/* -7 and 2 */
	expect("22 f9 16 08 22 02 05 27", (uint64_t)-3);
	expect("22 f9 16 08 22 02 07 27", (uint64_t)-1);
	expect("22 f9 16 08 22 02 06 27", (uint64_t)-7 / 2);
	expect("22 f9 16 08 22 03 08 27", (uint64_t)-7 % 3);
	expect("22 01 22 3f 09 27", 1ul << 63);
	expect("26 00 02 22 3f 0a 27", UINT64_MAX);
	expect("26 00 02 22 3f 0b 27", 1);
}

static void test_logic(void **state)
{
	(void)state;
	expect("22 00 0e 27", 1);
	expect("22 05 0e 27", 0);
	expect("22 0c 22 0a 0f 27", 8);
	expect("22 0c 22 0a 10 27", 14);
	expect("22 0c 22 0a 11 27", 6);
	expect("22 0c 12 27", ~12ul);
	expect("22 0c 22 0c 13 27", 1);
	expect("22 0c 22 0d 13 27", 0);
	/* -1 and 1 */
	expect("26 00 01 22 01 14 27", 1);
	expect("26 00 01 22 01 15 27", 0);
	expect("22 01 26 00 01 15 27", 1);
	expect("22 80 16 08 27", (uint64_t)-128);
	expect("23 ff 7f 16 08 27", 0x7f);
	expect("26 00 01 2a 10 27", 0xffff);
	expect("26 00 01 2a 40 27", UINT64_MAX);
	expect("26 00 01 16 40 27", UINT64_MAX);
}

static void test_memory(void **state)
{
	(void)state;
	expect("26 00 03 17 27", 0xf1);
	expect("26 00 03 18 27", 0x82f1);
	expect("26 00 03 19 27", 0x040382f1);
	expect("26 00 03 1a 27", 0x88070605040382f1);
	expect("26 00 03 22 08 02 1a 27", 0x100f0e0d0c0b0a09);
	expect_nothing("26 00 03 22 09 02 1a 27"); /* its last byte is not known */
	expect_nothing("22 00 17 27");
	expect_nothing("26 00 04 27"); /* nor is the register */
}

static void test_stack(void **state)
{
	(void)state;
	expect("22 05 28 02 27", 10);
	expect("22 05 22 06 29 27", 5);
	expect("22 05 22 06 2b 03 27", 1);
	expect("22 05 22 06 22 07 32 02 27", 5);
	expect("22 05 22 06 22 07 32 00 27", 7);
	/* a b c -> c a b */
	expect("22 05 22 06 22 07 33 27", 6);
	expect("22 05 22 06 22 07 33 29 27", 5);
	expect("22 05 22 06 22 07 33 29 29 27", 7);
}

/* a && b as gdb writes it. */
static void test_branches(void **state)
{
	static const char *const code = "26 00 00 0e 20 00 0c 22 07 21 00 0e 22 00 27";

	(void)state;
	expect("21 00 05 22 01 22 02 27", 2);
	expect("22 00 20 00 07 22 05 27", 5);
	expect("22 01 20 00 08 22 05 27 22 06 27", 6);
	expect(code, 7);
	expect_nothing("21 00 00 27");    /* without end */
	expect_nothing("21 00 03");       /* out of it */
	expect_nothing("21 ff ff 22 01"); /* far out of it */
}

static void test_nonsense(void **state)
{
	(void)state;
	expect_nothing("");
	expect_nothing("27");
	expect_nothing("22 01"); /* no end */
	expect_nothing("22");
	expect_nothing("25 01 02 03 04 05 06 07");
	expect_nothing("02 27");
	expect_nothing("22 01 02 27");
	expect_nothing("22 01 22 00 05 27"); /* division by zero */
	expect_nothing("22 01 22 00 08 27");
	expect_nothing("26 00 02 26 00 01 05 27"); /* the smallest by -1 */
	expect_nothing("26 00 02 26 00 01 07 27");
	expect_nothing("22 01 22 40 09 27"); /* shifts by 64 */
	expect_nothing("22 01 26 00 01 0a 27");
	expect_nothing("22 01 16 00 27");
	expect_nothing("22 01 16 41 27");
	expect_nothing("22 05 32 01 27");
	expect_nothing("22 05 28 33 27");
	expect_nothing("22 01 22 02 0c 27"); /* traces */
	expect_nothing("22 01 01 27");       /* floating point */
	expect_nothing("ff 27");
	expect_nothing("22 01 28 21 00 02 27"); /* the stack runs over */
}

/* Code at random never leads outside, and ends. */
static void test_random(void **state)
{
	struct rng rng = {61};
	unsigned values = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		size_t size = 1 + rng_below(&rng, 24);
		uint8_t *code = malloc(size); /* of its own: a sanitizer sees what is beyond */
		uint64_t value;
		for (size_t k = 0; k < size; k++)
			code[k] = (uint8_t)(rng_chance(&rng, 80) ? rng_below(&rng, 0x35) : rng_next(&rng));
		values += agent_evaluate(code, size, &world, &value);
		free(code);
	}
	assert_true(values > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_constants),
	        cmocka_unit_test(test_arithmetic),
	        cmocka_unit_test(test_logic),
	        cmocka_unit_test(test_memory),
	        cmocka_unit_test(test_stack),
	        cmocka_unit_test(test_branches),
	        cmocka_unit_test(test_nonsense),
	        cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
