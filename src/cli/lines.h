/* Lines of the source, by libdw. */
#ifndef BUGNET_CLI_LINES_H
#define BUGNET_CLI_LINES_H

#include <elfutils/libdwfl.h>

/* The file of the line that the code belongs to, to be freed; NULL: it has none. `function`: where its
 * function begins, or 0. */
char *line_find(Dwfl_Module *module, Dwarf_Addr pc, Dwarf_Addr function, int *line);

#endif
