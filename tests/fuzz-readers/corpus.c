/*
 * readers-corpus DIRECTORY: gives every input of the fuzzer's corpus to the readers, as it is, cut off at
 * every length, and with every bit of it flipped, one at a time. They may refuse it; they may not crash, hang
 * or allocate much.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAXIMUM 65536
#define SECONDS       10 /* for one input */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Nothing that small needs more at once. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=64:detect_leaks=1";
}

/* A copy of just that size, so that whoever reads beyond its end is found out. */
static void try(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		errx(1, "out of memory");
	memcpy(copy, bytes, size);
	alarm(SECONDS);
	LLVMFuzzerTestOneInput(copy, size);
	alarm(0);
	free(copy);
}

static unsigned long try_all(uint8_t *bytes, size_t size)
{
	unsigned long count = 1;

	try(bytes, size);
	for (size_t length = 0; length < size; length++, count++)
		try(bytes, length);
	for (size_t i = 0; i < 8 * size; i++, count++) {
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		try(bytes, size);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	return count;
}

int main(int argc, char **argv)
{
	static uint8_t bytes[INPUT_MAXIMUM];
	DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
	unsigned long files = 0, inputs = 0;
	struct dirent *entry;

	if (!directory)
		err(2, "usage: readers-corpus DIRECTORY");
	while ((entry = readdir(directory))) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!file)
			continue;
		size_t size = fread(bytes, 1, sizeof bytes, file);
		fclose(file);
		inputs += try_all(bytes, size);
		files++;
	}
	closedir(directory);
	printf("%lu inputs from %lu files\n", inputs, files);
	return files ? 0 : 1;
}
