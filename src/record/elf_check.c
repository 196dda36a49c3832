/*
 * How the check goes:
 *
 *   check_file(PROG)                 open_image: exists, regular, executable
 *     "#!"  -> check_script          parse the line as the kernel does
 *                -> check_file(interpreter)
 *     ELF   -> check_elf             header, segments, privileges
 *                -> check_file(loader named by PT_INTERP)
 *     else  -> explain_format
 *
 * Acceptance follows the kernel (fs/exec.c, fs/binfmt_script.c, fs/binfmt_elf.c). It is
 * stricter in two places where the kernel would start a program that cannot work:
 * segments beyond the end of the file, and segments that put different parts of the
 * file at the same address.
 */
#define _GNU_SOURCE 1

#include "record/elf_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The kernel's limits. */
#define SCRIPT_LINE   256              /* BINPRM_BUF_SIZE */
#define SCRIPT_DEPTH  5                /* scripts in a chain, as exec_binprm counts */
#define SEGMENTS_SIZE 65536            /* of the whole program header table */
#define USER_END      0x7ffffffff000ul /* TASK_SIZE_MAX with 4-level page tables */
#define PAGE          4096ul

/* Room for the names in front of a message. */
#define SUBJECT_SIZE (2 * PATH_MAX)

enum role {
	ROLE_PROGRAM,
	ROLE_INTERPRETER, /* of a script */
	ROLE_LOADER,      /* PT_INTERP */
};

static const struct {
	const char *prefix; /* how messages introduce the file, behind the file that needs it */
	enum elf_verdict missing;
	const char *advice; /* when it is missing */
} roles[] = {
        [ROLE_PROGRAM] = {"", ELF_NOT_FOUND, "check the spelling"},
        [ROLE_INTERPRETER] = {": interpreter ", ELF_NO_INTERPRETER,
                "correct the first line of the script or install the interpreter"},
        [ROLE_LOADER] = {": loader ", ELF_NO_LOADER,
                "install the C library it was linked with or link it with this system's"},
};

struct check {
	struct elf_report *report;
	char subject[SUBJECT_SIZE]; /* the file under examination and what led to it */
	int depth;                  /* scripts so far */
};

/* One open file. */
struct image {
	const char *path;
	enum role role;
	int fd;
	struct stat status;
	uint64_t size;
};

static enum elf_verdict check_file(struct check *check, const char *path, enum role role);

/* Give the verdict and the message "SUBJECT: ...". */
__attribute__((format(printf, 3, 4))) static enum elf_verdict say(
        struct check *check, enum elf_verdict verdict, const char *format, ...)
{
	char text[ELF_MESSAGE_SIZE - SUBJECT_SIZE - 2];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(check->report->message, ELF_MESSAGE_SIZE, "%s: %s", check->subject, text);
	check->report->verdict = verdict;
	return verdict;
}

/* ---- opening ---- */

static enum elf_verdict explain_missing(struct check *check, const char *path, enum role role, int error)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	enum elf_verdict verdict = roles[role].missing;

	if (error == EACCES)
		return say(check, ELF_NO_PERMISSION,
		        "a directory of the path may not be searched; ask its owner for permission");
	if (error != ENOENT && error != ENOTDIR)
		return say(check, ELF_IO_ERROR, "%s; check the path", strerror(error));
	if (length > 0)
		return say(check, verdict, "is a symbolic link to '%.*s', which does not exist; %s",
		        (int)length, target, roles[role].advice);
	length = strlen(path);
	if (length > 0 && path[length - 1] == '\r')
		return say(check, verdict,
		        "the line ends with a carriage return; remove them with sed -i 's/\\r$//'");
	return say(check, verdict, "%s; %s", strerror(error), roles[role].advice);
}

static enum elf_verdict explain_refused(struct check *check, const char *path, mode_t mode, int error)
{
	struct statvfs system;

