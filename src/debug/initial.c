#include "debug/initial.h"

#include <elf.h>
#include <string.h>

bool initial_is_known(const struct recorded *recorded)
{
	const struct section *first = recorded->timeline.stretches[0];
	uint64_t parent;

	return stretch_thread(first) == 0 && first->first == 0 &&
	       !meta_number(&recorded->meta, META_FORKED_FROM, &parent);
}

static const Elf64_Phdr *headers_of(const struct code_file *file, unsigned *count)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->bytes;

	if (!file->bytes || file->size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(Elf64_Phdr) ||
	        head->e_phoff > file->size || head->e_phoff % 8 ||
	        (file->size - head->e_phoff) / sizeof(Elf64_Phdr) < head->e_phnum)
		return NULL;
	*count = head->e_phnum;
	return (const Elf64_Phdr *)(file->bytes + head->e_phoff);
}

/* How far the file was moved from where its headers say, as a piece of its code tells. */
static bool distance_of(
        const Elf64_Phdr *headers, unsigned count, const struct code_piece *piece, uint64_t *distance)
{
	for (unsigned i = 0; i < count; i++) {
		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X) ||
		        piece->offset - (headers[i].p_offset & -4096ul) >= headers[i].p_filesz + 4096)
			continue;
		*distance = piece->address - (piece->offset - headers[i].p_offset + headers[i].p_vaddr);
		return true;
	}
	return false;
}

static bool byte_of_file(
        const struct code_file *file, const struct code_piece *piece, uint64_t address, uint8_t *byte)
{
	unsigned count;
	uint64_t distance;
	const Elf64_Phdr *headers = headers_of(file, &count);

	if (!headers || !distance_of(headers, count, piece, &distance))
		return false;
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = address - distance - headers[i].p_vaddr;
		if (headers[i].p_type != PT_LOAD || at >= headers[i].p_memsz)
			continue;
		uint64_t offset = headers[i].p_offset + at;
		*byte = at < headers[i].p_filesz && offset < file->size ? file->bytes[offset] : 0;
		return true;
	}
	return false;
}

uint64_t initial_word(const struct recorded *recorded, uint64_t address)
{
	const struct code_history *history = &recorded->history;
	uint64_t word = 0;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct code_piece *piece = &history->pieces[i];
		bool repeated = false;
		if (piece->file == EVENT_FILE_NONE || piece->file >= recorded->files.count)
			continue;
		for (uint32_t k = 0; k < i && !repeated; k++)
			repeated = history->pieces[k].file == piece->file;
		for (unsigned k = 0; k < 8 && !repeated; k++) {
			uint8_t byte = 0;
			if (!byte_of_file(&recorded->files.files[piece->file], piece, address + k, &byte))
				break;
			word |= (uint64_t)byte << 8 * k;
		}
	}
	return word;
}
