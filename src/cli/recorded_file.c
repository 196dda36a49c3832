#include "cli/recorded_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/packed_file.h"

static bool same_build_id(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

enum recorded_file_state recorded_file_check(const struct codelog_file *file, int fd)
{
	struct stat status;
	uint64_t checksum;

	if (fd < 0 || fstat(fd, &status))
		return RECORDED_FILE_MISSING;
	if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != file->size)
		return RECORDED_FILE_CHANGED;
	if (file->has_checksum) {
		if (!file_checksum(fd, &checksum))
			return RECORDED_FILE_MISSING;
		return checksum == file->checksum ? RECORDED_FILE_SAME : RECORDED_FILE_CHANGED;
	}
	struct build_id here = build_id_of(fd);
	if (!same_build_id(&here, &file->build_id))
		return RECORDED_FILE_CHANGED;
	return here.size ? RECORDED_FILE_SAME : RECORDED_FILE_UNKNOWN;
}

static int unpack(struct recording *recording, uint32_t number)
{
	int fd = memfd_create("recorded", MFD_CLOEXEC);

	if (fd >= 0 && !packed_file_read(&recording->reader, number, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int recorded_file_open(struct recording *recording, const struct codelog_file *file)
{
	int fd = -1;

	if (reader_find(&recording->reader, SECTION_FILE, file->number, NULL))
		fd = unpack(recording, file->number);
	if (fd >= 0)
		return fd;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (recorded_file_check(file, fd) == RECORDED_FILE_SAME)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
