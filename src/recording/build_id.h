/*
 * What identifies a file's content: the build id that the linker left in it, and a
 * checksum of all of it. The file may be anything; it need not even be ELF.
 */
#ifndef BUGNET_RECORDING_BUILD_ID_H
#define BUGNET_RECORDING_BUILD_ID_H

#include <stdbool.h>
#include <stdint.h>

#define BUILD_ID_MAXIMUM 64

struct build_id {
	uint8_t bytes[BUILD_ID_MAXIMUM];
	uint32_t size; /* 0: none */
};

/* The build id of the file; none where there is none, or where it cannot be read. */
struct build_id build_id_of(int fd);

/* "3f2a91bc...", with room for BUILD_ID_TEXT_SIZE, or "" for none. */
#define BUILD_ID_TEXT_SIZE (2 * BUILD_ID_MAXIMUM + 1)
void build_id_text(const struct build_id *id, char text[BUILD_ID_TEXT_SIZE]);

/* xxh64, seed 0, of the file's content. False with errno set if it cannot be read. */
bool file_checksum(int fd, uint64_t *checksum);

#endif
