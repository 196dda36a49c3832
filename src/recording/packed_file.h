/*
 * The mapped files themselves, packed into a recording so that it replays on a machine
 * that has none of them: pieces of bounded size, so that neither side needs the memory of
 * a whole file.
 */
#ifndef BUGNET_RECORDING_PACKED_FILE_H
#define BUGNET_RECORDING_PACKED_FILE_H

#include "recording/reader.h"
#include "recording/writer.h"

#define PACKED_FILE_PIECE (UINT64_C(4) << 20)

/* Add what can be read from `fd`, from its start, as file `number` of the code log. */
enum recording_status packed_file_write(struct writer *writer, uint32_t number, int fd);

/* Write file `number` to `fd`, from its start. RECORDING_MISSING if it is not inside. */
enum recording_status packed_file_read(struct reader *reader, uint32_t number, int fd);

#endif
