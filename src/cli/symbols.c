/*
 * libdwfl reads symbols and line numbers, of the file itself or of its separate debug
 * file. It gets the file that was recorded: the one inside the recording if it was
 * packed, else the one of the same path, if it is still the same.
 */
#include "cli/symbols.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/demangle.h"
#include "cli/lines.h"
#include "cli/recorded_file.h"

/* ---- libdwfl ---- */

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

/* Where the file's byte at this offset was to be loaded, by its own headers. */
static bool address_of_offset(Elf *elf, uint64_t offset, GElf_Addr *address)
{
	size_t count;
	GElf_Phdr segment;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD)
			continue;
		if (offset - segment.p_offset < segment.p_filesz) {
			*address = offset - segment.p_offset + segment.p_vaddr;
			return true;
		}
	}
	return false;
}

static void look_up(Dwfl_Module *module, struct symbol *symbol)
{
	GElf_Addr bias, address, name_offset;
	GElf_Sym entry;
	Elf *elf = dwfl_module_getelf(module, &bias);

	if (!elf || !address_of_offset(elf, symbol->offset, &address))
		return;
	const char *name =
	        dwfl_module_addrinfo(module, address + bias, &name_offset, &entry, NULL, NULL, NULL);
	if (name) {
		symbol->name = demangle(name);
		symbol->name_offset = name_offset;
	}
	symbol->source =
	        line_find(module, address + bias, name ? address + bias - name_offset : 0, &symbol->line);
}

/* Takes the descriptor over. */
static void ask_libdwfl(int fd, struct symbol *symbol)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl) {
		close(fd);
		return;
	}
	dwfl_report_begin(dwfl);
	Dwfl_Module *module = dwfl_report_offline(dwfl, symbol->file, symbol->file, fd);
	dwfl_report_end(dwfl, NULL, NULL);
	if (module)
		look_up(module, symbol);
	else
		close(fd); /* no ELF file */
	dwfl_end(dwfl);
}

/* ---- which file ---- */

bool symbol_find(struct recording *recording, uint32_t thread, uint64_t position, uint64_t address,
        struct symbol *symbol)
{
	const struct code_piece *piece = code_history_find(&recording->code, thread, position, address);
	const struct codelog_file *file;

	*symbol = (struct symbol){0};
	if (!piece)
		return false;
	file = piece->file == EVENT_FILE_NONE ? NULL : codelog_find(&recording->codelog, piece->file);
	if (!file)
		return true;
	symbol->file = strdup(file->path);
	symbol->offset = piece->offset + (address - piece->address);
	int fd = symbol->file ? recorded_file_open(recording, file) : -1;
	if (fd >= 0)
		ask_libdwfl(fd, symbol);
	else
		symbol->changed = true;
	return true;
}

void symbol_deinit(struct symbol *symbol)
{
	free(symbol->file);
	free(symbol->name);
	free(symbol->source);
	*symbol = (struct symbol){0};
}

char *symbol_text(const struct symbol *symbol)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!symbol->file)
		fputs("code that the program made", out);
	else if (symbol->name && symbol->name_offset)
		fprintf(out, "%s+0x%" PRIx64, symbol->name, symbol->name_offset);
	else if (symbol->name)
		fputs(symbol->name, out);
	else
		fprintf(out, "%s+0x%" PRIx64, symbol->file, symbol->offset);
	if (symbol->source)
		fprintf(out, " (%s:%d)", symbol->source, symbol->line);
	else if (symbol->name)
		fprintf(out, " in %s", symbol->file);
	if (symbol->changed)
		fputs(", which is not the same file any more", out);
	return fclose(out) == 0 ? text : NULL;
}
