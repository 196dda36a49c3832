#include "record/processor.h"

#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void processor_name(char name[PROCESSOR_NAME_SIZE])
{
	unsigned words[12] = {0};
	char text[PROCESSOR_NAME_SIZE] = "";

	for (unsigned i = 0; i < 3; i++)
		__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
		        &words[4 * i + 3]);
	memcpy(text, words, sizeof words);
	strcpy(name, text + strspn(text, " "));
	for (size_t size = strlen(name); size && name[size - 1] == ' '; size--)
		name[size - 1] = 0;
}

char *processor_flags(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char *line = NULL, *flags = NULL;
	size_t room = 0;

	while (file && !flags && getline(&line, &room, file) > 0) {
		char *colon = strncmp(line, "flags", 5) ? NULL : strchr(line, ':');
		if (!colon)
			continue;
		line[strcspn(line, "\n")] = 0;
		flags = strdup(colon + 1 + (colon[1] == ' '));
	}
	free(line);
	if (file)
		fclose(file);
	return flags;
}
