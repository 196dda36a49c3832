/*
 * translate(): discovery, liveness, lowering, and the parts of a translation
 * that are not code. Also the end of its life.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "translate/liveness.h"
#include "translate/lower.h"
#include "translate/position.h"
#include "translate/translate.h"

static void add_source(const struct region *region, struct translation *out, uint64_t pc,
        const uint8_t *bytes, unsigned size)
{
	struct source *source = out->source_count ? &out->sources[out->source_count - 1] : NULL;
	int64_t relative = (int64_t)(pc - region->pc);

	/* Made up by us, see fetch.h: nothing to compare with. */
	if (fetch_in_vsyscall_page(pc))
		return;
	if (!source || source->pc + source->size != relative) {
		source = &out->sources[out->source_count++];
		*source = (struct source){.pc = relative, .bytes = out->source_byte_count};
	}
	memcpy(out->source_bytes + out->source_byte_count, bytes, size);
	out->source_byte_count += size;
	source->size += size;
}

/* Copies the program bytes of each block, and those outside that it depends on; what follows each other makes
 * one stretch. */
static int copy_sources(const struct region *region, struct translation *out)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < region->block_count; i++)
		total += region->blocks[i].bytes;
	for (uint32_t i = 0; i < region->glance_count; i++)
		total += region->glances[i].length;
	out->sources = malloc((region->block_count + region->glance_count) * sizeof(*out->sources));
	out->source_bytes = malloc(total);
	if (!out->sources || !out->source_bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < region->block_count; i++) {
		const struct block *block = &region->blocks[i];

		for (uint32_t k = 0; k < block->count; k++) {
			const struct instruction *instruction = region_at(region, block, k);

			add_source(region, out, instruction->pc, instruction->bytes, instruction->length);
		}
	}
	for (uint32_t i = 0; i < region->glance_count; i++) {
		const struct glance *glance = &region->glances[i];

		add_source(region, out, glance->pc, glance->bytes, glance->length);
	}
	return 0;
}

/* Callers find the entry for pc itself first. */
static void put_first_entry_first(struct translation *out)
{
	for (uint32_t i = 0; i < out->entry_count; i++) {
		if (out->entries[i].pc == 0) {
			struct entry first = out->entries[i];

			out->entries[i] = out->entries[0];
			out->entries[0] = first;
			return;
		}
	}
}

/* Behind a store may be other code than what was read, and in a block that checks itself. */
static void distrust_code(struct region *region, bool all)
{
	for (uint32_t i = 0; region->self_check && i < region->block_count; i++)
		region_at(region, &region->blocks[i], 0)->use |= LIVE_ALL;
	for (uint32_t i = 0; i < region->instruction_count; i++)
		if (all || region->instructions[i].writes_memory)
			region->instructions[i].use |= LIVE_ALL;
}

int translate(const struct translate_request *request, struct translation *out)
{
	struct emitter emitter;
	struct region region;
	int error = region_discover(&region, request);

	*out = (struct translation){0};
	if (error)
		return error;
	emit_init(&emitter, out, request->pc);
	emitter.leaves = request->exact && request->mode != TRANSLATE_REPLAY;
	if (request_counts(request)) {
		if (request->whole_state || (request->writable && *request->writable))
			distrust_code(&region, request->whole_state);
		liveness_compute(&region);
		position_plan(&region, request->mode == TRANSLATE_REPLAY);
	}
	lower_region(&emitter, &region, request);
	emit_tail(&emitter, request->exact ? NULL : &region);
	if (!emitter.failed && copy_sources(&region, out) != 0)
		emitter.failed = true;
	out->callees = region.callees;
	out->callee_count = region.callee_count;
	region.callees = NULL;
	out->instruction_count = region.instruction_count;
	out->block_count = region.block_count;
	for (uint32_t i = 0; i < region.instruction_count; i++)
		out->approximates |= region.instructions[i].approximates;
	put_first_entry_first(out);
	region_deinit(&region);
	return emit_finish(&emitter);
}

void translation_free(struct translation *translation)
{
	free(translation->code);
	free(translation->fixups);
	free(translation->sites);
	free(translation->entries);
	free(translation->records);
	free(translation->sources);
	free(translation->source_bytes);
	free(translation->callees);
	*translation = (struct translation){0};
}
