#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/error.h"
#include "cli/resolve.h"
#include "record/elf_check.h"

#define CACHE_MIN (256ul << 10)
#define CACHE_MAX (128ul << 20)

static int report_unresolved(const char *command, const char *name, int error)
{
	char here[PATH_MAX];

	if (error != ENOENT) {
		error_print(command, "%s: %s; give the program's path", name, strerror(error));
		return STATUS_CANNOT_RUN;
	}
	snprintf(here, sizeof(here), "./%s", name);
	if (*name == '\0')
		error_print(command, "the program's name is empty; give its name or path");
	else if (access(here, F_OK) == 0)
		error_print(command, "%s: not found in PATH; for the file in this directory say '%s'", name,
		        here);
	else
		error_print(command, "%s: not found in PATH; check the spelling or give the program's path",
		        name);
	return STATUS_NOT_FOUND;
}

/* Programs we must not translate still run, as they would without us. */
static int run_natively(const char *command, const char *path, char **argv, const char *reason)
{
	error_print(command, "note: %s", reason);
	execv(path, argv);
	error_print(command, "%s: cannot execute: %s", path, strerror(errno));
	return STATUS_CANNOT_RUN;
}

bool program_check(
        const char *command, char **argv, const char *consequence, char path[PATH_MAX], int *status)
{
	struct elf_report report;
	char note[sizeof report.message + 64];
	int error = resolve_program(argv[0], path, PATH_MAX);

	if (error && error != EACCES) {
		*status = report_unresolved(command, argv[0], error);
		return false;
	}
	enum elf_verdict verdict = elf_check(path, &report);
	if (verdict == ELF_RUNS)
		return true;
	if (verdict == ELF_PRIVILEGED || verdict == ELF_UNREADABLE) {
		snprintf(note, sizeof note, "%s%s", report.message, consequence);
		*status = run_natively(command, path, argv, note);
		return false;
	}
	error_print(command, "%s", report.message);
	/* As shells have it, where a file that is needed is missing, whichever it is. */
	bool missing = verdict == ELF_NOT_FOUND || verdict == ELF_NO_INTERPRETER || verdict == ELF_NO_LOADER;
	*status = missing ? STATUS_NOT_FOUND : verdict == ELF_LIMIT ? STATUS_FAILED : STATUS_CANNOT_RUN;
	return false;
}

bool program_cache_check(const char *command, uint64_t cache)
{
	if (!cache || (cache >= CACHE_MIN && cache <= CACHE_MAX))
		return true;
	error_print(command, "a cache of %lu bytes is not possible; give a size from 256K to 128M", cache);
	return false;
}
