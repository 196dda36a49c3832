#include "debug/images.h"

#include <string.h>

#define PAGE 4096ul

static const Elf64_Phdr *headers_of(const struct code_file *file, const Elf64_Ehdr **head)
{
	*head = (const Elf64_Ehdr *)file->bytes;
	if (!file->bytes || file->size < sizeof **head || memcmp((*head)->e_ident, ELFMAG, SELFMAG) ||
	        (*head)->e_ident[EI_CLASS] != ELFCLASS64 || (*head)->e_phentsize != sizeof(Elf64_Phdr) ||
	        (*head)->e_phoff > file->size || (*head)->e_phoff % 8 ||
	        (file->size - (*head)->e_phoff) / sizeof(Elf64_Phdr) < (*head)->e_phnum)
		return NULL;
	return (const Elf64_Phdr *)(file->bytes + (*head)->e_phoff);
}

/* How far the file was moved from where its headers say, as a piece of its code tells. */
static bool distance_of(
        const Elf64_Phdr *headers, unsigned count, const struct code_piece *piece, uint64_t *distance)
{
	for (unsigned i = 0; i < count; i++) {
		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X) ||
		        piece->offset - (headers[i].p_offset & -PAGE) >= headers[i].p_filesz + PAGE)
			continue;
		*distance = piece->address - (piece->offset - headers[i].p_offset + headers[i].p_vaddr);
		return true;
	}
	return false;
}

static bool is_listed(const struct images *images, const struct codelog_file *file, uint64_t distance)
{
	for (uint32_t i = 0; i < images->items.count; i++) {
		if (images->items.items[i].file == file && images->items.items[i].distance == distance)
			return true;
	}
	return false;
}

static void add(struct images *images, const struct code_piece *piece, const char *program)
{
	const struct recorded *recorded = images->recorded;
	const Elf64_Ehdr *head;
	struct image image = {.file = codelog_find(&recorded->codelog, piece->file),
	        .bytes = &recorded->files.files[piece->file],
	        .loaded = true,
	        .start = UINT64_MAX};
	const Elf64_Phdr *headers = headers_of(image.bytes, &head);

	if (!image.file || !headers || !distance_of(headers, head->e_phnum, piece, &image.distance) ||
	        is_listed(images, image.file, image.distance))
		return;
	image.entry = head->e_entry + image.distance;
	image.header_count = head->e_phnum;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		uint64_t start = headers[i].p_vaddr + image.distance, end = start + headers[i].p_memsz;
		if (headers[i].p_type == PT_DYNAMIC)
			image.dynamic = start;
		if (headers[i].p_type != PT_LOAD)
			continue;
		if (head->e_phoff - headers[i].p_offset < headers[i].p_filesz)
			image.headers = start + head->e_phoff - headers[i].p_offset;
		image.start = start < image.start ? start : image.start;
		image.end = end > image.end ? end : image.end;
	}
	image.program = program && strcmp(program, image.file->path) == 0;
	vector_push(&images->items, image);
}

void images_find(struct images *images, const struct recorded *recorded)
{
	const char *program = meta_text(&recorded->meta, META_PROGRAM);
	bool found = false;

	*images = (struct images){.recorded = recorded};
	for (uint32_t i = 0; i < recorded->history.count; i++) {
		const struct code_piece *piece = &recorded->history.pieces[i];
		if (piece->file != EVENT_FILE_NONE && piece->file < recorded->files.count)
			add(images, piece, program);
	}
	/* The path that was executed may be a link to the file: then it is the one that is no library. */
	for (uint32_t i = 0; i < images->items.count; i++)
		found |= images->items.items[i].program;
	for (uint32_t i = 0; i < images->items.count && !found; i++) {
		const Elf64_Ehdr *head = (const Elf64_Ehdr *)images->items.items[i].bytes->bytes;
		const char *base = strrchr(images->items.items[i].file->path, '/');
		bool library = base && (strstr(base, ".so") || strncmp(base, "/ld-", 4) == 0);
		found = head->e_type == ET_EXEC || !library;
		images->items.items[i].program = found;
	}
}

void images_deinit(struct images *images)
{
	vector_free(&images->items);
}

enum image_part images_read(const struct images *images, uint64_t address, uint8_t *byte)
{
	for (uint32_t i = 0; i < images->items.count; i++) {
		const struct image *image = &images->items.items[i];
		const Elf64_Ehdr *head;
		if (!image->loaded || address < (image->start & -PAGE) ||
		        address >= ((image->end + PAGE - 1) & -PAGE))
			continue;
		const Elf64_Phdr *headers = headers_of(image->bytes, &head);
		for (unsigned k = 0; k < head->e_phnum; k++) {
			uint64_t at = address - image->distance - headers[k].p_vaddr;
			uint64_t offset = headers[k].p_offset + at;
			bool in_file = at < headers[k].p_filesz && offset < image->bytes->size,
			     writable = headers[k].p_flags & PF_W;
			if (headers[k].p_type != PT_LOAD || at >= headers[k].p_memsz ||
			        !(in_file || writable))
				continue;
			*byte = in_file ? image->bytes->bytes[offset] : 0;
			return writable ? IMAGE_INITIAL : IMAGE_CONSTANT;
		}
	}
	return IMAGE_NOTHING;
}

void images_each_segment(const struct images *images,
        void (*see)(void *context, const struct image *image, const Elf64_Phdr *header), void *context)
{
	for (uint32_t i = 0; i < images->items.count; i++) {
		const struct image *image = &images->items.items[i];
		const Elf64_Ehdr *head;
		const Elf64_Phdr *headers = headers_of(image->bytes, &head);
		for (unsigned k = 0; k < head->e_phnum; k++) {
			if (headers[k].p_type == PT_LOAD)
				see(context, image, &headers[k]);
		}
	}
}

const struct image *images_program(const struct images *images)
{
	for (uint32_t i = 0; i < images->items.count; i++) {
		if (images->items.items[i].program)
			return &images->items.items[i];
	}
	return NULL;
}

const Elf64_Phdr *image_header(const struct image *image, uint32_t type)
{
	const Elf64_Ehdr *head;
	const Elf64_Phdr *headers = headers_of(image->bytes, &head);

	for (unsigned i = 0; headers && i < head->e_phnum; i++) {
		if (headers[i].p_type == type)
			return &headers[i];
	}
	return NULL;
}
