#include "replay/code_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/packed_file.h"

#define WAY_OUT                                                                                              \
	"; give the right one with --sysroot or --binary, or pack the recording where its files are "        \
	"('bugnet pack')"

struct search {
	struct reader *reader;
	const struct code_files_options *options;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static bool fail(const struct search *search, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(search->why, search->why_size, format, arguments);
	va_end(arguments);
	return false;
}

/* ---- is it the file? ---- */

/* "build-id 3f2a...", or what else can be said of a file. */
static void describe(const struct build_id *id, uint64_t size, char *text, size_t text_size)
{
	char digits[BUILD_ID_TEXT_SIZE];

	build_id_text(id, digits);
	if (id->size)
		snprintf(text, text_size, "build-id %s", digits);
	else
		snprintf(text, text_size, "%lu bytes and no build-id", size);
}

static bool same_build_id(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static bool verify(const struct search *search, const struct codelog_file *file, const char *path, int fd)
{
	char recorded[BUILD_ID_TEXT_SIZE + 32], found[BUILD_ID_TEXT_SIZE + 32];
	struct build_id id = build_id_of(fd);
	struct stat status;
	uint64_t checksum = 0;

	if (fstat(fd, &status) < 0)
		return fail(search, "%s: %s", path, strerror(errno));
	describe(&file->build_id, file->size, recorded, sizeof recorded);
	if (!S_ISREG(status.st_mode))
		return fail(search, "recorded with %s, %s, but %s is not a regular file" WAY_OUT, file->path,
		        recorded, path);
	describe(&id, (uint64_t)status.st_size, found, sizeof found);
	if (!same_build_id(&id, &file->build_id) || (uint64_t)status.st_size != file->size)
		return fail(search, "recorded with %s, %s, but the file here has %s" WAY_OUT, file->path,
		        recorded, strcmp(recorded, found) ? found : "another size");
	if (!file->has_checksum)
		return true;
	if (!file_checksum(fd, &checksum))
		return fail(search, "%s: %s", path, strerror(errno));
	if (checksum != file->checksum)
		return fail(search,
		        "recorded with %s, %s, but the file here, %s, has another content (checksum %016lx, "
		        "recorded %016lx)" WAY_OUT,
		        file->path, recorded, found, checksum, file->checksum);
	return true;
}

/* ---- where is it? ---- */

/* From inside the recording; -1: not there, -2: reported. */
static int open_packed(const struct search *search, const struct codelog_file *file)
{
	int fd = memfd_create("bugnet", MFD_CLOEXEC);
	char text[128];

	if (fd < 0) {
		fail(search, "no memory for a packed file: %s", strerror(errno));
		return -2;
	}
	enum recording_status status = packed_file_read(search->reader, file->number, fd);
	if (status == RECORDING_OK)
		return fd;
	close(fd);
	if (status == RECORDING_MISSING)
		return -1;
	fail(search, "the packed file %s: %s", file->path,
	        recording_error_text(&search->reader->error, text, sizeof text));
	return -2;
}

static void find_path(const struct search *search, const struct codelog_file *file, char path[PATH_MAX])
{
	const struct code_files_options *options = search->options;

	if (options->binary && options->program && strcmp(options->program, file->path) == 0)
		snprintf(path, PATH_MAX, "%s", options->binary);
	else
		snprintf(path, PATH_MAX, "%s%s", options->sysroot ? options->sysroot : "", file->path);
}

static int open_file(const struct search *search, const struct codelog_file *file)
{
	char path[PATH_MAX], recorded[BUILD_ID_TEXT_SIZE + 32];
	int fd = open_packed(search, file);

	if (fd == -2)
		return -1;
	if (fd >= 0) {
		snprintf(path, sizeof path, "%s (packed)", file->path);
	} else {
		find_path(search, file, path);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0) {
			describe(&file->build_id, file->size, recorded, sizeof recorded);
			fail(search, "recorded with %s, %s, but %s: %s" WAY_OUT, file->path, recorded, path,
			        strerror(errno));
			return -1;
		}
	}
	if (verify(search, file, path, fd))
		return fd;
	close(fd);
	return -1;
}

static bool map_file(const struct search *search, const struct codelog_file *file, struct code_file *mapped)
{
	int fd = open_file(search, file);

	if (fd < 0)
		return false;
	mapped->size = file->size;
	mapped->bytes = file->size ? mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (mapped->bytes != MAP_FAILED)
		return true;
	mapped->bytes = NULL;
	return fail(search, "%s: cannot be mapped: %s", file->path, strerror(errno));
}

bool code_files_open(struct code_files *files, struct reader *reader, const struct codelog *log,
        const struct code_history *history, const struct code_files_options *options, char *why,
        size_t why_size)
{
	struct search search = {reader, options, why, why_size};

	*files = (struct code_files){
	        .files = calloc(log->count + 1, sizeof *files->files), .count = log->count};
	if (!files->files)
		return fail(&search, "out of memory");
	for (uint32_t i = 0; i < history->count; i++) {
		const struct code_piece *piece = &history->pieces[i];
		const struct codelog_file *file = codelog_find(log, piece->file);
		if (piece->file == EVENT_FILE_NONE)
			continue;
		if (!file)
			return fail(&search,
			        "its code history names file %u, which its code log does not have",
			        piece->file);
		if (!files->files[piece->file].bytes && !map_file(&search, file, &files->files[piece->file]))
			return false;
	}
	return true;
}

void code_files_close(struct code_files *files)
{
	for (uint32_t i = 0; files->files && i < files->count; i++) {
		if (files->files[i].bytes)
			munmap((void *)files->files[i].bytes, files->files[i].size);
	}
	free(files->files);
	*files = (struct code_files){0};
}
