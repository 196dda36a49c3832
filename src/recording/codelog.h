/*
 * The code log: every file that the program mapped, how to know it again, and where it
 * was. Numbers of files are what map events refer to.
 */
#ifndef BUGNET_RECORDING_CODELOG_H
#define BUGNET_RECORDING_CODELOG_H

#include "recording/build_id.h"
#include "recording/reader.h"
#include "recording/writer.h"

struct codelog_mapping {
	uint64_t address;
	uint64_t length;
	uint64_t offset;     /* in the file */
	uint64_t order;      /* ascending with time, across all files */
	uint32_t protection; /* PROT_* */
};

struct codelog_file {
	uint32_t number;
	char *path;
	uint64_t device, inode;
	uint64_t size;
	int64_t modified; /* ns since 1970 */
	struct build_id build_id;
	bool has_checksum; /* else the file could not be read */
	uint64_t checksum; /* xxh64 of the content */
	struct codelog_mapping *mappings;
	uint32_t mapping_count;
};

struct codelog {
	struct codelog_file *files; /* files[n] has number n */
	uint32_t count;
};

void codelog_deinit(struct codelog *log);

/* The file with this number, or NULL. */
struct codelog_file *codelog_find(const struct codelog *log, uint32_t number);

/*
 * Add a copy of the file with its mappings. A number that is there already only gains
 * mappings, and the checksum; any other number becomes the next one. False means out of
 * memory.
 */
bool codelog_add(struct codelog *log, const struct codelog_file *file);
bool codelog_add_mapping(struct codelog_file *file, const struct codelog_mapping *mapping);

void codelog_encode(const struct codelog *log, struct buffer *buffer);
enum recording_status codelog_write(struct writer *writer, const struct codelog *log);

/* Add what the bytes, or all the recording's sections of this kind, say. */
enum recording_status codelog_decode(struct codelog *log, const uint8_t *bytes, size_t size);
enum recording_status codelog_read(struct reader *reader, struct codelog *log);

#endif
