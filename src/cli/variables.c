#include "cli/variables.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/atomic_lines.h"
#include "cli/recorded_file.h"

#define DEPTH 16 /* of types in types */

struct module {
	const char *path;
	Dwfl *dwfl;
	Dwfl_Module *module;
	uint64_t start, end; /* where the program had it, */
	uint64_t distance;   /* and how far from where its own headers say */
	struct atomic_members members;
};

struct variables {
	struct module *modules;
	size_t count;
};

/* ---- files ---- */

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

/* Where code that was run tells how far the file was moved. */
static bool place(struct module *module, const struct code_piece *piece)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module->module, &bias);
	size_t count;
	GElf_Phdr segment;
	bool found = false;

	if (!elf || elf_getphdrnum(elf, &count))
		return false;
	uint64_t low = UINT64_MAX, high = 0;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD)
			continue;
		if (piece->offset - (segment.p_offset & -4096ul) < segment.p_filesz + 4096 && !found) {
			module->distance =
			        piece->address - (piece->offset - segment.p_offset + segment.p_vaddr);
			found = segment.p_flags & PF_X;
		}
		low = segment.p_vaddr < low ? segment.p_vaddr : low;
		high = segment.p_vaddr + segment.p_memsz > high ? segment.p_vaddr + segment.p_memsz : high;
	}
	module->start = low + module->distance;
	module->end = high + module->distance;
	return found;
}

static void open_module(struct variables *variables, struct recording *recording,
        const struct codelog_file *file, const struct code_piece *piece)
{
	struct module module = {.path = file->path};
	int fd = recorded_file_open(recording, file);

	if (fd < 0)
		return;
	module.dwfl = dwfl_begin(&callbacks);
	if (!module.dwfl) {
		close(fd);
		return;
	}
	dwfl_report_begin(module.dwfl);
	module.module = dwfl_report_offline(module.dwfl, file->path, file->path, fd);
	dwfl_report_end(module.dwfl, NULL, NULL);
	if (!module.module)
		close(fd);
	if (module.module && place(&module, piece))
		variables->modules[variables->count++] = module;
	else
		dwfl_end(module.dwfl);
}

struct variables *variables_open(struct recording *recording)
{
	const struct code_history *code = &recording->code;
	struct variables *variables = calloc(1, sizeof *variables);

	if (!variables)
		return NULL;
	variables->modules = calloc(code->count + 1, sizeof *variables->modules);
	for (uint32_t i = 0; variables->modules && i < code->count; i++) {
		const struct code_piece *piece = &code->pieces[i];
		const struct codelog_file *file = piece->file == EVENT_FILE_NONE
		                                          ? NULL
		                                          : codelog_find(&recording->codelog, piece->file);
		bool known = !file;
		for (size_t k = 0; !known && k < variables->count; k++)
			known = !strcmp(variables->modules[k].path, file->path);
		if (!known)
			open_module(variables, recording, file, piece);
	}
	return variables;
}

void variables_close(struct variables *variables)
{
	for (size_t i = 0; i < variables->count; i++) {
		atomic_members_deinit(&variables->modules[i].members);
		dwfl_end(variables->modules[i].dwfl);
	}
	free(variables->modules);
	free(variables);
}

/* ---- names ---- */

static struct module *module_of(struct variables *variables, uint64_t address)
{
	for (size_t i = 0; i < variables->count; i++) {
		struct module *module = &variables->modules[i];
		if (address >= module->start && address < module->end)
			return module;
	}
	return NULL;
}

struct variable variables_find(struct variables *variables, uint64_t address)
{
	struct module *module = module_of(variables, address);
	GElf_Addr bias, offset = 0;
	GElf_Sym symbol;

	if (!module)
		return (struct variable){0};
	dwfl_module_getelf(module->module, &bias);
	const char *name = dwfl_module_addrinfo(
	        module->module, address - module->distance + bias, &offset, &symbol, NULL, NULL, NULL);
	return (struct variable){module->path, name, name ? offset : address - module->start};
}

/* ---- types ---- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, type);
}

static bool is_atomic_class(Dwarf_Die *type)
{
	const char *name = dwarf_diename(type);

	return name && (!strncmp(name, "atomic<", 7) || !strncmp(name, "__atomic_base<", 14) ||
	                       !strcmp(name, "atomic_flag"));
}

static bool is_atomic_at(Dwarf_Die *type, uint64_t offset, unsigned depth);

/* The member that lies there. */
static bool is_atomic_member(Dwarf_Die *type, uint64_t offset, unsigned depth)
{
	Dwarf_Die member, member_type;

	if (dwarf_child(type, &member))
		return false;
	do {
		Dwarf_Attribute attribute;
		Dwarf_Word at = 0, size;
		int tag = dwarf_tag(&member);
		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (dwarf_attr(&member, DW_AT_data_member_location, &attribute) &&
		        dwarf_formudata(&attribute, &at))
			continue;
		if (!type_of(&member, &member_type) || dwarf_aggregate_size(&member_type, &size) ||
		        offset - at >= size)
			continue;
		if (is_atomic_at(&member_type, offset - at, depth + 1))
			return true;
	} while (dwarf_siblingof(&member, &member) == 0);
	return false;
}

