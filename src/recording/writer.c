#include "recording/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/packing.h"

static enum recording_status fail(struct writer *writer, enum recording_status status)
{
	writer->error = (struct recording_error){.status = status, .offset = writer->size};
	return status;
}

static enum recording_status fail_system(struct writer *writer)
{
	writer->error = (struct recording_error){RECORDING_SYSTEM, errno, writer->size};
	return RECORDING_SYSTEM;
}

/* ---- names ---- */

/*
 * Where the file will be: behind symbolic links, if it exists. Renaming over a device
 * would remove the device, so that is refused.
 */
static enum recording_status find_path(struct writer *writer, const char *path)
{
	struct stat status;

	if (stat(path, &status)) {
		writer->path = strdup(path);
	} else if (!S_ISREG(status.st_mode)) {
		return fail(writer, RECORDING_NOT_REGULAR);
	} else {
		writer->path = realpath(path, NULL);
		if (!writer->path && errno != ENOMEM)
			return fail_system(writer);
	}
	return writer->path ? RECORDING_OK : fail(writer, RECORDING_MEMORY);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* DIRECTORY/NAME.partial-XXXXXX, of a name that may be as long as names can be. */
static enum recording_status make_temporary(struct writer *writer)
{
	static const char suffix[] = ".partial-XXXXXX";
	const char *name = base_name(writer->path);
	int directory_length = (int)(name - writer->path);
	int name_length = (int)strnlen(name, NAME_MAX + 1 - sizeof suffix);

	if (asprintf(&writer->temporary, "%.*s%.*s%s", directory_length, writer->path, name_length, name,
	            suffix) < 0) {
		writer->temporary = NULL;
		return fail(writer, RECORDING_MEMORY);
	}
	writer->fd = mkostemp(writer->temporary, O_CLOEXEC); /* mode 0600 */
	return writer->fd >= 0 ? RECORDING_OK : fail_system(writer);
}

/* ---- writing ---- */

static bool write_at(struct writer *writer, uint64_t offset, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t written = pwrite(writer->fd, bytes, size, (off_t)offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		bytes += written;
		offset += (size_t)written;
		size -= (size_t)written;
	}
	return true;
}

/* Half a section is taken off again, so that the file ends with a whole one. */
static enum recording_status append(
        struct writer *writer, const uint8_t *header, size_t header_size, const uint8_t *bytes, size_t size)
{
	if (write_at(writer, writer->size, header, header_size) &&
	        write_at(writer, writer->size + header_size, bytes, size)) {
		writer->size += header_size + size;
		return RECORDING_OK;
	}
	enum recording_status status = fail_system(writer);
	/* if not even that works, readers notice that the half section's end is missing */
	int cut = ftruncate(writer->fd, (off_t)writer->size);
	(void)cut;
	return status;
}

enum recording_status writer_init(struct writer *writer, const char *path, uint64_t optional_features)
{
	return writer_init_required(writer, path, 0, optional_features);
}

enum recording_status writer_init_required(
        struct writer *writer, const char *path, uint64_t required_features, uint64_t optional_features)
{
	const struct container_header header = {
	        .size = CONTAINER_HEADER_SIZE,
	        .version = CONTAINER_VERSION,
	        .minimum_reader = CONTAINER_MINIMUM_READER,
	        .required = required_features | CONTAINER_REQUIRED_SORTED,
	        .optional = optional_features,
	};
	uint8_t bytes[CONTAINER_HEADER_SIZE];

	*writer = (struct writer){.fd = -1, .level = WRITER_DEFAULT_LEVEL};
	container_header_encode(&header, bytes);
	enum recording_status status = find_path(writer, path);
	if (!status)
		status = make_temporary(writer);
	if (!status)
		status = append(writer, bytes, sizeof bytes, NULL, 0);
	if (status)
		writer_deinit(writer);
	return status;
}

void writer_deinit(struct writer *writer)
{
	if (writer->fd >= 0) {
		close(writer->fd);
		if (writer->temporary)
			unlink(writer->temporary);
	}
	writer->fd = -1;
	free(writer->path);
	free(writer->temporary);
	writer->path = writer->temporary = NULL;
	buffer_deinit(&writer->index);
	buffer_deinit(&writer->packed);
}

/* ---- sections ---- */

static enum recording_status remember(struct writer *writer, uint64_t offset, const uint8_t *header)
{
	buffer_u64(&writer->index, offset);
	buffer_bytes(&writer->index, header, SECTION_HEADER_SIZE);
	return writer->index.failed ? fail(writer, RECORDING_MEMORY) : RECORDING_OK;
}

enum recording_status writer_add_stored(
        struct writer *writer, const struct section *section, const uint8_t *stored)
{
	uint8_t header[SECTION_HEADER_SIZE];
	uint64_t offset = writer->size;

	section_header_encode(section, header);
	enum recording_status status = append(writer, header, sizeof header, stored, section->stored_size);
	return status ? status : remember(writer, offset, header);
}

enum recording_status writer_add(
        struct writer *writer, const struct section *what, const void *bytes, size_t size)
{
	struct section section = *what;

	bytes = section_pack(&section, bytes, size, writer->level, &writer->packed);
	return writer_add_stored(writer, &section, bytes);
}

/* ---- the end ---- */

/* The new name is on the disk when its directory is; some file systems cannot say so. */
static enum recording_status sync_directory(struct writer *writer)
{
	const char *name = base_name(writer->path);
	char directory[PATH_MAX];

	snprintf(directory, sizeof directory, "%.*s", (int)(name - writer->path), writer->path);
	int fd = open(*directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? RECORDING_OK
		                       : fail_system(writer); /* it may be written but not read */
	enum recording_status status = RECORDING_OK;
	if (fsync(fd) && errno != EINVAL)
		status = fail_system(writer);
	close(fd);
	return status;
}

static bool give_name(const struct writer *writer)
{
	if (!writer->careful)
		return rename(writer->temporary, writer->path) == 0;
	if (renameat2(AT_FDCWD, writer->temporary, AT_FDCWD, writer->path, RENAME_NOREPLACE) == 0)
		return true;
	/* A file system that knows no such thing. */
	return errno == EINVAL && link(writer->temporary, writer->path) == 0 &&
	       unlink(writer->temporary) == 0;
}

static enum recording_status publish(struct writer *writer)
{
	if (fsync(writer->fd) || !give_name(writer))
		return fail_system(writer);
	free(writer->temporary);
	writer->temporary = NULL;
	return sync_directory(writer);
}

enum recording_status writer_finish(struct writer *writer)
{
	const struct section what = {.type = SECTION_INDEX, .codec = CODEC_NONE};
	uint8_t tail[INDEX_TAIL_SIZE];
	size_t entries = writer->index.size;

	index_tail_encode(writer->size, tail);
	buffer_bytes(&writer->index, tail, sizeof tail);
	if (writer->index.failed)
		return fail(writer, RECORDING_MEMORY);
	enum recording_status status = writer_add(writer, &what, writer->index.bytes, entries + sizeof tail);
	writer->index.size = entries;
	return status ? status : publish(writer);
}

enum recording_status writer_keep(struct writer *writer)
{
	return writer->temporary ? publish(writer) : RECORDING_OK;
}
