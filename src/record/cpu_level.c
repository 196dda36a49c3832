#include "record/cpu_level.h"

#include <cpuid.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recording/vectors.h"

enum { ECX, EDX, EBX };

static const struct feature {
	const char *name;
	uint8_t level;
	uint8_t where; /* the register */
	uint32_t leaf, bit;
} features[] = {
        {"sse3", 2, ECX, 1, bit_SSE3},
        {"ssse3", 2, ECX, 1, bit_SSSE3},
        {"cx16", 2, ECX, 1, bit_CMPXCHG16B},
        {"sse4_1", 2, ECX, 1, bit_SSE4_1},
        {"sse4_2", 2, ECX, 1, bit_SSE4_2},
        {"popcnt", 2, ECX, 1, bit_POPCNT},
        {"lahf_lm", 2, ECX, 0x80000001, bit_LAHF_LM},
        {"fma", 3, ECX, 1, bit_FMA},
        {"movbe", 3, ECX, 1, bit_MOVBE},
        {"xsave", 3, ECX, 1, bit_OSXSAVE},
        {"avx", 3, ECX, 1, bit_AVX},
        {"f16c", 3, ECX, 1, bit_F16C},
        {"bmi1", 3, EBX, 7, bit_BMI},
        {"avx2", 3, EBX, 7, bit_AVX2},
        {"bmi2", 3, EBX, 7, bit_BMI2},
        {"abm", 3, ECX, 0x80000001, bit_LZCNT},
};

static bool has_feature(const struct feature *feature)
{
	uint32_t a, registers[3] = {0};

	return __get_cpuid_count(feature->leaf, 0, &a, &registers[EBX], &registers[ECX], &registers[EDX]) &&
	       (registers[feature->where] & feature->bit);
}

/* The state that the kernel keeps for a thread, as XCR0 has it. */
static uint64_t kept_state(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* AVX is of no use where the kernel does not keep its registers. */
static bool kernel_keeps_avx(void)
{
	return (kept_state() & (VECTORS_SSE | VECTORS_AVX)) == (VECTORS_SSE | VECTORS_AVX);
}

/* Together with XSAVEC, by which we see its registers. */
static bool has_avx512(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
	        (kept_state() & VECTORS_WIDE) != VECTORS_WIDE)
		return false;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX512F))
		return false;
	return __get_cpuid_count(13, 1, &a, &b, &c, &d) && a & bit_XSAVEC;
}

void cpu_standard_form(uint32_t at[3])
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned a, b = 0, c, d;

		__get_cpuid_count(13, 5 + i, &a, &b, &c, &d);
		at[i] = b;
	}
}

uint64_t cpu_level_vectors(unsigned level)
{
	return level == CPU_NATIVE && has_avx512() ? VECTORS_WIDE : VECTORS_UP_TO_AVX;
}

const char *cpu_level_missing(unsigned level)
{
	for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
		if (features[i].level <= level && !has_feature(&features[i]))
			return features[i].name;
	}
	return level >= 3 && !kernel_keeps_avx() ? "avx" : NULL;
}

unsigned cpu_level_of_this_machine(void)
{
	unsigned level = 1;

	while (level < CPU_LEVEL_MOST && !cpu_level_missing(level + 1))
		level++;
	return level;
}

const char *cpu_level_name(unsigned level)
{
	static const char *const names[] = {[CPU_NATIVE] = "native", [2] = "x86-64-v2", [3] = "x86-64-v3"};

	return level <= CPU_LEVEL_MOST ? names[level] : NULL;
}

bool cpu_level_parse(const char *text, unsigned *level)
{
	static const unsigned levels[] = {CPU_NATIVE, 2, 3};

	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		const char *name = cpu_level_name(levels[i]), *dash = strrchr(name, '-');

		if (strcmp(text, name) == 0 || (dash && strcmp(text, dash + 1) == 0)) {
			*level = levels[i];
			return true;
		}
	}
	return false;
}
