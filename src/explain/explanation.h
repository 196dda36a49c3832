/*
 * A system call in words: its arguments as strace prints them, by the table of signatures.
 *
 * What the kernel reads is explained at the call, what it wrote behind it: two steps, each with
 * the memory of its time.
 */
#ifndef BUGNET_EXPLAIN_EXPLANATION_H
#define BUGNET_EXPLAIN_EXPLANATION_H

#include "explain/memory.h"
#include "recording/event.h"
#include "recording/signatures.h"

struct explanation {
	uint64_t number;
	int64_t result;
	uint64_t arguments[SIGNATURE_ARGUMENTS];
	uint32_t size_given;              /* what a size that the kernel changes was before */
	unsigned count;                   /* of those that are shown */
	char *texts[SIGNATURE_ARGUMENTS]; /* NULL: out of memory, or not yet known */
	char *note;                       /* what strace puts behind the result, or NULL */
};

void explanation_begin(struct explanation *explanation, const struct event_registers *registers,
        int64_t result, const struct explained_memory *memory);
void explanation_end(struct explanation *explanation, const struct explained_memory *memory);
void explanation_deinit(struct explanation *explanation);

/* "-1 ENOENT (No such file or directory)", "0x8002 (flags O_RDWR|O_LARGEFILE)"; the caller frees it. */
char *explanation_result(const struct explanation *explanation);

#endif
