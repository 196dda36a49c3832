#include "debug/origins.h"

#include <sys/syscall.h>

static bool is_within(uint64_t address, uint64_t start, uint64_t size)
{
	return address - start < size;
}

/* The latest call before that stamp which gave this address; stamps of calls are those of their time. */
static const struct step *find_mapping(
        const struct accesses *accesses, uint64_t address, uint64_t stamp, uint32_t *thread)
{
	const struct step *found = NULL;

	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++) {
			const struct step *step = &accesses->threads[t].steps.items[i];
			if (step->kind != STEP_CALL || step->address != SYS_mmap ||
			        (int64_t)step->before < 0 || step->stamp > stamp ||
			        !is_within(address, step->before, step->arguments[1]))
				continue;
			if (!found || step->stamp > found->stamp) {
				found = step;
				*thread = t;
			}
		}
	}
	return found;
}

/* Between where the heap began and where it has ever ended. */
static bool is_heap(const struct accesses *accesses, uint64_t address)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++) {
			const struct step *step = &accesses->threads[t].steps.items[i];
			if (step->kind != STEP_CALL || step->address != SYS_brk)
				continue;
			low = step->before < low ? step->before : low;
			high = step->before > high ? step->before : high;
		}
	}
	return low <= address && address < high;
}

struct origin origin_find(const struct accesses *accesses, uint64_t address, uint64_t stamp)
{
	uint32_t maker = 0;
	const struct step *step = find_mapping(accesses, address, stamp, &maker);

	if (!step)
		return (struct origin){.kind = is_heap(accesses, address) ? ORIGIN_HEAP : ORIGIN_UNKNOWN};
	struct origin origin = {.kind = ORIGIN_MAPPED,
	        .start = step->before,
	        .size = step->arguments[1],
	        .thread = accesses->threads[maker].id,
	        .position = step->position};
	/* The word that the kernel clears at a thread's end is above its stack, in the same memory. */
	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		const struct accessing_thread *thread = &accesses->threads[t];
		if (!thread->cleared || !is_within(thread->cleared, origin.start, origin.size) ||
		        thread->steps.items[0].stamp > stamp)
			continue;
		origin.kind = ORIGIN_STACK;
		origin.thread = thread->id;
	}
	return origin;
}
