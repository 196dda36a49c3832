/*
 * elf_check on files made here: one good program, and one test for each way of being
 * bad. What is good and what is bad is asked of the kernel too, where it can be.
 */
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/elf_check.h"

static char directory[] = "/tmp/bugnet-elf-XXXXXX";
static struct elf_report report;

/* A program for x86-64 that exits with status 7, with room for more segments. */
struct program {
	Elf64_Ehdr header;
	Elf64_Phdr segments[4];
	char loader[64];
	uint8_t code[12];
};

static struct program good_program(void)
{
	struct program program = {
	        .header =
	                {
	                        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                        .e_type = ET_EXEC,
	                        .e_machine = EM_X86_64,
	                        .e_version = EV_CURRENT,
	                        .e_entry = 0x400000 + offsetof(struct program, code),
	                        .e_phoff = offsetof(struct program, segments),
	                        .e_ehsize = sizeof(Elf64_Ehdr),
	                        .e_phentsize = sizeof(Elf64_Phdr),
	                        .e_phnum = 1,
	                },
	        .segments = {{
	                .p_type = PT_LOAD,
	                .p_flags = PF_R | PF_X,
	                .p_vaddr = 0x400000,
	                .p_filesz = sizeof(struct program),
	                .p_memsz = sizeof(struct program),
	                .p_align = 4096,
	        }},
	        /* mov edi,7; mov eax,60; syscall */
	        .code = {0xbf, 7, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05},
	};

	return program;
}

