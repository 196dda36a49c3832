#include "replay/cpu_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/cpu_level.h"
#include "record/processor.h"

/* Instructions that a program which was offered all of its processor may have used, by their names in
 * /proc/cpuinfo. */
static const char *const instruction_sets[] = {"pni", "ssse3", "sse4_1", "sse4_2", "sse4a", "popcnt", "cx16",
        "movbe", "aes", "vaes", "pclmulqdq", "vpclmulqdq", "sha_ni", "gfni", "avx", "avx2", "avx_vnni",
        "f16c", "fma", "fma4", "xop", "tbm", "bmi1", "bmi2", "abm", "adx", "lahf_lm", "3dnowprefetch",
        "clflushopt", "clwb", "movdiri", "movdir64b", "serialize", "cldemote", "avx512f", "avx512dq",
        "avx512ifma", "avx512cd", "avx512bw", "avx512vl", "avx512vbmi", "avx512_vbmi2", "avx512_vnni",
        "avx512_bitalg", "avx512_vpopcntdq", "avx512_vp2intersect", "avx512_fp16", "avx512_bf16", "amx_tile"};

static bool has_word(const char *text, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		if ((at == text || at[-1] == ' ') && (!at[size] || at[size] == ' '))
			return true;
	}
	return false;
}

/* The first instructions that the recorded program was offered and this machine lacks, or NULL. */
static const char *missing_instructions(const struct meta *meta)
{
	const char *recorded = meta_text(meta, META_CPU_FLAGS), *missing = NULL;
	char *own = processor_flags();

	for (size_t i = 0; recorded && own && i < sizeof instruction_sets / sizeof *instruction_sets; i++) {
		if (has_word(recorded, instruction_sets[i]) && !has_word(own, instruction_sets[i])) {
			missing = instruction_sets[i];
			break;
		}
	}
	free(own);
	return missing;
}

bool cpu_level_suffices(const struct meta *meta, char *why, size_t why_size)
{
	const char *name = meta_text(meta, META_CPU_LEVEL), *cpu = meta_text(meta, META_CPU), *missing;
	unsigned level;

	if (!name)
		return true;
	if (!cpu_level_parse(name, &level)) {
		snprintf(why, why_size,
		        "it was recorded for a processor of level %s, and this bugnet knows %s and %s; "
		        "replay it with the "
		        "bugnet that recorded it",
		        name, cpu_level_name(CPU_LEVEL_LEAST), cpu_level_name(CPU_LEVEL_MOST));
		return false;
	}
	missing = level == CPU_NATIVE ? missing_instructions(meta) : cpu_level_missing(level);
	if (!missing)
		return true;
	snprintf(why, why_size,
	        "it was recorded for a processor of level %s (on %s), and this one lacks %s; replay it on "
	        "such a "
	        "processor, or record with a lower --cpu (this machine has x86-64-v%u)",
	        name, cpu ? cpu : "one that it does not name", missing, cpu_level_of_this_machine());
	return false;
}

bool cpu_was_wide(const struct meta *meta)
{
	const char *name = meta_text(meta, META_CPU_LEVEL), *flags = meta_text(meta, META_CPU_FLAGS);
	unsigned level;

	return name && cpu_level_parse(name, &level) && level == CPU_NATIVE && flags &&
	       has_word(flags, "avx512f");
}

bool cpu_is_other(const struct meta *meta)
{
	const char *recorded = meta_text(meta, META_CPU);
	char own[PROCESSOR_NAME_SIZE];

	processor_name(own);
	return recorded && strcmp(recorded, own) != 0;
}
