#include "record/stats.h"

#include "recording/names.h"
#include "target/layout.h"

void stats_add_space(struct engine_counters *counters, const struct space *space)
{
	const uint64_t *from = (const uint64_t *)&space->counters;
	uint64_t *to = (uint64_t *)&counters->spaces;

	for (size_t i = 0; i < sizeof space->counters / sizeof *from; i++)
		to[i] += from[i];
	for (unsigned i = 0; i < space->segment_count; i++)
		counters->cache_bytes += space->segments[i].code_used;
}

/* For each space that ever logged whole pages, see target/pages.c. */
void stats_print_pages(const struct space *space, FILE *file)
{
	static const char *const reasons[] = {
	        [LEAVES_FOR_START] = "shared memory at the start",
	        [LEAVES_FOR_FILE] = "a file that ends within its mapping",
	        [LEAVES_FOR_CODE] = "code on a page that is written to",
	        [LEAVES_FOR_INSTRUCTION] = "an instruction",
	        [LEAVES_FOR_MAPPINGS] = "its many mappings",
	        [LEAVES_FOR_SIZE] = "the many pages that it touches",
	        [LEAVES_FOR_SIGNAL] = "a signal",
	        [LEAVES_FOR_STACK] = "a stack at its limit",
	};
	char name[NAME_TEXT_SIZE];
	uint64_t why = space->compares_for;

	if (!why)
		return;
	fprintf(file, "bugnet: loads compared from %lu on, for %s\n", space->compares_from,
	        why & LEAVES_FOR_CALL ? syscall_name(why & ~(uint64_t)LEAVES_FOR_CALL, name) : reasons[why]);
}

void stats_print(const struct engine_counters *c, FILE *file)
{
	const struct {
		const char *name;
		uint64_t value;
		const char *unit;
	} lines[] = {
	        {"program images", c->images, ""},
	        {"cache copies", c->copies, ""},
	        {"requests", c->spaces.requests, ""},
	        {"regions", c->spaces.regions, ""},
	        {"regions made ahead", c->spaces.ahead, ""},
	        {"regions taken over", c->spaces.shared, ""},
	        {"blocks", c->spaces.blocks, ""},
	        {"instructions translated", c->spaces.instructions, ""},
	        {"links", c->spaces.links, ""},
	        {"indirect entries", c->spaces.indirect_entries, ""},
	        {"regions invalidated", c->spaces.invalidated, ""},
	        {"regions revived", c->spaces.revived, ""},
	        {"writes to code pages", c->spaces.write_faults, ""},
	        {"self-checking pages", c->spaces.self_check_pages, ""},
	        {"code cache", c->cache_bytes / 1024, " KB"},
	        {"time translating", c->spaces.translate_nanoseconds / 1000, " us"},
	        {"instructions refused", c->refused, ""},
	        {"threads released", c->released, ""},
	        {"threads watched anew", c->returned, ""},
	        {"cache begun anew", c->spaces.resets, ""},
	        {"cache full", c->spaces.full, ""},
	};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		fprintf(file, "bugnet: %-24s %12lu%s\n", lines[i].name, lines[i].value, lines[i].unit);
	fflush(file);
}
