#include "record/mapped_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "recording/event.h"

void mapped_files_deinit(struct mapped_files *files)
{
	for (uint32_t i = 0; i < files->files.count; i++) {
		if (files->files.items[i].fd >= 0)
			close(files->files.items[i].fd);
		free(files->files.items[i].path);
	}
	vector_free(&files->files);
	vector_free(&files->gone);
	free(files->pages);
	codelog_deinit(&files->log);
}

/* ---- which file ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool may_have_file(const struct mapping *mapping)
{
	return mapping->inode && !mapping->shared && mapping->path[0] == '/' &&
	       !ends_with(mapping->path, " (deleted)");
}

/*
 * Is the open file the mapped one? File systems that stand in for others show other
 * numbers in the maps than in stat. There the name has to do: bytes are compared before
 * anything is taken from the file, so a wrong one costs space, not truth.
 */
static bool is_mapped_one(int fd, const struct mapping *mapping)
{
	struct stat status;
	struct statfs system;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return false;
	if (status.st_ino == mapping->inode && major(status.st_dev) == mapping->device_major &&
	        minor(status.st_dev) == mapping->device_minor)
		return true;
	return !fstatfs(fd, &system) &&
	       (system.f_type == OVERLAYFS_SUPER_MAGIC || system.f_type == BTRFS_SUPER_MAGIC);
}

static int open_mapped(const char *path, const struct mapping *mapping)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || is_mapped_one(fd, mapping))
		return fd;
	close(fd);
	return -1;
}

/* By its name here, or by its name in the mount namespace of the program. */
static int open_file(const struct mapped_files *files, const struct mapping *mapping)
{
	char *inside;
	int fd = open_mapped(mapping->path, mapping);

	if (fd >= 0 || asprintf(&inside, "/proc/%d/root%s", files->pid, mapping->path) < 0)
		return fd;
	fd = open_mapped(inside, mapping);
	free(inside);
	return fd;
}

static bool add_to_log(struct mapped_files *files, const struct mapped_file *file)
{
	struct codelog_file entry = {.number = files->log.count, .path = file->path};
	struct stat status;

	if (fstat(file->fd, &status))
		return false;
	entry.device = status.st_dev;
	entry.inode = status.st_ino;
	entry.size = (uint64_t)status.st_size;
	entry.modified = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	entry.build_id = build_id_of(file->fd);
	return codelog_add(&files->log, &entry);
}

static uint32_t add(struct mapped_files *files, const struct mapping *mapping)
{
	struct mapped_file file = {
	        .device_major = mapping->device_major,
	        .device_minor = mapping->device_minor,
	        .inode = mapping->inode,
	        .path = strdup(mapping->path),
	        .fd = open_file(files, mapping),
	        .number = EVENT_FILE_NONE,
	};

	if (!file.path)
		abort();
	if (file.fd >= 0 && add_to_log(files, &file)) {
		file.number = files->log.count - 1;
		files->news = true;
	}
	vector_push(&files->files, file);
	return file.number;
}

uint32_t mapped_files_find(struct mapped_files *files, const struct mapping *mapping)
{
	if (!may_have_file(mapping))
		return EVENT_FILE_NONE;
	for (uint32_t i = 0; i < files->files.count; i++) {
		const struct mapped_file *file = &files->files.items[i];
		if (file->inode == mapping->inode && file->device_major == mapping->device_major &&
		        file->device_minor == mapping->device_minor && !strcmp(file->path, mapping->path))
			return file->number;
	}
	return add(files, mapping);
}

static struct mapped_file *by_number(const struct mapped_files *files, uint32_t number)
{
	for (uint32_t i = 0; i < files->files.count; i++) {
		if (files->files.items[i].number == number)
			return &files->files.items[i];
	}
	return NULL;
}

/* ---- its content ---- */

