/* A recording in gdb: started here, or one that connects. */
#ifndef BUGNET_CLI_GDB_H
#define BUGNET_CLI_GDB_H

#include <stdbool.h>

struct live;

/* A program that is debugged while it runs. */
struct gdb_program {
	const char *path;
	struct live *live;
	/* Starts it, with room in the directory for its recordings. False, after saying why. */
	bool (*start)(void *context, const char *directory);
	/* gdb is this process; 0: there is none. */
	void (*has_gdb)(void *context, int pid);
	void *context;
};

struct gdb_options {
	const char *command; /* of bugnet */
	const char *path;
	const struct gdb_program *program; /* in place of a recording; or NULL */
	const char *sysroot, *binary;      /* see replay/code_files.h; may be NULL */
	const char *at;                    /* where to begin, or NULL: at the end */
	const char *server;                /* a port to wait on, or NULL: start gdb */
	bool batch;
	char **arguments; /* of gdb, up to a NULL */
};

/* Returns the exit status. */
int gdb_debug(const struct gdb_options *options);

#endif
