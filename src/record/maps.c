#include "record/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file has no size; it is read until its end, at once so that it is one state of the process. */
static char *read_all(int fd)
{
	size_t size = 0, capacity = 1 << 16;
	char *text = malloc(capacity);

	while (text) {
		ssize_t n = pread(fd, text + size, capacity - size - 1, (off_t)size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = errno;
			free(text);
			errno = error;
			return NULL;
		}
		if (n == 0) {
			text[size] = 0;
			return text;
		}
		size += (size_t)n;
		if (capacity - size < 4096) {
			char *larger = realloc(text, capacity *= 2);
			if (!larger)
				free(text);
			text = larger;
		}
	}
	errno = ENOMEM;
	return NULL;
}

/* A number, and what follows it behind one separator. */
static const char *parse_number(const char *text, int base, uint64_t *value)
{
	char *end;

	*value = strtoul(text, &end, base);
	return *end ? end + 1 : end;
}

/* 7f12a000-7f12b000 r-xp 00001000 fe:00 12345   /path */
static bool parse_line(const char *line, struct mapping *mapping)
{
	uint64_t major, minor;
	const char *at = parse_number(parse_number(line, 16, &mapping->start), 16, &mapping->end);

	if (strnlen(at, 5) < 5)
		return false;
	mapping->readable = at[0] == 'r';
	mapping->writable = at[1] == 'w';
	mapping->executable = at[2] == 'x';
	mapping->shared = at[3] == 's';
	at = parse_number(at + 5, 16, &mapping->offset);
	at = parse_number(parse_number(at, 16, &major), 16, &minor);
	mapping->device_major = (uint32_t)major;
	mapping->device_minor = (uint32_t)minor;
	at = parse_number(at, 10, &mapping->inode);
	/* Memory that others may have mapped too: what they store shows in a private mapping until it is
	 * copied. */
	while (*at == ' ')
		at++;
	mapping->path = at;
	if (strncmp(at, "/memfd:", 7) == 0 || strncmp(at, "/dev/shm/", 9) == 0)
		mapping->shared = true;
	return true;
}

int maps_read(struct maps *maps, int fd)
{
	char *text = read_all(fd);
	if (!text)
		return -errno;

	free(maps->text);
	maps->text = text;
	maps->count = 0;
	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');
		char *next = *end ? end + 1 : end;
		*end = 0;
		if (maps->count == maps->capacity) {
			size_t capacity = maps->capacity ? maps->capacity * 2 : 64;
			struct mapping *larger = realloc(maps->mappings, capacity * sizeof *larger);
			if (!larger)
				return -ENOMEM;
			maps->mappings = larger;
			maps->capacity = capacity;
		}
		if (parse_line(line, &maps->mappings[maps->count]))
			maps->count++;
		line = next;
	}
	return 0;
}

void maps_deinit(struct maps *maps)
{
	free(maps->mappings);
	free(maps->text);
	*maps = (struct maps){0};
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (maps->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == maps->count || maps->mappings[low].start > address)
		return NULL;
	return &maps->mappings[low];
}