static uint32_t read_page(int fd, uint64_t offset, uint8_t bytes[MAPPED_FILES_PAGE])
{
	uint32_t done = 0;

	while (done < MAPPED_FILES_PAGE) {
		ssize_t got = pread(fd, bytes + done, MAPPED_FILES_PAGE - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (uint32_t)got;
	}
	return done;
}

/* The file's page at this offset, as it was when it was last read. */
static const struct mapped_page *get_page(struct mapped_files *files, int fd, uint64_t offset)
{
	if (!files->pages)
		files->pages = calloc(MAPPED_FILES_PAGES, sizeof *files->pages);
	if (!files->pages)
		abort();
	struct mapped_page *page =
	        &files->pages[(offset / MAPPED_FILES_PAGE + (uint64_t)fd * 37) % MAPPED_FILES_PAGES];
	if (page->file != fd + 1 || page->offset != offset) {
		page->file = fd + 1;
		page->offset = offset;
		page->size = read_page(fd, offset, page->bytes);
	}
	return page;
}

uint32_t mapped_files_read(
        struct mapped_files *files, uint32_t number, uint64_t offset, uint8_t *bytes, uint32_t size)
{
	const struct mapped_file *file = by_number(files, number);
	uint32_t done = 0;

	while (file && done < size) {
		uint32_t skip = (uint32_t)((offset + done) % MAPPED_FILES_PAGE), part = size - done;
		const struct mapped_page *page = get_page(files, file->fd, offset + done - skip);
		if (page->size <= skip)
			break;
		if (part > page->size - skip)
			part = page->size - skip;
		memcpy(bytes + done, page->bytes + skip, part);
		done += part;
	}
	return done;
}

bool mapped_files_have(
        struct mapped_files *files, uint32_t number, uint64_t offset, const uint8_t *bytes, uint32_t size)
{
	uint8_t there[MAPPED_FILES_PAGE];

	for (uint32_t part; size; size -= part, bytes += part, offset += part) {
		part = size < sizeof there ? size : (uint32_t)sizeof there;
		if (mapped_files_read(files, number, offset, there, part) != part ||
		        memcmp(there, bytes, part) != 0)
			return false;
	}
	return true;
}

uint64_t mapped_files_size(const struct mapped_files *files, uint32_t number)
{
	return codelog_find(&files->log, number)->size;
}

int mapped_files_fd(const struct mapped_files *files, uint32_t number)
{
	const struct mapped_file *file = by_number(files, number);

	return file ? file->fd : -1;
}

/* ---- its mappings ---- */

static uint32_t protection_of(const struct mapping *mapping)
{
	return (mapping->readable ? PROT_READ : 0u) | (mapping->writable ? PROT_WRITE : 0u) |
	       (mapping->executable ? PROT_EXEC : 0u);
}

static bool is_known(const struct codelog_file *file, const struct codelog_mapping *mapping)
{
	for (uint32_t i = 0; i < file->mapping_count; i++) {
		const struct codelog_mapping *known = &file->mappings[i];
		if (known->address == mapping->address && known->length == mapping->length &&
		        known->offset == mapping->offset && known->protection == mapping->protection)
			return true;
	}
	return false;
}

static void note_one(struct mapped_files *files, uint32_t number, const struct mapping *mapping)
{
	struct codelog_file *file = codelog_find(&files->log, number);
	const struct codelog_mapping noted = {
	        .address = mapping->start,
	        .length = mapping->end - mapping->start,
	        .offset = mapping->offset,
	        .order = files->order,
	        .protection = protection_of(mapping),
	};

	if (is_known(file, &noted))
		return;
	if (!codelog_add_mapping(file, &noted))
		abort();
	files->order++;
	files->news = true;
}

void mapped_files_note(struct mapped_files *files, uint32_t number, const struct maps *maps)
{
	const struct mapped_file *file = by_number(files, number);

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		if (mapping->inode == file->inode && mapping->device_major == file->device_major &&
		        mapping->device_minor == file->device_minor && !strcmp(mapping->path, file->path))
			note_one(files, number, mapping);
	}
}

/* ---- mappings that go ---- */

static void remove_gone(
        struct mapped_files *files, struct codelog_file *file, uint64_t start, uint64_t end, uint32_t as_of)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < file->mapping_count; i++) {
		struct codelog_mapping mapping = file->mappings[i];
		if (mapping.address >= start && mapping.address + mapping.length <= end)
			vector_push(&files->gone, (struct gone_mapping){file->number, mapping, as_of});
		else
			file->mappings[kept++] = mapping;
	}
	file->mapping_count = kept;
}

void mapped_files_gone(struct mapped_files *files, uint64_t start, uint64_t end, uint32_t as_of)
{
	for (uint32_t i = 0; i < files->log.count; i++)
		remove_gone(files, &files->log.files[i], start, end, as_of);
}

/* ---- news ---- */

bool mapped_files_news(struct mapped_files *files, struct buffer *buffer)
{
	struct codelog news = {0};

	if (!files->news)
		return false;
	files->news = false;
	news.files = calloc(files->log.count, sizeof *news.files);
	if (!news.files)
		abort();
	for (uint32_t i = 0; i < files->log.count; i++) {
		struct codelog_file part = files->log.files[i];
		struct mapped_file *file = by_number(files, i);
		if (i < files->told && file->mappings_told == part.mapping_count)
			continue;
		part.mappings += file->mappings_told;
		part.mapping_count -= file->mappings_told;
		file->mappings_told += part.mapping_count;
		news.files[news.count++] = part;
	}
	files->told = files->log.count;
	codelog_encode(&news, buffer);
	free(news.files); /* what is in it belongs to the log */
	return true;
}
