#include "debug/libraries.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug/live.h"

#define PAGE         4096ul
#define HEADERS_MOST 64u

static void add(struct libraries *libraries, struct library library, const char *path)
{
	library.path = strdup(path);
	if (!library.path)
		abort();
	vector_push(&libraries->items, library);
}

static int compare_starts(const void *a, const void *b)
{
	const struct library *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* ---- of a recording ---- */

static void find_recorded(struct libraries *libraries, struct debugger *d)
{
	const struct images *images = debugger_images(d);

	for (uint32_t i = 0; i < images->items.count; i++) {
		const struct image *image = &images->items.items[i];
		if (image->loaded || image->program)
			add(libraries,
			        (struct library){.start = image->start,
			                .distance = image->distance,
			                .dynamic = image->dynamic,
			                .program = image->program},
			        image->file->path);
	}
}

/* ---- of the program ---- */

struct line {
	uint64_t start, offset;
	bool executable;
	char path[PATH_MAX];
};

/* "7f00-7f01 r-xp 00001000 08:01 1234   /lib/libc.so.6" */
static bool parse(char *text, struct line *line)
{
	char access[8];
	int name = 0;

	text[strcspn(text, "\n")] = 0;
	if (sscanf(text, "%lx-%*x %7s %lx %*s %*s %n", &line->start, access, &line->offset, &name) < 3 ||
	        !name || text[name] != '/')
		return false;
	line->executable = access[2] == 'x';
	snprintf(line->path, sizeof line->path, "%s", text + name);
	return true;
}

/* What the headers of the file say, of which this is a mapping with code. */
static bool read_headers(const struct line *line, struct library *library)
{
	Elf64_Phdr headers[HEADERS_MOST];
	Elf64_Ehdr head;
	bool found = false;
	int fd = open(line->path, O_RDONLY | O_CLOEXEC);
	bool is_elf = fd >= 0 && pread(fd, &head, sizeof head, 0) == sizeof head &&
	              memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	              head.e_phentsize == sizeof *headers && head.e_phnum <= HEADERS_MOST;
	size_t size = is_elf ? head.e_phnum * sizeof *headers : 0;

	is_elf = is_elf && pread(fd, headers, size, (off_t)head.e_phoff) == (ssize_t)size;
	if (fd >= 0)
		close(fd);
	library->start = UINT64_MAX;
	for (unsigned i = 0; is_elf && i < head.e_phnum; i++) {
		const Elf64_Phdr *h = &headers[i];
		if (h->p_type == PT_DYNAMIC)
			library->dynamic = h->p_vaddr;
		if (h->p_type != PT_LOAD)
			continue;
		library->start = h->p_vaddr < library->start ? h->p_vaddr : library->start;
		if (!(h->p_flags & PF_X) || line->offset - (h->p_offset & -PAGE) >= h->p_filesz + PAGE)
			continue;
		library->distance = line->start - (line->offset - h->p_offset + h->p_vaddr);
		found = true;
	}
	library->start += library->distance;
	library->dynamic += library->dynamic ? library->distance : 0;
	return found;
}

static bool is_listed(const struct libraries *libraries, const struct library *library, const char *path)
{
	for (uint32_t i = 0; i < libraries->items.count; i++) {
		const struct library *other = &libraries->items.items[i];
		if (other->distance == library->distance && strcmp(other->path, path) == 0)
			return true;
	}
	return false;
}

static void find_mapped(struct libraries *libraries, int pid)
{
	char text[PATH_MAX + 128], path[64], program[PATH_MAX] = "";
	struct line line;

	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	if (readlink(path, program, sizeof program - 1) < 0)
		return;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(text, sizeof text, file)) {
		struct library library = {0};
		if (!parse(text, &line) || !line.executable || !read_headers(&line, &library) ||
		        is_listed(libraries, &library, line.path))
			continue;
		library.program = strcmp(line.path, program) == 0;
		add(libraries, library, line.path);
	}
	if (file)
		fclose(file);
}

void libraries_find(struct libraries *libraries, struct debugger *d)
{
	*libraries = (struct libraries){0};
	if (d->live && (d->now || !d->recorded))
		find_mapped(libraries, d->live->pid);
	else
		find_recorded(libraries, d);
	if (libraries->items.count)
		qsort(libraries->items.items, libraries->items.count, sizeof *libraries->items.items,
		        compare_starts);
}

void libraries_deinit(struct libraries *libraries)
{
	for (uint32_t i = 0; i < libraries->items.count; i++)
		free(libraries->items.items[i].path);
	vector_free(&libraries->items);
}