	if (error != EACCES)
		return say(check, ELF_IO_ERROR, "%s; check the file system", strerror(error));
	if (statvfs(path, &system) == 0 && (system.f_flag & ST_NOEXEC))
		return say(check, ELF_NOEXEC_MOUNT,
		        "its file system is mounted noexec; copy the file elsewhere");
	if (!(mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return say(check, ELF_NO_PERMISSION, "is not executable; make it so with chmod +x");
	return say(check, ELF_NO_PERMISSION, "you may not execute it; ask its owner for permission");
}

/* Open what execve would execute. On any verdict but ELF_RUNS no file is left open. */
static enum elf_verdict open_image(struct check *check, struct image *image)
{
	if (stat(image->path, &image->status) < 0)
		return explain_missing(check, image->path, image->role, errno);
	if (S_ISDIR(image->status.st_mode))
		return say(check, ELF_DIRECTORY, "is a directory; give the path of a program");
	if (!S_ISREG(image->status.st_mode))
		return say(check, ELF_NOT_REGULAR, "is not a regular file; give the path of a program");
	if (faccessat(AT_FDCWD, image->path, X_OK, AT_EACCESS) < 0)
		return explain_refused(check, image->path, image->status.st_mode, errno);

	/* Non-blocking, as the file may have become a pipe since. */
	image->fd = open(image->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (image->fd < 0 && errno == EACCES)
		return say(check, ELF_UNREADABLE,
		        "may be executed but not read; it runs natively, not translated");
	if (image->fd < 0 || fstat(image->fd, &image->status) < 0 || !S_ISREG(image->status.st_mode)) {
		enum elf_verdict verdict = say(check, errno == EMFILE ? ELF_LIMIT : ELF_IO_ERROR,
		        "cannot be opened: %s; %s", strerror(errno),
		        errno == EMFILE ? "raise the limit on open files, see 'ulimit -n'" : "try again");

		if (image->fd >= 0)
			close(image->fd);
		return verdict;
	}
	image->size = image->status.st_size;
	return ELF_RUNS;
}

/* Is [offset, offset + length) inside the file? */
static bool inside(const struct image *image, uint64_t offset, uint64_t length)
{
	return offset <= image->size && length <= image->size - offset;
}

static bool read_at(const struct image *image, void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;

	if (!inside(image, offset, length))
		return false;
	while (done < length) {
		ssize_t got = pread(image->fd, (char *)buffer + done, length - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += got;
	}
	return true;
}

/* ---- scripts ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * Find the interpreter's name in the first SCRIPT_LINE bytes of a script, which are
 * padded with zeros, and terminate it in place. NULL: the kernel gives ENOEXEC.
 * A line without an end within the bytes is good as long as the name ends there.
 */
static char *script_interpreter(char line[SCRIPT_LINE])
{
	char *last = line + SCRIPT_LINE - 1;
	char *end = memchr(line, '\n', strnlen(line, SCRIPT_LINE));
	char *name = line + 2;
	char *stop = end ? end : last;

	while (name < stop && is_blank(*name))
		name++;
	for (char *c = name; c < stop || (!end && c == last); c++) {
		if (is_blank(*c) || *c == '\0') {
			*c = '\0';
			return *name ? name : NULL;
		}
	}
	if (!end)
		return NULL;
	*end = '\0';
	return *name ? name : NULL;
}

static enum elf_verdict check_script(struct check *check, char line[SCRIPT_LINE])
{
	char *name = script_interpreter(line);

	if (!name)
		return say(check, ELF_BAD_SCRIPT,
		        "its '#!' line names no interpreter within %d bytes; correct its first line",
		        SCRIPT_LINE);
	if (++check->depth > SCRIPT_DEPTH)
		return say(check, ELF_SCRIPT_NESTING,
		        "more than %d scripts interpret one another; let one name a program", SCRIPT_DEPTH);
	return check_file(check, name, ROLE_INTERPRETER);
}

static const struct {
	const char *magic;
	const char *name;
	const char *advice;
} formats[] = {
        {"MZ", "a Windows program", "give an x86-64 Linux program"},
        {"\xcf\xfa\xed\xfe", "a macOS program", "give an x86-64 Linux program"},
        {"\xca\xfe\xba\xbe", "a Java class or macOS program", "run a Java class with 'java'"},
        {"PK\x03\x04", "a zip or jar archive", "run a jar with 'java -jar'"},
        {"\xef\xbb\xbf#!", "a script with a byte order mark before its '#!'", "remove its first 3 bytes"},
        {"!<arch>\n", "a library of object files", "link a program with it"},
        {"\x1f\x8b", "a gzip file", "unpack it first"},
};

static enum elf_verdict explain_format(
        struct check *check, const struct image *image, const char *start, size_t length)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (memcmp(start, formats[i].magic, strlen(formats[i].magic)) == 0)
			return say(
			        check, ELF_UNKNOWN_FORMAT, "is %s; %s", formats[i].name, formats[i].advice);
	}
	if (image->role != ROLE_PROGRAM || memchr(start, '\0', length))
		return say(check, ELF_UNKNOWN_FORMAT,
		        "is neither an ELF program nor a script; give an x86-64 Linux program");
	return say(check, ELF_UNKNOWN_FORMAT,
	        "is not an ELF program and has no '#!' line; if it is a shell script add '#!/bin/sh' as its "
	        "first line or run 'sh %s'",
	        image->path);
}

/* ---- ELF ---- */

static const struct {
	uint16_t machine;
	const char *name;
} machines[] = {
        {EM_AARCH64, "aarch64"},
        {EM_ARM, "32-bit ARM"},
        {EM_RISCV, "RISC-V"},
        {EM_PPC64, "64-bit PowerPC"},
        {EM_PPC, "32-bit PowerPC"},
        {EM_S390, "s390"},
        {EM_MIPS, "MIPS"},
        {EM_LOONGARCH, "LoongArch"},
        {EM_SPARC, "SPARC"},
        {EM_SPARC32PLUS, "SPARC"},
        {EM_SPARCV9, "64-bit SPARC"},
        {EM_ALPHA, "Alpha"},
        {EM_IA_64, "Itanium"},
        {EM_PARISC, "PA-RISC"},
        {EM_SH, "SuperH"},
        {EM_68K, "m68k"},
        {EM_BPF, "BPF"},
        {EM_CUDA, "an NVIDIA GPU"},
        {EM_AMDGPU, "an AMD GPU"},
};

/* Why a header is not that of a 64-bit x86-64 file. */
static enum elf_verdict explain_machine(struct check *check, const Elf64_Ehdr *header)
{
	bool big = header->e_ident[EI_DATA] == ELFDATA2MSB;
	uint16_t machine = big ? __builtin_bswap16(header->e_machine) : header->e_machine;
	bool x86 = machine == EM_X86_64 || machine == EM_386;

	if (x86 && big)
		return say(check, ELF_BIG_ENDIAN,
		        "claims to be for a big-endian x86, which does not exist; the file is damaged");
	if (machine == EM_386)
		return say(check, ELF_32_BIT,
		        "is a 32-bit (i386) program, bugnet runs 64-bit ones; build it with -m64");
	if (machine == EM_X86_64 && header->e_ident[EI_CLASS] == ELFCLASS32)
		return say(check, ELF_X32, "is an x32 program, bugnet runs 64-bit ones; build it with -m64");
	if (machine == EM_X86_64)
		return say(check, ELF_MALFORMED,
		        "its program headers have %u bytes instead of %zu; the file is damaged",
		        header->e_phentsize, sizeof(Elf64_Phdr));
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (machines[i].machine == machine)
			return say(check, ELF_OTHER_MACHINE, "is built for %s; build it for x86-64",
			        machines[i].name);
	}
	return say(check, ELF_OTHER_MACHINE,
	        "is built for another machine (ELF number %u); build it for x86-64", machine);
}

/* The kernel looks at machine and e_phentsize only: the rest of e_ident may hold anything. */
static bool is_x86_64(const Elf64_Ehdr *header)
{
	return header->e_machine == EM_X86_64 && header->e_phentsize == sizeof(Elf64_Phdr);
}

static enum elf_verdict check_header(struct check *check, const struct image *image, const Elf64_Ehdr *header)
{
	if (header->e_type == ET_REL && header->e_machine == EM_X86_64)
		return say(check, ELF_NOT_A_PROGRAM, "is an object file; link it first");
	if (header->e_type == ET_CORE && header->e_machine == EM_X86_64)
		return say(check, ELF_NOT_A_PROGRAM, "is a core dump; open it in gdb");
	if (!is_x86_64(header))
		return explain_machine(check, header);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return say(check, ELF_NOT_A_PROGRAM,
		        "has ELF type %u, which is no program; give an x86-64 Linux program", header->e_type);
	if (header->e_phnum == 0)
		return say(check, ELF_NO_SEGMENTS, "has no program headers; the file is damaged");
	if (header->e_phnum * sizeof(Elf64_Phdr) > SEGMENTS_SIZE)
		return say(check, ELF_MALFORMED, "has %u program headers, too many; the file is damaged",
		        header->e_phnum);
	if (!inside(image, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr)))
		return say(check, ELF_TRUNCATED,
		        "its program headers lie beyond its end; the file is cut short, copy it again");
	return ELF_RUNS;
}

