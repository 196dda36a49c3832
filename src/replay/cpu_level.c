#include "replay/cpu_level.h"

#include <stdio.h>
#include <string.h>

/* The level that a recording names: 1 to 4, or 0 when it names none of them. */
static unsigned recorded_level(const char *text)
{
	static const char prefix[] = "x86-64";

	if (strncmp(text, prefix, sizeof prefix - 1) != 0)
		return 0;
	text += sizeof prefix - 1;
	if (*text == '\0')
		return 1;
	return text[0] == '-' && text[1] == 'v' && text[2] >= '1' && text[2] <= '4' && text[3] == '\0'
	               ? (unsigned)(text[2] - '0')
	               : 0;
}

static unsigned own_level(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("x86-64-v4"))
		return 4;
	if (__builtin_cpu_supports("x86-64-v3"))
		return 3;
	return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
}

bool cpu_level_suffices(const struct meta *meta, char *why, size_t why_size)
{
	const char *level = meta_text(meta, META_CPU_LEVEL), *cpu = meta_text(meta, META_CPU);
	unsigned needed = level ? recorded_level(level) : 0, own = own_level();

	if (needed <= own)
		return true;
	snprintf(why, why_size,
	        "it was recorded for a processor of level %s (on %s), and this one has only x86-64-v%u; "
	        "replay it on "
	        "a newer processor, or record with a lower --cpu",
	        level, cpu ? cpu : "one that it does not name", own);
	return false;
}
