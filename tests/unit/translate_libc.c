/*
 * Whole functions of the C library and libm, run translated in this process
 * and held against what they return natively: real code in bulk, with every
 * vector extension the CPU has, through PLT, TLS, vdso and system calls.
 */
#include "translate_harness.h"

#include <dlfcn.h>
#include <math.h>
#include <regex.h>
#include <time.h>

/*
 * The code under test is a second C library, loaded beside the first: the
 * translator itself needs malloc() in the middle of what is translated, which
 * may be malloc().
 */
/* clang-format off */
#define LIBC_FUNCTIONS(X) \
	X(qsort) X(snprintf) X(strtod) X(strtoul) X(memset) X(memcpy) X(memmove) \
	X(strlen) X(memcmp) X(strcmp) X(strchr) X(strstr) X(memchr) X(strnlen) \
	X(strspn) X(strcspn) X(regcomp) X(regexec) X(regfree) X(free) X(calloc) \
	X(realloc) X(getpid) X(fopen) X(fgets) X(fclose) X(atoi) X(clock_gettime) \
	X(close) X(__errno_location)

#define LIBM_FUNCTIONS(X) \
	X(sin) X(cos) X(exp) X(pow) X(log) X(atan2) X(fmod) \
	X(cbrt) X(tgamma) X(sqrtl) X(powl)
/* clang-format on */

static struct {
#define POINTER(name) __typeof__(&name) name;
	LIBC_FUNCTIONS(POINTER)
	LIBM_FUNCTIONS(POINTER)
#undef POINTER
} c;

static void load_library(void)
{
	void *libm = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
	Lmid_t space;

	assert_non_null(libm);
	assert_int_equal(dlinfo(libm, RTLD_DI_LMID, &space), 0);

	void *libc = dlmopen(space, "libc.so.6", RTLD_NOW);

	assert_non_null(libc);
#define LOAD_C(name) c.name = dlsym(libc, #name);
#define LOAD_M(name) c.name = dlsym(libm, #name);
	LIBC_FUNCTIONS(LOAD_C)
	LIBM_FUNCTIONS(LOAD_M)
#undef LOAD_C
#undef LOAD_M
	assert_non_null(c.powl);
}

static struct harness harness;
static uint8_t call_stack[1 << 20] __attribute__((aligned(64)));

/* Calls a function translated. */
static uint64_t call(void *function, uint64_t argument)
{
	struct cpu cpu = {0};

	memset(harness_vectors, 0, sizeof(harness_vectors));
	memcpy(harness_vectors, (uint8_t[]){0x7f, 0x03}, 2);
	memcpy(harness_vectors + 24, (uint8_t[]){0x80, 0x1f}, 2);
	cpu.regs[7] = argument;
	cpu.flags = 0x202;
	cpu.pc = (uint64_t)function;
	cpu.regs[4] = (uint64_t)(call_stack + sizeof(call_stack) - 4096) - 8;
	*(uint64_t *)cpu.regs[4] = (uint64_t)harness_leave_stop;
	harness_run(&harness, &cpu, (uint64_t)harness_leave_stop);
	assert_int_equal(cpu.regs[4], (uint64_t)(call_stack + sizeof(call_stack) - 4096));
	return cpu.regs[0];
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static uint64_t work_sort(uint64_t n)
{
	static int values[5000];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		values[i] = i * 7919 % 5003;
	c.qsort(values, n, sizeof(*values), compare_ints);
	for (uint64_t i = 0; i < n; i++)
		sum = sum * 31 + values[i];
	return sum;
}

static uint64_t work_print(uint64_t n)
{
	char text[512];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		int size = c.snprintf(text, sizeof(text), "%lu %-8s %08.3f %e %La %p %'d", i, "abc", i / 7.0,
		        1e300 / (i + 1), (long double)i / 3, (void *)i, (int)(i * 1000003));

		for (int k = 0; k < size; k++)
			sum = sum * 131 + text[k];
		sum += c.strtod(text, NULL) * 1000;
		sum += c.strtoul(text, NULL, 10);
	}
	return sum;
}

static uint64_t work_math(uint64_t n)
{
	double sum = 0;

	for (uint64_t i = 1; i < n; i++)
		sum += c.sin(i) * c.cos(i / 3.0) + c.exp(-(double)i) + c.pow(i, 0.3) + c.log(i) +
		       c.atan2(i, 5) + c.fmod(i, 1.7) + c.cbrt(i) + c.tgamma(1.0 / i) + (double)c.sqrtl(i) +
		       (double)c.powl(i, 0.1L);
	uint64_t bits;

	c.memcpy(&bits, &sum, 8);
	return bits;
}

