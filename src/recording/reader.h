/*
 * Reading a recording file.
 *
 * The file may be cut off, damaged or hostile. Opening it finds its sections, up to where
 * it is whole; each section's bytes are checked when they are loaded. No header leads to
 * an allocation larger than the reader's limit, or than the stored bytes can account for.
 */
#ifndef BUGNET_RECORDING_READER_H
#define BUGNET_RECORDING_READER_H

#include "recording/container.h"
#include "recording/status.h"

#define READER_DEFAULT_LIMIT (UINT64_C(1) << 30) /* bytes of one section's content */

struct reader {
	int fd;
	uint64_t size;  /* of the file */
	uint64_t limit; /* may be set after opening */
	struct container_header header;
	struct section *sections; /* in the order of the file, without the index */
	size_t count;
	size_t capacity;
	bool indexed; /* found by the index, not one by one */
	/* Why there are no more sections: RECORDING_OK when the file is whole, else what is wrong behind
	 * them. */
	struct recording_error end;
	struct recording_error error; /* of the last call that failed */
};

/* Every function returns RECORDING_OK or reader->error.status. After a failure to open there is nothing to
 * deinit. */
enum recording_status reader_open(struct reader *reader, const char *path);
enum recording_status reader_open_fd(
        struct reader *reader, int fd); /* the reader closes it, also on failure */
void reader_deinit(struct reader *reader);

/* The first section of this type and id behind `after` (NULL: the first of all), or NULL. */
const struct section *reader_find(
        const struct reader *reader, enum section_type type, uint64_t id, const struct section *after);

/* A section's content, checked, in memory that the caller frees; section->raw_size bytes. */
enum recording_status reader_load(struct reader *reader, const struct section *section, uint8_t **bytes);

/* The bytes as they are stored, checked but not decompressed; section->stored_size bytes, the caller's too.
 */
enum recording_status reader_load_stored(
        struct reader *reader, const struct section *section, uint8_t **bytes);

/* For those who decode a section's content: note that it makes no sense. Returns the status. */
enum recording_status reader_fail(
        struct reader *reader, const struct section *section, enum recording_status status);

#endif
