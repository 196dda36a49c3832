#include "cli/lines.h"

#include <string.h>

char *line_find(Dwfl_Module *module, Dwarf_Addr pc, Dwarf_Addr function, int *line)
{
	Dwfl_Line *found = dwfl_module_getsrc(module, pc);
	Dwarf_Addr start;
	int number;
	const char *source = found ? dwfl_lineinfo(found, &start, &number, NULL, NULL, NULL) : NULL;

	/* libdw takes the line before for that of code which has none. */
	if (!source || start < function)
		return NULL;
	*line = number;
	return strdup(source);
}
