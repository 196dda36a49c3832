/*
 * What a seccomp filter says of a system call: a program of the kernel's classic BPF, looked at from outside.
 *
 * It is not run but followed along all ways that it may take: of a question some things are known and others,
 * such as addresses, are not. A filter that is not understood forbids everything.
 */
#ifndef BUGNET_RECORD_FILTER_PROGRAM_H
#define BUGNET_RECORD_FILTER_PROGRAM_H

#include <linux/filter.h>
#include <stdint.h>

#define FILTER_ARGUMENTS 6

struct filter_question {
	int number; /* of the system call, of a 64-bit program */
	uint64_t arguments[FILTER_ARGUMENTS];
	uint8_t known; /* a bit for each argument */
};

enum filter_answer {
	FILTER_PERMITS, /* whatever is not known */
	FILTER_REFUSES, /* may refuse it, with an error, and does nothing else */
	FILTER_FORBIDS, /* may kill, tell somebody, or pretend */
};

enum filter_answer filter_asked(
        const struct sock_filter *program, uint32_t count, const struct filter_question *question);

#endif
