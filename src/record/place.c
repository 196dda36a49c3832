/*
 * Placing a translation: room in the segment, fixups, and the records that lead
 * back to the program. What is placed stays where it is.
 */
#include "record/space_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define CODE_ALIGNMENT  32
#define ALLOCATION_STEP (1u << 18)

/* Memory is taken from the system in steps, so that its lack is an error here and not a SIGBUS. */
static int reserve(struct space *space, struct space_segment *segment, uint32_t end)
{
	if (end <= segment->allocated)
		return 0;
	uint32_t step = ALLOCATION_STEP;
	if (segment->allocated + step > segment->layout.code_size)
		step = segment->layout.code_size - segment->allocated;
	off_t offset = (off_t)(segment->layout.file + segment->layout.code + segment->allocated);
	if (fallocate(space->memfd, 0, offset, step) < 0)
		return -errno;
	segment->allocated += step;
	return reserve(space, segment, end);
}

/* The branch table that a fixup's value stands for. */
static unsigned table_of(const struct translation *translation, int64_t value)
{
	return value == TABLE_OF_JUMPS ? 0 : BRANCH_TABLE_OF(translation->pc + (uint64_t)value);
}

static int fix(struct space_segment *segment, unsigned number, const struct translation *translation,
        const struct fixup *fixup, uint32_t code)
{
	uint8_t *field = code_memory(segment, code + fixup->offset);
	uint64_t target;

	switch ((enum fixup_kind)fixup->kind) {
	case FIXUP_ABSOLUTE:
		target = translation->pc + fixup->value;
		memcpy(field, &target, 8);
		return 0;
	case FIXUP_NEGATED:
		target = -(translation->pc + fixup->value);
		memcpy(field, &target, 8);
		return 0;
	case FIXUP_PLACE: {
		uint32_t own = PLACE(number, table_of(translation, fixup->value), code + fixup->offset);
		memcpy(field, &own, 4);
		return 0;
	}
	case FIXUP_SLOT:
		target = segment->layout.base + LAYOUT_THREADS + 8 * (uint64_t)fixup->value;
		break;
	case FIXUP_ROUTINE:
		target = segment->routines[fixup->value];
		break;
	case FIXUP_TABLE_BASE:
		target = segment->layout.base + LAYOUT_INFO + 8 * table_of(translation, fixup->value);
		break;
	case FIXUP_NEAR:
		target = translation->pc + fixup->value;
		break;
	default:
		return -EINVAL;
	}
	int64_t distance = (int64_t)(target - (code_address(segment, code) + fixup->offset + fixup->end));
	if (distance != (int32_t)distance)
		return -ERANGE;
	int32_t short_distance = (int32_t)distance;
	memcpy(field, &short_distance, 4);
	return 0;
}

static void place_records(struct space_segment *segment, const struct translation *translation, uint32_t code)
{
	struct placed_record *records =
	        (struct placed_record *)(segment->memory + segment->layout.records) + segment->records_used;
	struct code_range *range =
	        (struct code_range *)(segment->memory + segment->layout.directory) + segment->directory_count;

	for (uint32_t i = 0; i < translation->record_count; i++) {
		const struct record *record = &translation->records[i];
		records[i] = (struct placed_record){(uint16_t)record->offset, (int16_t)record->executed,
		        record->state, (int32_t)record->pc};
	}
	*range = (struct code_range){translation->pc, code, translation->code_size, segment->records_used,
	        translation->record_count};
	segment->records_used += translation->record_count;
	segment->directory_count++;
	struct info *info = (struct info *)(segment->memory + LAYOUT_INFO);
	__atomic_store_n(&info->directory_count, segment->directory_count, __ATOMIC_RELEASE);
}

/* Room that only the small pieces get, without a source of their own: what leads out of code must always fit.
 */
static uint64_t reserved(const struct space_segment *segment)
{
	return segment->layout.code_size / 16;
}

static int exhaust(struct space *space, int error)
{
	space->exhausted = true;
	return error;
}

int place(struct space *space, unsigned number, const struct translation *translation, uint32_t *code)
{
	struct space_segment *segment = &space->segments[number];
	uint32_t start = (segment->code_used + CODE_ALIGNMENT - 1) & -CODE_ALIGNMENT;
	uint64_t end = (uint64_t)start + translation->code_size;

	if (end > segment->layout.code_size - (translation->source_count ? reserved(segment) : 0) ||
	        (segment->directory_count + 1) * sizeof(struct code_range) > segment->layout.directory_size ||
	        (segment->records_used + (uint64_t)translation->record_count) * sizeof(struct placed_record) >
	                segment->layout.records_size)
		return exhaust(space, -ENOSPC);
	int error = reserve(space, segment, (uint32_t)end);
	if (error)
		return exhaust(space, error);
	memcpy(code_memory(segment, start), translation->code, translation->code_size);
	for (uint32_t i = 0; i < translation->fixup_count; i++) {
		error = fix(segment, number, translation, &translation->fixups[i], start);
		if (error)
			return error;
	}
	segment->code_used = (uint32_t)end;
	place_records(segment, translation, start);
	*code = start;
	return 0;
}

void patch_rel32(const struct space_segment *segment, uint32_t offset, uint64_t target)
{
	typedef int32_t unaligned_int32 __attribute__((aligned(1), may_alias));
	volatile unaligned_int32 *field = (volatile unaligned_int32 *)code_memory(segment, offset);

	/* One store: translations keep such fields within 32 aligned bytes. */
	*field = (int32_t)(target - (code_address(segment, offset) + 4));
}
