/*
 * Which memory a system call makes anew. Recording empties the shadow there, replay
 * its memory: what the thread saw there before says nothing about what it will see,
 * and memory that was just mapped is zero, as an empty shadow is. Both sides must
 * forget the same, so both ask here.
 */
#ifndef BUGNET_TARGET_FORGET_H
#define BUGNET_TARGET_FORGET_H

#include <stdint.h>
#include <sys/syscall.h>

struct forgotten {
	uint64_t start, end;
};

#define FORGET_ERROR(result) ((result) > -4096ul)
#define FORGET_DONTNEED      4

/* Arguments as in rdi, rsi, rdx, r10, r8, r9. Only whole pages; end <= start: nothing. */
static inline struct forgotten forgotten_by(uint64_t number, const uint64_t arguments[6], uint64_t result)
{
	uint64_t size = (arguments[1] + 0xfff) & ~0xffful;

	if (FORGET_ERROR(result))
		return (struct forgotten){0, 0};
	switch (number) {
	case __NR_mmap:
		return (struct forgotten){result, result + size};
	case __NR_munmap:
		return (struct forgotten){arguments[0], arguments[0] + size};
	case __NR_madvise:
		if (arguments[2] != FORGET_DONTNEED)
			break;
		return (struct forgotten){arguments[0], arguments[0] + size};
	default:
		break;
	}
	return (struct forgotten){0, 0};
}

#endif