static uint64_t work_strings(uint64_t n)
{
	static char a[5000], b[5000];
	uint64_t sum = 0;

	for (uint64_t i = 1; i < n; i++) {
		c.memset(a, 'a' + i % 26, i);
		a[i] = 0;
		c.memcpy(b, a, i + 1);
		c.memmove(b + i % 13, b, i);
		b[i + i % 13] = 0;
		sum += c.strlen(a) * 3 + c.strlen(b) + (c.memcmp(a, b, i) == 0) + (c.strcmp(a, b) < 0);
		sum += (c.strchr(b, 'q') != NULL) + (c.strstr(b, "zzz") != NULL) +
		       (c.memchr(a, 'c', i) != NULL);
		sum += c.strnlen(b, 7) + c.strspn(a, "abc") + c.strcspn(b, "xyz");
	}
	return sum;
}

static uint64_t work_regex(uint64_t n)
{
	regex_t regex;
	regmatch_t match[3];
	uint64_t sum = 0;
	char text[64];

	if (c.regcomp(&regex, "(a+)([0-9]*|x.y)z$", REG_EXTENDED))
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		c.snprintf(text, sizeof(text), "bb%.*s%luz", (int)(i % 5), "aaaaa", i * 37);
		if (!c.regexec(&regex, text, 3, match, 0))
			sum = sum * 17 + match[1].rm_so + match[2].rm_eo;
	}
	c.regfree(&regex);
	return sum;
}

static uint64_t work_memory(uint64_t n)
{
	void *blocks[64] = {0};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		unsigned slot = i * 31 % 64;

		c.free(blocks[slot]);
		blocks[slot] = c.calloc(1, i * 97 % 3000 + 1);
		blocks[slot] = c.realloc(blocks[slot], i * 53 % 200000 + 1);
		sum += *(uint8_t *)blocks[slot];
	}
	for (unsigned i = 0; i < 64; i++)
		c.free(blocks[i]);
	return sum;
}

static uint64_t work_system(uint64_t n)
{
	uint64_t sum = c.getpid();
	struct timespec time, last = {0};

	for (uint64_t i = 0; i < n; i++) {
		FILE *file = c.fopen("/proc/self/stat", "r");
		char text[32];

		if (!file || !c.fgets(text, sizeof(text), file))
			return 0;
		sum += c.atoi(text);
		c.fclose(file);
		c.clock_gettime(CLOCK_MONOTONIC, &time);
		sum += time.tv_sec < last.tv_sec;
		last = time;
		*c.__errno_location() = 0;
		sum += c.close(-1) + *c.__errno_location();
	}
	return sum;
}

static uint64_t work_jumps(uint64_t n)
{
	jmp_buf buffer;
	volatile uint64_t sum = 0, i = 0;

	setjmp(buffer);
	if (i < n) {
		sum += i++;
		longjmp(buffer, 1);
	}
	return sum;
}

static const struct {
	const char *name;
	uint64_t (*work)(uint64_t);
	uint64_t n;
} works[] = {
        {"sort", work_sort, 5000},
        {"print", work_print, 200},
        {"math", work_math, 300},
        {"strings", work_strings, 2000},
        {"regex", work_regex, 200},
        {"memory", work_memory, 2000},
        {"system", work_system, 20},
        {"jumps", work_jumps, 100},
};

static void run_works(bool near, bool self_check, unsigned budget)
{
	harness_init(&harness, near ? (void *)c.qsort : NULL);
	harness.request.self_check = self_check;
	harness.request.max_instructions = budget;
	for (unsigned i = 0; i < sizeof(works) / sizeof(*works); i++) {
		uint64_t expected = works[i].work(works[i].n);

		if (call(works[i].work, works[i].n) != expected)
			fail_msg("%s: other result", works[i].name);
		/* Once more with everything linked. */
		if (call(works[i].work, works[i].n) != expected)
			fail_msg("%s: other result the second time", works[i].name);
	}
	harness_deinit(&harness);
}

static void test_near(void **state)
{
	(void)state;
	run_works(true, false, 500);
}

static void test_far(void **state)
{
	(void)state;
	run_works(false, false, 50);
}

static void test_self_check(void **state)
{
	(void)state;
	run_works(true, true, 200);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_near),
	        cmocka_unit_test(test_far),
	        cmocka_unit_test(test_self_check),
	};

	load_library();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
