/*
 * The linker has put the program's variables right below the thread pointer. Where those of a library are the
 * dynamic linker has decided; it has told the library's own code, by relocations of two kinds:
 *
 *	R_X86_64_TPOFF64    the distance of a variable from the thread pointer, the same in every thread
 *	R_X86_64_DTPMOD64   the library's number in the thread's vector of modules (DTV): fs:[8] points to it,
 *and it has 16 bytes for each number, the first 8 of which point to the variables
 *
 * So nothing has to be known of the dynamic linker's own structures, whose layout is private, and what
 * the program's code has just loaded is known in a recording that does not begin with the program, too.
 */
#include "debug/tls.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "record/why.h"

#define DTV_SLOT_BYTES  16ul
#define DTV_AT          8ul  /* in what the FS base points to */
#define LINK_MAP_LD     16ul /* l_ld, in the public part of struct link_map */
#define DTV_UNALLOCATED UINT64_MAX

struct relocations {
	uint64_t start, size, symbols; /* addresses */
};

/* What the file has there, whether the program can write to it or not. */
static bool read_file(const struct images *images, uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (images_read(images, address + i, (uint8_t *)to + i) == IMAGE_NOTHING)
			return false;
	}
	return true;
}

static bool read_word(struct debugger *d, uint32_t thread, uint64_t address, uint64_t *word)
{
	return debugger_read(d, thread, address, word, sizeof *word) == sizeof *word;
}

static const struct image *find_image(struct debugger *d, uint32_t thread, uint64_t module)
{
	const struct images *images = debugger_images(d);
	uint64_t dynamic;

	if (!module)
		return images_program(images);
	for (uint32_t i = 0; i < images->items.count; i++) {
		if (images->items.items[i].loaded && images->items.items[i].start == module)
			return &images->items.items[i];
	}
	for (uint32_t i = 0; i < images->items.count && read_word(d, thread, module + LINK_MAP_LD, &dynamic);
	        i++) {
		if (images->items.items[i].loaded && images->items.items[i].dynamic &&
		        images->items.items[i].dynamic == dynamic)
			return &images->items.items[i];
	}
	return NULL;
}

static bool find_relocations(
        const struct images *images, const struct image *image, struct relocations *found)
{
	Elf64_Dyn entry;

	*found = (struct relocations){0};
	for (uint64_t at = image->dynamic;
	        at && read_file(images, at, &entry, sizeof entry) && entry.d_tag != DT_NULL;
	        at += sizeof entry) {
		if (entry.d_tag == DT_RELA)
			found->start = entry.d_un.d_ptr + image->distance;
		else if (entry.d_tag == DT_RELASZ)
			found->size = entry.d_un.d_val;
		else if (entry.d_tag == DT_SYMTAB)
			found->symbols = entry.d_un.d_ptr + image->distance;
	}
	return found->start && found->symbols;
}

/* Where in the library's variables the one of the relocation is; false: it is one of another library. */
static bool own_variable(const struct images *images, const struct relocations *relocations,
        const Elf64_Rela *r, uint64_t *offset)
{
	uint64_t number = ELF64_R_SYM(r->r_info);
	Elf64_Sym symbol = {0};

	if (number &&
	        (!read_file(images, relocations->symbols + number * sizeof symbol, &symbol, sizeof symbol) ||
	                symbol.st_shndx == SHN_UNDEF))
		return false;
	*offset = symbol.st_value + (uint64_t)r->r_addend;
	return true;
}

/* Where the variables of a library begin. False: what has been relocated is not known here. */
static bool find_block(
        struct debugger *d, uint32_t thread, const struct image *image, uint64_t base, uint64_t *block)
{
	struct relocations relocations;
	uint64_t value, offset, vector;
	Elf64_Rela r;

	if (!find_relocations(&d->images, image, &relocations))
		return false;
	for (uint64_t at = relocations.start; at + sizeof r <= relocations.start + relocations.size;
	        at += sizeof r) {
		if (!read_file(&d->images, at, &r, sizeof r))
			return false;
		uint64_t type = ELF64_R_TYPE(r.r_info), place = r.r_offset + image->distance;
		if ((type != R_X86_64_TPOFF64 && type != R_X86_64_DTPMOD64) ||
		        !own_variable(&d->images, &relocations, &r, &offset) ||
		        !read_word(d, thread, place, &value) || !value)
			continue;
		if (type == R_X86_64_TPOFF64) {
			*block = base + value - offset;
			return true;
		}
		if (read_word(d, thread, base + DTV_AT, &vector) &&
		        read_word(d, thread, vector + value * DTV_SLOT_BYTES, block) && *block &&
		        *block != DTV_UNALLOCATED)
			return true;
	}
	return false;
}

bool tls_address(struct debugger *d, uint32_t thread, uint64_t module, uint64_t offset, uint64_t *address,
        char *why, size_t why_size)
{
	if (!debugger_recall(d, why, why_size))
		return false;
	const struct standing *standing = debugger_look(d, thread, why, why_size);
	const struct image *image = standing ? find_image(d, thread, module) : NULL;
	const Elf64_Phdr *header = image ? image_header(image, PT_TLS) : NULL;

	if (!standing)
		return false;
	uint64_t base = standing->state.fs_base, block;
	if (!header)
		return fail_because(why, why_size, "there are no thread-local variables in it");
	if (!base)
		return fail_because(why, why_size, "the thread has no thread-local variables yet");
	if (image->program) {
		uint64_t align = header->p_align ? header->p_align : 1;
		block = base - (header->p_memsz + align - 1) / align * align;
	} else if (!find_block(d, thread, image, base, &block)) {
		return fail_because(why, why_size,
		        "where %s has its thread-local variables is not known here", image->file->path);
	}
	*address = block + offset;
	return true;
}
