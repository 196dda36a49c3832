#include "recording/packed_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* As much of `size` bytes as the file has, or -1. */
static ssize_t read_piece(int fd, uint8_t *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, bytes + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static bool write_piece(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t written = pwrite(fd, bytes + done, size - done, (off_t)(offset + done));
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

/* The last piece is the one that is not full, if only for being empty: its absence shows. */
static enum recording_status write_pieces(struct writer *writer, uint32_t number, int fd, uint8_t *bytes)
{
	struct section what = {.type = SECTION_FILE, .codec = CODEC_ZSTD, .id = number};
	ssize_t size;

	do {
		size = read_piece(fd, bytes, PACKED_FILE_PIECE, what.first);
		if (size < 0) {
			writer->error = (struct recording_error){RECORDING_SYSTEM, errno, writer->size};
			return RECORDING_SYSTEM;
		}
		what.last = what.first + (uint64_t)size;
		enum recording_status status = writer_add(writer, &what, bytes, (size_t)size);
		if (status)
			return status;
		what.first = what.last;
	} while ((uint64_t)size == PACKED_FILE_PIECE);
	return RECORDING_OK;
}

enum recording_status packed_file_write(struct writer *writer, uint32_t number, int fd)
{
	uint8_t *bytes = malloc(PACKED_FILE_PIECE);

	if (!bytes) {
		writer->error = (struct recording_error){.status = RECORDING_MEMORY, .offset = writer->size};
		return RECORDING_MEMORY;
	}
	enum recording_status status = write_pieces(writer, number, fd, bytes);
	free(bytes);
	return status;
}

static enum recording_status unpack(struct reader *reader, const struct section *piece, int fd)
{
	uint8_t *bytes;
	enum recording_status status = reader_load(reader, piece, &bytes);

	if (status)
		return status;
	if (!write_piece(fd, bytes, piece->raw_size, piece->first)) {
		reader->error = (struct recording_error){RECORDING_SYSTEM, errno, piece->offset};
		status = RECORDING_SYSTEM;
	}
	free(bytes);
	return status;
}

enum recording_status packed_file_read(struct reader *reader, uint32_t number, int fd)
{
	const struct section *piece = reader_find(reader, SECTION_FILE, number, NULL);
	uint64_t expected = 0;

	for (; piece; piece = reader_find(reader, SECTION_FILE, number, piece)) {
		if (piece->first != expected || piece->raw_size > PACKED_FILE_PIECE ||
		        piece->last - piece->first != piece->raw_size)
			return reader_fail(reader, piece, RECORDING_MALFORMED);
		enum recording_status status = unpack(reader, piece, fd);
		if (status)
			return status;
		expected = piece->last;
		if (piece->raw_size < PACKED_FILE_PIECE)
			return RECORDING_OK;
	}
	reader->error = (struct recording_error){.status = RECORDING_MISSING};
	return RECORDING_MISSING;
}
