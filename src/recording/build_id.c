/*
 * The build id is in a note, and notes are found by program headers: files that are
 * mapped to be executed have those even when everything else was stripped. Nothing in the
 * file is believed: sizes are bounded before they are used, and reads that find less than
 * they should end the search.
 */
#include "recording/build_id.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define NOTES_MAXIMUM    65536 /* bytes of one segment's notes that are looked at */
#define SEGMENTS_MAXIMUM 512
#define CHUNK            65536

static bool read_all(int fd, void *bytes, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX - size && pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* ---- build id ---- */

static size_t align_up(size_t size, size_t alignment)
{
	return (size + alignment - 1) & ~(alignment - 1);
}

/* The build id among these notes. `alignment` is 4 or 8. */
static bool find_in_notes(const uint8_t *notes, size_t size, size_t alignment, struct build_id *id)
{
	Elf64_Nhdr note;

	while (size >= sizeof note) {
		memcpy(&note, notes, sizeof note);
		/* no sum of these overflows: the fields have 32 bits, size_t 64 */
		size_t description = align_up(sizeof note + note.n_namesz, alignment);
		size_t next = align_up(description + note.n_descsz, alignment);
		if (description + note.n_descsz > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
		        !memcmp(notes + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) &&
		        note.n_descsz <= BUILD_ID_MAXIMUM) {
			memcpy(id->bytes, notes + description, note.n_descsz);
			id->size = note.n_descsz;
			return true;
		}
		if (next > size)
			return false;
		notes += next;
		size -= next;
	}
	return false;
}

static bool find_in_segment(int fd, const Elf64_Phdr *segment, struct build_id *id)
{
	size_t size = segment->p_filesz < NOTES_MAXIMUM ? segment->p_filesz : NOTES_MAXIMUM;
	uint8_t *notes = malloc(size ? size : 1);
	bool found = notes && read_all(fd, notes, size, segment->p_offset) &&
	             find_in_notes(notes, size, segment->p_align == 8 ? 8 : 4, id);

	free(notes);
	return found;
}

static bool is_elf64(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_phentsize == sizeof(Elf64_Phdr);
}

struct build_id build_id_of(int fd)
{
	struct build_id id = {.size = 0};
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (!read_all(fd, &header, sizeof header, 0) || !is_elf64(&header))
		return id;
	for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MAXIMUM; i++) {
		if (header.e_phoff > INT64_MAX / 2 ||
		        !read_all(fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment))
			break;
		if (segment.p_type == PT_NOTE && find_in_segment(fd, &segment, &id))
			break;
	}
	return id;
}

void build_id_text(const struct build_id *id, char text[BUILD_ID_TEXT_SIZE])
{
	*text = 0;
	for (uint32_t i = 0; i < id->size; i++)
		snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
}

/* ---- checksum ---- */

static bool hash_file(int fd, XXH64_state_t *state, uint8_t *chunk)
{
	uint64_t offset = 0;

	for (;;) {
		ssize_t got = pread(fd, chunk, CHUNK, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		XXH64_update(state, chunk, (size_t)got);
		offset += (size_t)got;
	}
}

bool file_checksum(int fd, uint64_t *checksum)
{
	XXH64_state_t *state = XXH64_createState();
	uint8_t *chunk = malloc(CHUNK);
	bool done = false;

	errno = ENOMEM;
	if (state && chunk) {
		XXH64_reset(state, 0);
		done = hash_file(fd, state, chunk);
		*checksum = XXH64_digest(state);
	}
	free(chunk);
	XXH64_freeState(state);
	return done;
}
