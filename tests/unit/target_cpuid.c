/* What a program is told of the CPU, by level. */
#include <cpuid.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/cpu_level.h"
#include "target/cpuid.c"

static struct info described = {
        .vectors = VECTORS_UP_TO_AVX,
        .standard_at = {1088, 1152, 1664},
};

/* A CPU that has everything. */
static struct cpuid full(uint32_t leaf, uint32_t subleaf, unsigned level)
{
	struct cpuid everything = {ALL, ALL, ALL, ALL};

	return limited_cpuid(leaf, subleaf, translated_cpuid(leaf, subleaf, everything, &described), level);
}

static void level_2(void **state)
{
	struct cpuid one = full(1, 0, 2), seven = full(7, 0, 2), extended = full(0x80000001, 0, 2);
	uint32_t in =
	        bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_RDRND;

	(void)state;
	assert_int_equal(one.c & in, in);
	assert_int_equal(one.c & (bit_FMA | bit_MOVBE | bit_XSAVE | bit_OSXSAVE | bit_AVX | bit_F16C), 0);
	assert_int_equal(one.c & (bit_AES | bit_PCLMUL), 0);
	assert_int_equal(one.d, ALL);
	assert_int_equal(seven.b & (bit_FSGSBASE | bit_RDSEED), bit_FSGSBASE | bit_RDSEED);
	assert_int_equal(seven.b & (bit_BMI | bit_BMI2 | bit_AVX2 | bit_SHA | bit_ADX), 0);
	assert_int_equal(extended.c & bit_LAHF_LM, bit_LAHF_LM);
	assert_int_equal(extended.c & bit_LZCNT, 0);
	assert_int_equal(full(0xd, 0, 2).a, 0);
	assert_int_equal(full(0xd, 2, 2).a, 0);
}

static void level_3(void **state)
{
	struct cpuid one = full(1, 0, 3), seven = full(7, 0, 3), extended = full(0x80000001, 0, 3);
	uint32_t in = bit_FMA | bit_MOVBE | bit_XSAVE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_POPCNT;

	(void)state;
	assert_int_equal(one.c & in, in);
	assert_int_equal(one.c & (bit_AES | bit_PCLMUL), 0);
	assert_int_equal(seven.b & (bit_BMI | bit_BMI2 | bit_AVX2), bit_BMI | bit_BMI2 | bit_AVX2);
	assert_int_equal(seven.b & (bit_SHA | bit_ADX | bit_CLFLUSHOPT | bit_CLWB | bit_AVX512F), 0);
	assert_int_equal(seven.c, bit_RDPID);
	assert_int_equal(full(7, 1, 3).a & bit_AVXVNNI, 0);
	assert_int_equal(extended.c & (bit_LAHF_LM | bit_LZCNT), bit_LAHF_LM | bit_LZCNT);
	assert_int_equal(extended.c & (bit_SSE4a | bit_XOP | bit_TBM | bit_FMA4 | bit_LWP | bit_MWAITX), 0);
	assert_int_equal(extended.d & (bit_3DNOW | bit_3DNOWP), 0);
	assert_int_equal(full(0x80000008, 0, 3).b, 0);
	assert_int_equal(full(0xd, 0, 3).a, VECTORS_UP_TO_AVX);
	assert_int_equal(full(0xd, 0, 3).c, VECTORS_AVX_BYTES);
	assert_int_equal(full(0xd, 5, 3).a, 0);
}

static void native_is_not_limited(void **state)
{
	(void)state;
	assert_int_equal(full(1, 0, 0).c, ALL);
	assert_true(full(7, 0, 0).b & bit_SHA);
	assert_true(full(0x80000001, 0, 0).c & bit_SSE4a);
	assert_int_equal(full(7, 0, 0).b & (bit_AVX512F | bit_RTM), 0);
}

/* AVX-512, and nothing else, comes with its registers. */
static void wide_vectors(void **state)
{
	struct cpuid narrow = full(7, 0, 0), wide;

	(void)state;
	described.vectors = VECTORS_WIDE;
	wide = full(7, 0, 0);
	assert_int_equal(wide.b & ~narrow.b,
	        bit_AVX512F | bit_AVX512DQ | bit_AVX512IFMA | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL);
	assert_int_equal(wide.c & ~narrow.c,
	        bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512VNNI | bit_AVX512BITALG | bit_AVX512VPOPCNTDQ);
	assert_int_equal(wide.d & ~narrow.d, bit_AVX512VP2INTERSECT | BIT(23) /* FP16 */);
	assert_int_equal(narrow.b & ~wide.b, 0);
	assert_int_equal(full(0xd, 0, 0).a, VECTORS_WIDE);
	assert_int_equal(full(0xd, 0, 0).c, 2688); /* as Intel has them */
	assert_int_equal(full(0xd, 0, 3).c, 2688);
	for (unsigned i = 3; i < 70; i++)
		assert_int_equal(full(0xd, i, 0).b, i >= 5 && i <= 7 ? ALL : 0);
	described.vectors = VECTORS_UP_TO_AVX;
}

/* What a level needs must be left when it is offered: the one list against the other. */
static void levels_are_complete(void **state)
{
	unsigned level;

	(void)state;
	for (unsigned wanted = 2; wanted <= cpu_level_of_this_machine(); wanted++) {
		struct cpuid one = limited_cpuid(1, 0, cpuid(1, 0), wanted);

		assert_null(cpu_level_missing(wanted));
		assert_true(one.c & bit_SSE4_2);
		assert_int_equal(!!(one.c & bit_AVX), wanted > 2);
		assert_true(cpu_level_parse(cpu_level_name(wanted), &level) && level == wanted);
	}
	assert_true(cpu_level_parse("native", &level) && level == CPU_NATIVE);
	assert_true(cpu_level_parse("v3", &level) && level == 3);
	assert_false(cpu_level_parse("v4", &level));
	assert_false(cpu_level_parse("", &level));
	assert_false(cpu_level_parse("64", &level));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(level_2),
	        cmocka_unit_test(level_3),
	        cmocka_unit_test(native_is_not_limited),
	        cmocka_unit_test(wide_vectors),
	        cmocka_unit_test(levels_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
