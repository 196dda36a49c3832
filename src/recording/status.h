/* What can go wrong with a recording, and how it is told. */
#ifndef BUGNET_RECORDING_STATUS_H
#define BUGNET_RECORDING_STATUS_H

#include <stddef.h>
#include <stdint.h>

enum recording_status {
	RECORDING_OK,
	RECORDING_SYSTEM,      /* the system refused; error->number says why */
	RECORDING_MEMORY,      /* out of memory */
	RECORDING_NOT_REGULAR, /* a device, directory, socket or pipe */
	RECORDING_FOREIGN,     /* not a recording */
	RECORDING_VERSION,     /* needs a newer reader */
	RECORDING_FEATURES,    /* uses features that this reader does not know */
	RECORDING_TRUNCATED,   /* ends before its end */
	RECORDING_DAMAGED,     /* a checksum is wrong */
	RECORDING_MALFORMED,   /* checksums are right, but the content makes no sense */
	RECORDING_TOO_LARGE,   /* beyond the reader's limit, or a size that does not fit its field */
	RECORDING_COMPRESSION, /* zstd refused */
	RECORDING_MISSING,     /* no such section */
};

struct recording_error {
	enum recording_status status;
	int number;      /* errno, with RECORDING_SYSTEM */
	uint64_t offset; /* where in the file, if that means anything */
};

/* "at byte 4160: a checksum is wrong", into the buffer, which it returns. */
const char *recording_error_text(const struct recording_error *error, char *buffer, size_t size);

/* What to do about a file that cannot be read: "; check the name", or "". */
const char *recording_next_step(const struct recording_error *error);

#endif
