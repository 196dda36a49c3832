#include "record/shadows.h"

#include <unistd.h>

bool shadows_read(const struct memory *memory, const struct space *space, struct process_memory *ours)
{
	off_t at = (off_t)(space->segments[0].layout.base + LAYOUT_PROCESS);

	return pread(memory->mem_fd, ours, sizeof *ours, at) == sizeof *ours &&
	       (space->mode != TRANSLATE_RECORD || ours->threads_ready <= MAX_RECORDED_THREADS) &&
	       ours->window_count <= PROCESS_WINDOWS && ours->fence_count <= MAX_FENCES &&
	       ours->veil_count <= MAX_VEILS;
}

static bool each_of(const struct range *ranges, uint32_t count, uint64_t distance,
        bool (*found)(void *context, struct range range), void *context)
{
	bool going = true;

	for (uint32_t i = 0; going && i < count; i++)
		going = found(context, shadow_range(ranges[i], distance));
	return going;
}

bool shadows_each(const struct memory *memory, const struct space *space, const struct process_memory *ours,
        bool (*found)(void *context, struct range range), void *context)
{
	const struct info *info = space_info(space, 0);
	uint64_t first = space->segments[0].layout.base + LAYOUT_THREADS + THREAD_SPARSE;
	bool going = true;

	for (uint32_t number = 1; going && number < ours->threads_ready; number++) {
		uint64_t distance = info->distances[number];
		struct sparse_shadow sparse;
		if (ours->expelled_bits[number / 64] >> (number & 63) & 1 && number < info->windowed) {
			/* What was there from the start; what came later may be somebody else's. */
			going = each_of(info->windows, info->window_count, distance, found, context);
			continue;
		}
		if (ours->unfit_bits[number / 64] >> (number & 63) & 1)
			continue;
		if (number < info->windowed)
			going = each_of(ours->windows, ours->window_count, distance, found, context);
		else
			going = pread(memory->mem_fd, &sparse, sizeof sparse, (off_t)(first + distance)) ==
			                sizeof sparse &&
			        sparse.count <= SPARSE_RANGES &&
			        each_of(sparse.ranges, sparse.count, distance, found, context);
	}
	return going;
}