static enum elf_verdict check_segment(
        struct check *check, const struct image *image, const Elf64_Phdr *segment, unsigned number)
{
	if (segment->p_filesz > segment->p_memsz)
		return say(check, ELF_MALFORMED,
		        "segment %u is larger in the file than in memory; "
		        "the file is damaged",
		        number);
	if (segment->p_vaddr > USER_END || segment->p_memsz > USER_END - segment->p_vaddr)
		return say(check, ELF_MALFORMED,
		        "segment %u reaches beyond the address space; "
		        "the file is damaged",
		        number);
	if (segment->p_filesz > 0 && (segment->p_vaddr - segment->p_offset) % PAGE != 0)
		return say(check, ELF_MALFORMED,
		        "segment %u cannot be mapped: its address and its place in "
		        "the file differ within a page; the file is damaged",
		        number);
	if (!inside(image, segment->p_offset, segment->p_filesz))
		return say(check, ELF_TRUNCATED,
		        "segment %u lies beyond its end; the file is cut short, copy it again", number);
	return ELF_RUNS;
}

/* Do two segments put different parts of the file at the same address? */
static bool conflict(const Elf64_Phdr *a, const Elf64_Phdr *b)
{
	return a->p_vaddr < b->p_vaddr + b->p_filesz && b->p_vaddr < a->p_vaddr + a->p_filesz &&
	       a->p_vaddr - a->p_offset != b->p_vaddr - b->p_offset;
}