static bool is_atomic_at(Dwarf_Die *type, uint64_t offset, unsigned depth)
{
	Dwarf_Die inner;
	Dwarf_Word size;

	if (depth > DEPTH)
		return false;
	switch (dwarf_tag(type)) {
	case DW_TAG_atomic_type:
		return true;
	case DW_TAG_typedef:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
		return type_of(type, &inner) && is_atomic_at(&inner, offset, depth + 1);
	case DW_TAG_array_type:
		return type_of(type, &inner) && dwarf_aggregate_size(&inner, &size) == 0 && size &&
		       is_atomic_at(&inner, offset % size, depth + 1);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return is_atomic_class(type) || is_atomic_member(type, offset, depth);
	default:
		return false;
	}
}

/* Is this the variable that lies there? Then *atomic tells. */
static bool is_variable_at(Dwarf_Die *die, uint64_t address, bool *atomic)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *location;
	size_t length;
	Dwarf_Die type;
	Dwarf_Word size;

	if (!dwarf_attr_integrate(die, DW_AT_location, &attribute) ||
	        dwarf_getlocation(&attribute, &location, &length) || length != 1 ||
	        location[0].atom != DW_OP_addr || !type_of(die, &type) || dwarf_aggregate_size(&type, &size))
		return false;
	if (address - location[0].number >= size)
		return false;
	*atomic = is_atomic_at(&type, address - location[0].number, 0);
	return true;
}

/* Static variables may be inside functions and namespaces. */
static bool find_variable(Dwarf_Die *parent, uint64_t address, bool *atomic, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH || dwarf_child(parent, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_variable && is_variable_at(&die, address, atomic))
			return true;
		if ((tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace) &&
		        find_variable(&die, address, atomic, depth + 1))
			return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

bool variables_is_atomic(struct variables *variables, uint64_t address)
{
	struct module *module = module_of(variables, address);
	Dwarf_Addr bias;
	Dwarf *dwarf = module ? dwfl_module_getdwarf(module->module, &bias) : NULL;
	Dwarf_Off offset = 0, next;
	size_t header;
	bool atomic = false;

	if (!dwarf)
		return false;
	for (; dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0; offset = next) {
		Dwarf_Die unit;
		if (dwarf_offdie(dwarf, offset + header, &unit) &&
		        find_variable(&unit, address - module->distance, &atomic, 0))
			return atomic;
	}
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Of libstdc++, libc++ and Rust. */
static bool is_of_atomic_type(const char *source)
{
	static const char *const ends[] = {"/bits/atomic_base.h", "/bits/atomic_wait.h",
	        "/bits/shared_ptr_atomic.h", "/core/src/sync/atomic.rs"};
	const char *library = strstr(source, "/c++/");

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (ends_with(source, ends[i]))
			return true;
	}
	return library && (ends_with(library, "/atomic") || strstr(library, "/__atomic/"));
}

static const char *find_line(
        const struct module *module, uint64_t pc, Dwarf **dwarf, int *number, const char **directory)
{
	Dwarf_Addr bias;

	*dwarf = module ? dwfl_module_getdwarf(module->module, &bias) : NULL;
	Dwfl_Line *line = *dwarf ? dwfl_module_getsrc(module->module, pc - module->distance + bias) : NULL;
	if (!line)
		return NULL;
	*directory = dwfl_line_comp_dir(line);
	return dwfl_lineinfo(line, NULL, number, NULL, NULL, NULL);
}

bool variables_accesses_atomic(struct variables *variables, uint64_t pc)
{
	const char *directory;
	Dwarf *dwarf;
	int number;
	const char *source = find_line(module_of(variables, pc), pc, &dwarf, &number, &directory);

	return source && is_of_atomic_type(source);
}

bool variables_says_atomic(struct variables *variables, uint64_t pc)
{
	struct module *module = module_of(variables, pc);
	const char *directory;
	Dwarf *dwarf;
	int number;
	const char *source = find_line(module, pc, &dwarf, &number, &directory);

	if (!source)
		return false;
	if (!module->members.collected)
		atomic_members_collect(&module->members, dwarf);
	return atomic_line(&module->members, directory, source, number);
}
