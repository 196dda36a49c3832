#include "record/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOOKED_AT (64u << 10) /* bytes of one call's output */
#define VECTORS   64

static size_t read_memory(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
	ssize_t got = pread(memory->mem_fd, bytes, size, (off_t)address);

	return got < 0 ? 0 : (size_t)got;
}

void memory_text(const struct memory *memory, uint64_t address, char *text, size_t size)
{
	size_t got = 0;

	/* byte by byte at a page's edge: what lies behind it need not be there */
	while (got + 1 < size) {
		size_t part = 4096 - (address + got) % 4096;
		if (part > size - 1 - got)
			part = size - 1 - got;
		size_t read = read_memory(memory, address + got, text + got, part);
		if (!read || memchr(text + got, 0, read)) {
			got += strnlen(text + got, read);
			break;
		}
		got += read;
	}
	text[got] = 0;
}

/* Returns how much there is. */
static size_t read_vectors(
        const struct memory *memory, uint64_t address, uint64_t count, char *bytes, size_t size)
{
	struct iovec vectors[VECTORS];
	size_t total = 0;

	if (count > VECTORS)
		count = VECTORS;
	count = read_memory(memory, address, vectors, count * sizeof *vectors) / sizeof *vectors;
	for (uint64_t i = 0; i < count && total < size; i++) {
		size_t part = vectors[i].iov_len < size - total ? vectors[i].iov_len : size - total;
		total += read_memory(memory, (uint64_t)(uintptr_t)vectors[i].iov_base, bytes + total, part);
	}
	return total;
}

bool output_is_written_by(uint64_t number)
{
	switch (number) {
	case SYS_write:
	case SYS_pwrite64:
	case SYS_sendto:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
		return true;
	}
	return false;
}

static size_t read_output(const struct memory *memory, const uint64_t call[3], char *bytes, size_t size)
{
	if (call[0] == SYS_write || call[0] == SYS_pwrite64 || call[0] == SYS_sendto)
		return read_memory(memory, call[1], bytes, call[2] < size ? call[2] : size);
	return read_vectors(memory, call[1], call[2], bytes, size);
}

static struct output_line *line_of(struct output_lines *lines, uint32_t descriptor)
{
	for (uint32_t i = 0; i < lines->lines.count; i++) {
		if (lines->lines.items[i].descriptor == descriptor)
			return &lines->lines.items[i];
	}
	uint32_t last = vector_push(&lines->lines, (struct output_line){.descriptor = descriptor});
	return &lines->lines.items[last];
}

static void keep_unfinished(struct output_line *line, const char *text)
{
	size_t size = strlen(text), skipped = size < OUTPUT_LINE ? 0 : size - OUTPUT_LINE + 1;

	memcpy(line->text, text + skipped, size - skipped + 1);
}

bool output_matches(struct output_lines *lines, uint32_t descriptor, const regex_t *pattern,
        const struct memory *memory, const uint64_t call[3], char *text, size_t size)
{
	struct output_line *unfinished = line_of(lines, descriptor);
	size_t before = strlen(unfinished->text);
	char *bytes = malloc(before + LOOKED_AT + 1);
	bool matches = false;

	if (!bytes)
		return false;
	memcpy(bytes, unfinished->text, before);
	size_t got = before + read_output(memory, call, bytes + before, LOOKED_AT);
	bytes[got] = 0;
	for (size_t i = before; i < got; i++)
		bytes[i] = bytes[i] ? bytes[i] : ' '; /* the pattern is for text */
	for (char *rest = bytes, *line; (line = strsep(&rest, "\n"));) {
		if ((rest || *line) && !matches && !unfinished->found &&
		        regexec(pattern, line, 0, NULL, 0) == 0) {
			matches = unfinished->found = true;
			snprintf(text, size, "wrote '%s'", line);
		}
		if (rest)
			unfinished->found = false;
		else
			keep_unfinished(unfinished, line);
	}
	free(bytes);
	return matches;
}
