#include "record/stats.h"

void stats_add_space(struct engine_counters *counters, const struct space *space)
{
	const uint64_t *from = (const uint64_t *)&space->counters;
	uint64_t *to = (uint64_t *)&counters->spaces;

	for (size_t i = 0; i < sizeof space->counters / sizeof *from; i++)
		to[i] += from[i];
	for (unsigned i = 0; i < space->segment_count; i++)
		counters->cache_bytes += space->segments[i].code_used;
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
