#include "cli/atomic_lines.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16 /* of types in types */

/* ---- members ---- */

static bool is_atomic_type(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type = *die;

	for (unsigned i = 0; i < DEPTH; i++) {
		if (!dwarf_attr_integrate(&type, DW_AT_type, &attribute) ||
		        !dwarf_formref_die(&attribute, &type))
			return false;
		switch (dwarf_tag(&type)) {
		case DW_TAG_atomic_type:
			return true;
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_array_type:
			break;
		default:
			return false;
		}
	}
	return false;
}

static void collect_from(struct atomic_members *members, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth == DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		const char *name = dwarf_diename(&die);
		if (tag == DW_TAG_member && name && is_atomic_type(&die)) {
			members->names =
			        realloc(members->names, (members->count + 1) * sizeof *members->names);
			if (!members->names)
				abort();
			members->names[members->count++] = name;
		}
		if (tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type ||
		        tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block)
			collect_from(members, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

void atomic_members_collect(struct atomic_members *members, Dwarf *dwarf)
{
	Dwarf_Off offset = 0, next;
	size_t header;

	members->collected = true;
	for (; dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0; offset = next) {
		Dwarf_Die unit;
		if (dwarf_offdie(dwarf, offset + header, &unit))
			collect_from(members, &unit, 0);
	}
}

void atomic_members_deinit(struct atomic_members *members)
{
	free(members->names);
}

/* ---- lines ---- */

static bool is_function(const char *name, size_t size)
{
	static const char *const begins[] = {"__atomic_", "__sync_", "atomic_load", "atomic_store",
	        "atomic_exchange", "atomic_compare_exchange", "atomic_fetch_", "atomic_flag_",
	        "__c11_atomic_"};

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		size_t length = strlen(begins[i]);
		if (size >= length && !strncmp(name, begins[i], length))
			return true;
	}
	return false;
}

static bool is_member(const struct atomic_members *members, const char *name, size_t size)
{
	for (size_t i = 0; i < members->count; i++) {
		if (strlen(members->names[i]) == size && !strncmp(members->names[i], name, size))
			return true;
	}
	return false;
}

bool atomic_text(const struct atomic_members *members, const char *text)
{
	for (const char *at = text; *at;) {
		if (!isalpha((unsigned char)*at) && *at != '_') {
			at++;
			continue;
		}
		size_t size = 1;
		while (isalnum((unsigned char)at[size]) || at[size] == '_')
			size++;
		bool selected =
		        at > text && (at[-1] == '.' || (at > text + 1 && at[-1] == '>' && at[-2] == '-'));
		if (is_function(at, size) || (selected && is_member(members, at, size)))
			return true;
		at += size;
		while (isdigit((unsigned char)*at))
			at++;
	}
	return false;
}

bool atomic_line(const struct atomic_members *members, const char *directory, const char *source, int line)
{
	char *path = NULL, *text = NULL;
	size_t capacity = 0;
	bool atomic = false;

	if (asprintf(&path, "%s%s%s", *source == '/' || !directory ? "" : directory,
	            *source == '/' || !directory ? "" : "/", source) < 0)
		return false;
	FILE *file = fopen(path, "re");
	while (file && line > 0 && getline(&text, &capacity, file) >= 0) {
		if (--line == 0)
			atomic = atomic_text(members, text);
	}
	if (file)
		fclose(file);
	free(text);
	free(path);
	return atomic;
}