static enum elf_verdict check_segments(
        struct check *check, const struct image *image, const Elf64_Phdr *segments, unsigned count)
{
	bool any = false;

	for (unsigned i = 0; i < count; i++) {
		enum elf_verdict verdict;

		if (segments[i].p_type != PT_LOAD)
			continue;
		any = true;
		verdict = check_segment(check, image, &segments[i], i);
		if (verdict != ELF_RUNS)
			return verdict;
		for (unsigned j = 0; j < i; j++) {
			if (segments[j].p_type == PT_LOAD && conflict(&segments[i], &segments[j]))
				return say(check, ELF_MALFORMED,
				        "segments %u and %u overlap; the file is damaged", j, i);
		}
	}
	return any ? ELF_RUNS : say(check, ELF_NO_SEGMENTS, "has no segments to load; the file is damaged");
}

static enum elf_verdict check_loader(struct check *check, const struct image *image, const Elf64_Phdr *entry)
{
	char name[PATH_MAX];

	if (entry->p_filesz < 2 || entry->p_filesz > PATH_MAX)
		return say(check, ELF_BAD_LOADER_ENTRY,
		        "the name of its loader has %lu bytes; the file is damaged", entry->p_filesz);
	if (!inside(image, entry->p_offset, entry->p_filesz))
		return say(check, ELF_TRUNCATED,
		        "the name of its loader lies beyond its end; the file is cut short, copy it again");
	if (!read_at(image, name, entry->p_filesz, entry->p_offset))
		return say(check, ELF_IO_ERROR, "cannot be read; check the file system");
	if (name[entry->p_filesz - 1] != '\0')
		return say(check, ELF_BAD_LOADER_ENTRY,
		        "the name of its loader is not terminated; the file is damaged");
	return check_file(check, name, ROLE_LOADER);
}

