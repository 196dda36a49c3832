/*
 * Writing a recording file.
 *
 * The file grows under a temporary name beside its final one, readable by its owner only:
 * a recording holds whatever the program had in memory. writer_finish gives it its name.
 * When something fails (a full disk), what was added before is still whole: the caller
 * may add something smaller, or writer_keep what there is, or writer_deinit to let it go.
 * A writer that is killed leaves the temporary file, which readers can read.
 *
 * The process should ignore SIGXFSZ: then a file-size limit is an error like others.
 */
#ifndef BUGNET_RECORDING_WRITER_H
#define BUGNET_RECORDING_WRITER_H

#include "recording/buffer.h"
#include "recording/container.h"
#include "recording/status.h"

#define WRITER_DEFAULT_LEVEL 3 /* of zstd */

struct writer {
	int fd;
	int level;       /* of zstd; may be set after writer_init */
	char *path;      /* the final name */
	char *temporary; /* NULL once there is nothing under this name */
	bool careful;    /* a file that has the final name already stays: writer_finish fails with EEXIST */
	uint64_t size;   /* of what is whole */
	struct buffer index;
	struct buffer packed; /* room for compressed bytes, used again and again */
	struct recording_error error;
};

/*
 * Every function returns RECORDING_OK or writer->error.status. After a failed
 * writer_init there is nothing to deinit.
 */
enum recording_status writer_init(struct writer *writer, const char *path, uint64_t optional_features);
/* The same for a file that not every reader understands. */
enum recording_status writer_init_required(
        struct writer *writer, const char *path, uint64_t required_features, uint64_t optional_features);

/* Removes the file unless it was finished or kept. */
void writer_deinit(struct writer *writer);

/*
 * Append a section: `what` gives type, codec, id, first and last. Bytes that zstd cannot
 * make smaller are stored as they are.
 */
enum recording_status writer_add(
        struct writer *writer, const struct section *what, const void *bytes, size_t size);

/* Append a section of another file: all of `section` but the offset holds, and the bytes are stored as they
 * are. */
enum recording_status writer_add_stored(
        struct writer *writer, const struct section *section, const uint8_t *stored);

/* Add the index, and give the file its name once it is on the disk. */
enum recording_status writer_finish(struct writer *writer);

/* After a failure: give the file its name with the sections that it has. */
enum recording_status writer_keep(struct writer *writer);

#endif
