/* Names of functions as they are written in the source. */
#ifndef BUGNET_CLI_DEMANGLE_H
#define BUGNET_CLI_DEMANGLE_H

/* A copy of the name, to be freed: readable if it is a C++ name and the machine has C++'s library. */
char *demangle(const char *name);

#endif
