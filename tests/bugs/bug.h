/*
 * What the programs of tests/bugs share. Each has a bug whose root cause lies before its symptom, a trigger in main,
 * and with -DFIXED no bug. The first lines of each tell:
 *
 *	expect    how it ends: signal N, or what makes a file of it: saved, output REGEX, asked (from outside)
 *	cause     the root cause
 *	symptom   and what is seen of it
 *
 * ROOT_CAUSE() stands right before the faulty statement. It makes a system call that does nothing and that no program
 * makes otherwise, so that the place is in the recording by its position, whatever the compiler did.
 */
#ifndef BUG_H
#define BUG_H

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
#define BUG_INLINE static inline
#else
#define BUG_INLINE static inline __attribute__((unused))
#endif

#define ROOT_CAUSE() ((void)syscall(SYS_getpriority, 0x6275, 0x67))

static volatile unsigned long bug_sink;

/* What the program does between cause and symptom. */
BUG_INLINE void bug_work(unsigned long turns)
{
	unsigned long x = turns;
	const char *more = getenv("BUG_DISTANCE"); /* times as much */

	if (more)
		turns *= strtoul(more, NULL, 10);
	for (unsigned long i = 0; i < turns; i++)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	bug_sink = x;
}

#endif
