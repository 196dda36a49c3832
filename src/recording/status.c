#include "recording/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
        [RECORDING_OK] = "no error",
        [RECORDING_SYSTEM] = "the system refused",
        [RECORDING_MEMORY] = "out of memory",
        [RECORDING_NOT_REGULAR] = "not a regular file",
        [RECORDING_FOREIGN] = "not a bugnet recording",
        [RECORDING_VERSION] = "made by a newer bugnet, which is needed to read it",
        [RECORDING_FEATURES] = "uses features of a newer bugnet, which is needed to read it",
        [RECORDING_TRUNCATED] = "the file was cut off",
        [RECORDING_DAMAGED] = "a checksum is wrong",
        [RECORDING_MALFORMED] = "the content makes no sense",
        [RECORDING_TOO_LARGE] = "larger than is allowed",
        [RECORDING_COMPRESSION] = "zstd cannot handle it",
        [RECORDING_MISSING] = "there is no such section",
};

const char *recording_error_text(const struct recording_error *error, char *buffer, size_t size)
{
	if (error->status == RECORDING_SYSTEM)
		snprintf(buffer, size, "%s", strerror(error->number));
	else if (error->offset)
		snprintf(buffer, size, "at byte %" PRIu64 ": %s", error->offset, texts[error->status]);
	else
		snprintf(buffer, size, "%s", texts[error->status]);
	return buffer;
}

const char *recording_next_step(const struct recording_error *error)
{
	switch (error->status) {
	case RECORDING_SYSTEM:
		return error->number == EACCES || error->number == EPERM
		               ? "; ask its owner to let you read it"
		               : "; check the name";
	case RECORDING_NOT_REGULAR:
	case RECORDING_FOREIGN:
		return "; give a file that 'bugnet record' made";
	case RECORDING_TRUNCATED:
	case RECORDING_DAMAGED:
	case RECORDING_MALFORMED:
		return "; take another copy of it";
	default:
		return "";
	}
}
