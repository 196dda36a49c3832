/*
 * What every test program uses: checks that hold natively and must hold under bugnet, and nothing that
 * depends on addresses, process ids or time in the output.
 *
 * A failed check writes one line to stderr and ends the whole process with status 1. It only uses snprintf
 * and write, so that it may be called in signal handlers, in children of vfork and in threads without libc.
 *
 * A program that cannot run here (the kernel forbids what it tests) ends with skip(): status 77.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#define SKIP_STATUS 77

static inline void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	int size = vsnprintf(text, sizeof text - 1, format, args);
	va_end(args);
	if (size > (int)sizeof text - 2)
		size = sizeof text - 2;
	text[size] = '\n';
	if (write(2, text, (size_t)size + 1) < 0)
		_exit(2);
	_exit(1);
}

static inline void __attribute__((noreturn)) skip(const char *why)
{
	fflush(stdout);
	dprintf(2, "skipped: %s\n", why);
	_exit(SKIP_STATUS);
}

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			fail("%s:%d: not true: %s (errno %d)", __FILE__, __LINE__, #condition, errno);       \
	} while (0)

#define CHECK_EQ(a, b)                                                                                       \
	do {                                                                                                 \
		unsigned long long check_a = (unsigned long long)(a), check_b = (unsigned long long)(b);     \
		if (check_a != check_b)                                                                      \
			fail("%s:%d: %s is %#llx, %s is %#llx (errno %d)", __FILE__, __LINE__, #a, check_a,  \
			        #b, check_b, errno);                                                         \
	} while (0)

/* A system call or libc function that must give -1 and this errno. */
#define CHECK_ERRNO(call, error)                                                                             \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		long check_result = (long)(call);                                                            \
		if (check_result != -1 || errno != (error))                                                  \
			fail("%s:%d: %s gave %ld with errno %d, not %s", __FILE__, __LINE__, #call,          \
			        check_result, errno, #error);                                                \
	} while (0)

/* One step of a checksum; every step depends on all before it. */
static inline uint64_t mix(uint64_t sum, uint64_t value)
{
	sum ^= value + 0x9e3779b97f4a7c15u + (sum << 6) + (sum >> 2);
	return sum * 0xff51afd7ed558ccdu;
}

/* A cheap generator with a fixed seed: the same numbers on every run. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Work the compiler cannot remove, with a result that a lost or doubled instruction would change. */
static inline uint64_t compute(uint64_t seed, unsigned rounds)
{
	uint64_t state = seed | 1, sum = seed;
	for (unsigned i = 0; i < rounds; i++)
		sum = mix(sum, next_random(&state));
	return sum;
}

/* The last line of every program: it got through. */
static inline int done(void)
{
	puts("done");
	return fflush(stdout) ? 1 : 0;
}

#endif
