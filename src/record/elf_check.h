/*
 * Can this file be run, and if not, why?
 *
 * The kernel's answer to a bad program is an errno, or a signal after the point of no
 * return. This looks at the file first, accepts what the kernel accepts, and explains
 * what it does not. The file may be hostile: nothing in it is believed unchecked.
 */
#ifndef BUGNET_RECORD_ELF_CHECK_H
#define BUGNET_RECORD_ELF_CHECK_H

#include <limits.h>

enum elf_verdict {
	ELF_RUNS, /* an x86-64 program, or a script that leads to one */

	/* It runs, but only natively; the message is a note that says why. */
	ELF_PRIVILEGED, /* setuid, setgid or file capabilities would change our credentials */
	ELF_UNREADABLE, /* may be executed but not read */

	/* It does not run. */
	ELF_NOT_FOUND,        /* the program itself; the two below are found programs that need others */
	ELF_NO_INTERPRETER,   /* a script's "#!" names a file that is not there */
	ELF_NO_LOADER,        /* PT_INTERP names a file that is not there */
	ELF_DIRECTORY,        /* a directory */
	ELF_NOT_REGULAR,      /* a device, socket or pipe */
	ELF_NO_PERMISSION,    /* not executable for us, or on a path we may not search */
	ELF_NOEXEC_MOUNT,     /* on a file system mounted noexec */
	ELF_LIMIT,            /* a limit of this process keeps us from looking at it */
	ELF_IO_ERROR,         /* cannot be opened or read, for a reason not listed here */
	ELF_EMPTY,            /* zero bytes */
	ELF_UNKNOWN_FORMAT,   /* neither ELF nor "#!" */
	ELF_BAD_SCRIPT,       /* a "#!" line the kernel refuses */
	ELF_SCRIPT_NESTING,   /* scripts that interpret scripts, too deep or for ever */
	ELF_32_BIT,           /* i386 */
	ELF_X32,              /* x86-64 instructions, 32-bit pointers */
	ELF_OTHER_MACHINE,    /* not x86 */
	ELF_BIG_ENDIAN,       /* claims to be a big-endian x86 */
	ELF_NOT_A_PROGRAM,    /* an object file, a core file */
	ELF_TRUNCATED,        /* headers or segments lie beyond the end of the file */
	ELF_MALFORMED,        /* headers that contradict themselves */
	ELF_NO_SEGMENTS,      /* nothing to load */
	ELF_BAD_LOADER_ENTRY, /* PT_INTERP is empty, too long or not terminated */
};

/* Room for the names of a chain of scripts, a reason and a next step. */
#define ELF_MESSAGE_SIZE (3 * PATH_MAX)

struct elf_report {
	enum elf_verdict verdict;
	/* "FILE: reason; next step" for people; empty when the verdict is ELF_RUNS. May hold any byte of the
	   file's "#!" line or PT_INTERP: escape control characters before it reaches a terminal. */
	char message[ELF_MESSAGE_SIZE];
};

/* Judge the file that execve would execute for `path`. Returns report->verdict. */
enum elf_verdict elf_check(const char *path, struct elf_report *report);

#endif
