/* Find a program by name as execvp(3) does. */
#ifndef BUGNET_CLI_RESOLVE_H
#define BUGNET_CLI_RESOLVE_H

#include <stddef.h>

/*
 * Put the file that execvp would execute for `name` into `path`. A name with a slash
 * is taken as it is, whether or not the file exists. Returns 0, or
 * - EACCES: `path` is the first file of this name, and none of them may be executed
 * - ENOENT: nothing of this name is in PATH
 * - any other errno with which execvp gives up.
 */
int resolve_program(const char *name, char *path, size_t size);

#endif