/* Would executing the file give us other credentials? A debugger must not go along then. */
static enum elf_verdict check_privileges(struct check *check, const struct image *image)
{
	const char *what = NULL;
	struct statvfs system;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	        (fstatvfs(image->fd, &system) == 0 && (system.f_flag & ST_NOSUID)))
		return ELF_RUNS;
	if ((image->status.st_mode & S_ISUID) && image->status.st_uid != geteuid())
		what = "is setuid";
	else if ((image->status.st_mode & S_ISGID) && (image->status.st_mode & S_IXGRP) &&
	         image->status.st_gid != getegid())
		what = "is setgid";
	else if (geteuid() != 0 && fgetxattr(image->fd, "security.capability", NULL, 0) > 0)
		what = "has file capabilities";
	if (!what)
		return ELF_RUNS;
	return say(check, ELF_PRIVILEGED, "%s; it runs natively, not translated", what);
}

static enum elf_verdict check_program(
        struct check *check, const struct image *image, const Elf64_Phdr *segments, unsigned count)
{
	enum elf_verdict verdict = check_segments(check, image, segments, count);

	if (verdict != ELF_RUNS || image->role == ROLE_LOADER)
		return verdict;
	for (unsigned i = 0; i < count; i++) {
		char subject[SUBJECT_SIZE];

		if (segments[i].p_type != PT_INTERP)
			continue;
		memcpy(subject, check->subject, sizeof(subject));
		verdict = check_loader(check, image, &segments[i]);
		if (verdict != ELF_RUNS)
			return verdict;
		memcpy(check->subject, subject, sizeof(subject));
		break; /* as the kernel does: the first one counts */
	}
	return check_privileges(check, image);
}

static enum elf_verdict check_elf(struct check *check, const struct image *image)
{
	enum elf_verdict verdict;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t size;

	if (!inside(image, 0, sizeof(header)))
		return say(check, ELF_TRUNCATED,
		        "ends inside its ELF header; the file is cut short, copy it again");
	if (!read_at(image, &header, sizeof(header), 0))
		return say(check, ELF_IO_ERROR, "cannot be read; check the file system");
	verdict = check_header(check, image, &header);
	if (verdict != ELF_RUNS)
		return verdict;

	size = header.e_phnum * sizeof(Elf64_Phdr);
	segments = malloc(size);
	if (segments && read_at(image, segments, size, header.e_phoff))
		verdict = check_program(check, image, segments, header.e_phnum);
	else
		verdict = say(check, ELF_IO_ERROR, "cannot be read; check the file system");
	free(segments);
	return verdict;
}

/* ---- the whole ---- */

static enum elf_verdict check_content(struct check *check, const struct image *image)
{
	char start[SCRIPT_LINE] = {0};
	size_t length = image->size < sizeof(start) ? image->size : sizeof(start);

	if (length == 0)
		return say(check, ELF_EMPTY, "is empty; build or copy it again");
	if (!read_at(image, start, length, 0))
		return say(check, ELF_IO_ERROR, "cannot be read; check the file system");
	if (memcmp(start, ELFMAG, SELFMAG) == 0)
		return check_elf(check, image);
	if (start[0] == '#' && start[1] == '!' && image->role != ROLE_LOADER)
		return check_script(check, start);
	return explain_format(check, image, start, length);
}

static enum elf_verdict check_file(struct check *check, const char *path, enum role role)
{
	struct image image = {.path = path, .role = role, .fd = -1};
	size_t used = strlen(check->subject);
	enum elf_verdict verdict;

	snprintf(check->subject + used, SUBJECT_SIZE - used, "%s%s", roles[role].prefix, path);
	verdict = open_image(check, &image);
	if (verdict != ELF_RUNS)
		return verdict;
	verdict = check_content(check, &image);
	close(image.fd);
	return verdict;
}

enum elf_verdict elf_check(const char *path, struct elf_report *report)
{
	struct check check = {.report = report};

	*report = (struct elf_report){.verdict = ELF_RUNS};
	return check_file(&check, path, ROLE_PROGRAM);
}