static void write_file(const char *name, const void *content, size_t size, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void write_script(const char *name, const char *text)
{
	write_file(name, text, strlen(text), 0755);
}

/* The status of the file when the kernel runs it, or minus the errno of execve. */
static int kernel_runs(const char *name)
{
	int failure[2], error = 0, status;
	pid_t child;

	assert_int_equal(pipe2(failure, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		execl(name, name, NULL);
		error = errno;
		if (write(failure[1], &error, sizeof(error)) < 0)
			_exit(1);
		_exit(0);
	}
	close(failure[1]);
	if (read(failure[0], &error, sizeof(error)) < 0)
		error = EIO;
	close(failure[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (error)
		return -error;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_verdict(const char *name, enum elf_verdict verdict)
{
	assert_int_equal(elf_check(name, &report), verdict);
	assert_int_equal(report.verdict, verdict);
	if (verdict == ELF_RUNS) {
		assert_string_equal(report.message, "");
	} else {
		assert_true(strncmp(report.message, name, strlen(name)) == 0);
		assert_non_null(strstr(report.message, "; "));
	}
}

static void assert_program(const struct program *program, enum elf_verdict verdict)
{
	write_file("program", program, sizeof(*program), 0755);
	assert_verdict("program", verdict);
}

static void good_programs(void **state)
{
	struct program program = good_program();

	(void)state;
	assert_program(&program, ELF_RUNS);
	assert_int_equal(kernel_runs("program"), 7);
	assert_verdict("/bin/sh", ELF_RUNS);
	assert_verdict("/proc/self/exe", ELF_RUNS);

	/* The kernel does not look at class and byte order either. */
	memset(program.header.e_ident + EI_CLASS, 0x90, EI_NIDENT - EI_CLASS);
	assert_program(&program, ELF_RUNS);
	assert_int_equal(kernel_runs("program"), 7);

	/* bss that runs into the next segment, segments that share bytes of the file */
	program = good_program();
	program.header.e_phnum = 2;
	program.segments[1] = program.segments[0];
	program.segments[0].p_memsz = 0x3000;
	program.segments[1].p_vaddr += 0x1000;
	assert_program(&program, ELF_RUNS);
	program.segments[1].p_vaddr -= 0x1000;
	assert_program(&program, ELF_RUNS);
}

static void missing(void **state)
{
	(void)state;
	assert_verdict("nothing", ELF_NOT_FOUND);
	assert_verdict("nothing/at/all", ELF_NOT_FOUND);
	write_script("file", "#!/bin/sh\n");
	assert_verdict("file/below", ELF_NOT_FOUND);
	assert_int_equal(elf_check("", &report), ELF_NOT_FOUND);
	assert_int_equal(symlink("gone", "dangling"), 0);
	assert_verdict("dangling", ELF_NOT_FOUND);
	assert_non_null(strstr(report.message, "'gone'"));
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_verdict("loop", ELF_IO_ERROR);
}

static void not_files(void **state)
{
	(void)state;
	assert_verdict("/", ELF_DIRECTORY);
	assert_verdict("/dev/null", ELF_NOT_REGULAR);
	assert_int_equal(mkfifo("fifo", 0755), 0);
	assert_verdict("fifo", ELF_NOT_REGULAR);
}

static void not_executable(void **state)
{
	struct program program = good_program();

	(void)state;
	write_file("plain", &program, sizeof(program), 0644);
	assert_verdict("plain", ELF_NO_PERMISSION);
	assert_non_null(strstr(report.message, "chmod +x"));
	assert_int_equal(kernel_runs("plain"), -EACCES);
}

/* Become an ordinary user in a child and run `body` there; skipped when we are not root. */
static void as_user(void (*body)(void))
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(99);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child cmocka cannot report: the exit status tells. */
static void expect_in_child(const char *name, enum elf_verdict verdict)
{
	if (elf_check(name, &report) != verdict) {
		fprintf(stderr, "%s: verdict %d instead of %d: %s\n", name, report.verdict, verdict,
		        report.message);
		_exit(1);
	}
}

static void user_permissions(void)
{
	expect_in_child("secret/program", ELF_NO_PERMISSION);
	expect_in_child("for-root", ELF_NO_PERMISSION);
	expect_in_child("only-execute", ELF_UNREADABLE);
	expect_in_child("setuid", ELF_PRIVILEGED);
	expect_in_child("setgid", ELF_PRIVILEGED);
	expect_in_child("setgid-locking", ELF_RUNS);
	expect_in_child("own-setuid", ELF_RUNS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		expect_in_child("setuid", ELF_RUNS);
}

static void permissions_of_users(void **state)
{
	struct program program = good_program();

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir("secret", 0700), 0);
	write_file("secret/program", &program, sizeof(program), 0755);
	write_file("for-root", &program, sizeof(program), 0744);
	write_file("only-execute", &program, sizeof(program), 0711);
	write_file("setuid", &program, sizeof(program), 04755);
	write_file("setgid", &program, sizeof(program), 02755);
	write_file("setgid-locking", &program, sizeof(program), 02705);
	write_file("own-setuid", &program, sizeof(program), 0755);
	assert_int_equal(chown("own-setuid", 65534, 65534), 0);
	assert_int_equal(chmod("own-setuid", 06755), 0);
	as_user(user_permissions);

	/* For root a setuid root program changes nothing. */
	assert_verdict("setuid", ELF_RUNS);
	assert_verdict("own-setuid", ELF_PRIVILEGED);
}

static void noexec_mount(void **state)
{
	struct program program = good_program();

	(void)state;
	assert_int_equal(mkdir("mount", 0755), 0);
	if (geteuid() != 0 || mount("none", "mount", "tmpfs", MS_NOEXEC, NULL) < 0)
		skip();
	write_file("mount/program", &program, sizeof(program), 0755);
	enum elf_verdict verdict = elf_check("mount/program", &report);

	umount("mount");
	assert_int_equal(verdict, ELF_NOEXEC_MOUNT);
	assert_non_null(strstr(report.message, "noexec"));
}

static void unknown_formats(void **state)
{
	static const char *const contents[] = {"echo hello\n", "#", "\x7f",
	        "\x7f"
	        "EL",
	        "MZ\x90", "\xef\xbb\xbf#!/bin/sh\n", " #!/bin/sh\n"};

	(void)state;
	write_file("empty", "", 0, 0755);
	assert_verdict("empty", ELF_EMPTY);
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		write_script("unknown", contents[i]);
		assert_verdict("unknown", ELF_UNKNOWN_FORMAT);
		assert_int_equal(kernel_runs("unknown"), -ENOEXEC);
	}
	write_script("unknown", "echo hello\n");
	assert_verdict("unknown", ELF_UNKNOWN_FORMAT);
	assert_non_null(strstr(report.message, "sh unknown"));
	write_file("unknown", "\0\0\0\0", 4, 0755);
	assert_verdict("unknown", ELF_UNKNOWN_FORMAT);
}

static void good_scripts(void **state)
{
	static const char *const lines[] = {"#!/bin/true", "#!/bin/true\n", "#! /bin/true\n",
	        "#!\t/bin/true x y\n", "#!/bin/true   \n", "#!/bin/true\t-a"};
	char long_argument[400] = "#!/bin/true ";

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		write_script("script", lines[i]);
		assert_verdict("script", ELF_RUNS);
		assert_int_equal(kernel_runs("script"), 0);
	}
	memset(long_argument + 12, 'x', sizeof(long_argument) - 13);
	write_script("script", long_argument);
	assert_verdict("script", ELF_RUNS);
	assert_int_equal(kernel_runs("script"), 0);
}

static void bad_scripts(void **state)
{
	static const char *const lines[] = {"#!\n", "#!", "#!  \t \n/bin/true\n", "#! "};
	char line[400] = "#!/";

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		write_script("script", lines[i]);
		assert_verdict("script", ELF_BAD_SCRIPT);
		assert_true(kernel_runs("script") < 0);
	}
	/* A name that does not end within 256 bytes, at either side of that edge. */
	memset(line + 3, 'x', sizeof(line) - 4);
	write_script("script", line);
	assert_verdict("script", ELF_BAD_SCRIPT);
	line[256] = '\n';
	write_script("script", line);
	assert_verdict("script", ELF_BAD_SCRIPT);
	assert_int_equal(kernel_runs("script"), -ENOEXEC);
	line[255] = '\n';
	write_script("script", line);
	assert_verdict("script", ELF_NO_INTERPRETER);
	assert_int_equal(kernel_runs("script"), -ENOENT);
	line[255] = ' ';
	write_script("script", line);
	assert_verdict("script", ELF_NO_INTERPRETER);
	assert_int_equal(kernel_runs("script"), -ENOENT);
	memset(line + 2, ' ', 300);
	write_script("script", line);
	assert_verdict("script", ELF_BAD_SCRIPT);
}

static void scripts_without_interpreter(void **state)
{
	(void)state;
	write_script("script", "#!/usr/bin/pyhton3\n");
	assert_verdict("script", ELF_NO_INTERPRETER);
	assert_string_equal(report.message, "script: interpreter /usr/bin/pyhton3: No such file or "
	                                    "directory; correct the first line of the "
	                                    "script or install the interpreter");
	write_script("script", "#!/bin/sh\r\necho\r\n");
	assert_verdict("script", ELF_NO_INTERPRETER);
	assert_non_null(strstr(report.message, "carriage return"));
	write_script("script", "#!/etc/passwd\n");
	assert_verdict("script", ELF_NO_PERMISSION);
	write_script("script", "#!/\n");
	assert_verdict("script", ELF_DIRECTORY);
}

static void scripts_of_scripts(void **state)
{
	char name[16], line[PATH_MAX + 32];

	(void)state;
	snprintf(line, sizeof(line), "#!/bin/true\n");
	for (int depth = 1; depth <= 7; depth++) {
		snprintf(name, sizeof(name), "script%d", depth);
		write_script(name, line);
		snprintf(line, sizeof(line), "#!%s/script%d\n", directory, depth);
		/* The kernel says how deep is too deep. */
		bool runs = kernel_runs(name) == 0;

		assert_verdict(name, runs ? ELF_RUNS : ELF_SCRIPT_NESTING);
	}
	snprintf(line, sizeof(line), "#!%s/endless\n", directory);
	write_script("endless", line);
	assert_verdict("endless", ELF_SCRIPT_NESTING);
}

/* The start of a 32-bit header: what comes first has the same place in both classes. */
static void write_header(const char *name, int class, int order, uint16_t machine)
{
	Elf32_Ehdr header = {
	        .e_ident = {0x7f, 'E', 'L', 'F', class, order, EV_CURRENT},
	        .e_type = ET_EXEC,
	        .e_machine = order == ELFDATA2MSB ? __builtin_bswap16(machine) : machine,
	        .e_phentsize = sizeof(Elf32_Phdr),
	        .e_phnum = 1,
	};
	char file[256] = {0};

	memcpy(file, &header, sizeof(header));
	write_file(name, file, sizeof(file), 0755);
}

static void other_machines(void **state)
{
	(void)state;
	write_header("other", ELFCLASS32, ELFDATA2LSB, EM_386);
	assert_verdict("other", ELF_32_BIT);
	write_header("other", ELFCLASS32, ELFDATA2LSB, EM_X86_64);
	assert_verdict("other", ELF_X32);
	write_header("other", ELFCLASS64, ELFDATA2LSB, EM_AARCH64);
	assert_verdict("other", ELF_OTHER_MACHINE);
	assert_non_null(strstr(report.message, "aarch64"));
	write_header("other", ELFCLASS64, ELFDATA2LSB, EM_RISCV);
	assert_verdict("other", ELF_OTHER_MACHINE);
	assert_non_null(strstr(report.message, "RISC-V"));
	write_header("other", ELFCLASS64, ELFDATA2MSB, EM_S390);
	assert_verdict("other", ELF_OTHER_MACHINE);
	assert_non_null(strstr(report.message, "s390"));
	write_header("other", ELFCLASS64, ELFDATA2LSB, 0xabcd);
	assert_verdict("other", ELF_OTHER_MACHINE);
	assert_non_null(strstr(report.message, "43981"));
	write_header("other", ELFCLASS64, ELFDATA2MSB, EM_X86_64);
	assert_verdict("other", ELF_BIG_ENDIAN);
}

static void not_programs(void **state)
{
	struct program program = good_program();

	(void)state;
	program.header.e_type = ET_CORE;
	assert_program(&program, ELF_NOT_A_PROGRAM);
	assert_non_null(strstr(report.message, "core"));
	program.header.e_type = ET_NONE;
	assert_program(&program, ELF_NOT_A_PROGRAM);
	/* Object files have no program headers, not even a size for them. */
	program.header.e_type = ET_REL;
	program.header.e_phentsize = 0;
	program.header.e_phnum = 0;
	assert_program(&program, ELF_NOT_A_PROGRAM);
	assert_non_null(strstr(report.message, "object file"));
}

/* Cut the good program at every length: nothing but the whole of it runs. */
static void truncated(void **state)
{
	struct program program = good_program();

	(void)state;
	program.header.e_phnum = 2;
	program.segments[1] = (Elf64_Phdr){
	        .p_type = PT_INTERP,
	        .p_offset = offsetof(struct program, loader),
	        .p_filesz = sizeof("/lib64/ld-linux-x86-64.so.2"),
	};
	strcpy(program.loader, "/lib64/ld-linux-x86-64.so.2");
	for (size_t size = 4; size < sizeof(program); size++) {
		write_file("cut", &program, size, 0755);
		assert_verdict("cut", ELF_TRUNCATED);
	}
	assert_program(&program, ELF_RUNS);

	program = good_program();
	program.header.e_phoff = sizeof(program);
	assert_program(&program, ELF_TRUNCATED);
	program.header.e_phoff = UINT64_MAX - 8;
	assert_program(&program, ELF_TRUNCATED);
	program.header.e_phoff = sizeof(program) - sizeof(Elf64_Phdr) + 1;
	assert_program(&program, ELF_TRUNCATED);
}

static void bad_headers(void **state)
{
	struct program program = good_program();

	(void)state;
	program.header.e_phnum = 0;
	assert_program(&program, ELF_NO_SEGMENTS);
	assert_int_equal(kernel_runs("program"), -ENOEXEC);
	program.header.e_phnum = 0xffff;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	program.header.e_phentsize = 64;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	program.segments[0].p_type = PT_NOTE;
	assert_program(&program, ELF_NO_SEGMENTS);
}

static void bad_segments(void **state)
{
	struct program program = good_program();
	Elf64_Phdr *segment = &program.segments[0];

	(void)state;
	segment->p_memsz = segment->p_filesz - 1;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	segment->p_memsz = UINT64_MAX;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	segment->p_vaddr = 0xfffffffffffff000;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	segment->p_vaddr = 0x7fffffffe000;
	segment->p_memsz = 0x1001;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	segment->p_vaddr += 8;
	assert_program(&program, ELF_MALFORMED);
	program = good_program();
	segment->p_offset = 0x100000;
	assert_program(&program, ELF_TRUNCATED);
	program = good_program();
	segment->p_offset = UINT64_MAX - 0xfff;
	assert_program(&program, ELF_TRUNCATED);
	program = good_program();
	segment->p_filesz++;
	segment->p_memsz++;
	assert_program(&program, ELF_TRUNCATED);
}

static void overlapping_segments(void **state)
{
	struct {
		struct program program;
		char rest[2 * 4096];
	} file = {.program = good_program()};
	Elf64_Phdr *segments = file.program.segments;

	(void)state;
	file.program.header.e_phnum = 2;
	segments[0].p_filesz = segments[0].p_memsz = 4096;
	segments[1] = segments[0];
	segments[1].p_offset += 4096;
	write_file("overlap", &file, sizeof(file), 0755);
	assert_verdict("overlap", ELF_MALFORMED);
	assert_non_null(strstr(report.message, "overlap;"));
	segments[1].p_vaddr += 4096;
	write_file("overlap", &file, sizeof(file), 0755);
	assert_verdict("overlap", ELF_RUNS);
}

static struct program program_with_loader(const char *loader)
{
	struct program program = good_program();

	program.header.e_phnum = 2;
	program.segments[1] = (Elf64_Phdr){
	        .p_type = PT_INTERP,
	        .p_offset = offsetof(struct program, loader),
	        .p_filesz = strlen(loader) + 1,
	};
	strcpy(program.loader, loader);
	return program;
}

static void loaders(void **state)
{
	struct program program = good_program();

	(void)state;
	write_file("loader", &program, sizeof(program), 0755);
	program = program_with_loader("loader");
	assert_program(&program, ELF_RUNS);

	program = program_with_loader("/lib/ld-musl-other.so.1");
	assert_program(&program, ELF_NO_LOADER);
	assert_non_null(strstr(report.message, "program: loader /lib/ld-musl-other.so.1: "));
	assert_int_equal(kernel_runs("program"), -ENOENT);

	program = program_with_loader("loader");
	program.segments[1].p_filesz--;
	assert_program(&program, ELF_BAD_LOADER_ENTRY);
	assert_int_equal(kernel_runs("program"), -ENOEXEC);
	program.segments[1].p_filesz = 1;
	assert_program(&program, ELF_BAD_LOADER_ENTRY);
	program.segments[1].p_filesz = PATH_MAX + 1;
	assert_program(&program, ELF_BAD_LOADER_ENTRY);
	program.segments[1].p_filesz = UINT64_MAX;
	assert_program(&program, ELF_BAD_LOADER_ENTRY);
	program.segments[1].p_filesz = 10;
	program.segments[1].p_offset = UINT64_MAX - 5;
	assert_program(&program, ELF_TRUNCATED);

	write_file("loader", &program, 70, 0755);
	program = program_with_loader("loader");
	assert_program(&program, ELF_TRUNCATED);
	assert_non_null(strstr(report.message, "program: loader loader: "));
	write_script("loader", "#!/bin/sh\n");
	assert_program(&program, ELF_UNKNOWN_FORMAT);
	write_header("loader", ELFCLASS32, ELFDATA2LSB, EM_386);
	assert_program(&program, ELF_32_BIT);
}

/* A program that names itself as its loader ends somewhere, as the loader's loader does not count. */
static void its_own_loader(void **state)
{
	struct program program = program_with_loader("program");

	(void)state;
	assert_program(&program, ELF_RUNS);
}

/* Random damage must never do harm; the seed is fixed so that a failure can be seen again. */
static void damaged(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct program program = program_with_loader("/lib64/ld-linux-x86-64.so.2");
		uint8_t *bytes = (uint8_t *)&program;

		for (int i = rand_r(&seed) % 8; i >= 0; i--)
			bytes[4 + rand_r(&seed) % (sizeof(program) - 4)] = rand_r(&seed);
		write_file("damaged", &program, sizeof(program), 0755);
		elf_check("damaged", &report);
		assert_true((report.verdict == ELF_RUNS) == (report.message[0] == '\0'));
	}
}

static int set_up(void **state)
{
	(void)state;
	umask(022);
	return !mkdtemp(directory) || chmod(directory, 0755) || chdir(directory);
}

static int tear_down(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return chdir("/") || system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(good_programs),
	        cmocka_unit_test(missing),
	        cmocka_unit_test(not_files),
	        cmocka_unit_test(not_executable),
	        cmocka_unit_test(permissions_of_users),
	        cmocka_unit_test(noexec_mount),
	        cmocka_unit_test(unknown_formats),
	        cmocka_unit_test(good_scripts),
	        cmocka_unit_test(bad_scripts),
	        cmocka_unit_test(scripts_without_interpreter),
	        cmocka_unit_test(scripts_of_scripts),
	        cmocka_unit_test(other_machines),
	        cmocka_unit_test(not_programs),
	        cmocka_unit_test(truncated),
	        cmocka_unit_test(bad_headers),
	        cmocka_unit_test(bad_segments),
	        cmocka_unit_test(overlapping_segments),
	        cmocka_unit_test(loaders),
	        cmocka_unit_test(its_own_loader),
	        cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
