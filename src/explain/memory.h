/*
 * The memory that the arguments of a system call lead to, for those who explain it. Where nobody
 * knows it, explanations show addresses.
 */
#ifndef BUGNET_EXPLAIN_MEMORY_H
#define BUGNET_EXPLAIN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct explained_memory {
	/* Returns how much of it was there; the rest is zero. NULL: no memory is known. */
	size_t (*read)(void *context, uint64_t address, void *to, size_t size);
	void *context;
};

#endif
