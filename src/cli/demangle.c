/*
 * The demangler is C++'s own, from its library: the one that the recorded program used knows its names, and a
 * machine without it has hardly a program to show. It is looked for when it is needed, so nothing is linked.
 */
#include "cli/demangle.h"

#include <dlfcn.h>
#include <string.h>

typedef char *demangler(const char *name, char *to, size_t *size, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static int sought;
	void *library = sought++ ? NULL : dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

	if (library)
		*(void **)&found = dlsym(library, "__cxa_demangle");
	return found;
}

char *demangle(const char *name)
{
	demangler *readable = strncmp(name, "_Z", 2) == 0 ? find_demangler() : NULL;
	int status;
	char *text = readable ? readable(name, NULL, NULL, &status) : NULL;

	return text ? text : strdup(name);
}
