/* run: | --children */
/*
 * What a program knows of itself at its start: argv, environment, auxiliary vector and initial stack agree
 * with each other, with /proc and with the ELF file.
 */
#include "check.h"
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/wait.h>

extern char **environ;
extern char _start[], __ehdr_start[], _end[], etext[];

static size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	size_t at = 0;
	ssize_t got;
	while ((got = read(fd, text + at, size - at)) > 0)
		at += (size_t)got;
	close(fd);
	return at;
}

static void check_block(const char *path, char **vector)
{
	static char text[1 << 20];
	size_t size = read_file(path, text, sizeof text), at = 0;
	for (; *vector; vector++) {
		CHECK(at < size);
		CHECK(!strcmp(text + at, *vector));
		at += strlen(text + at) + 1;
	}
	CHECK_EQ(at, size);
}

static void check_auxv(char **argv)
{
	static ElfW(auxv_t) from_kernel[100];
	size_t size = read_file("/proc/self/auxv", (char *)from_kernel, sizeof from_kernel);
	char **at = environ;
	while (*at)
		at++;
	ElfW(auxv_t) *auxv = (ElfW(auxv_t) *)(at + 1);

	/* The vector on the stack and the one in /proc: the same types in the same order. */
	unsigned count = 0;
	printf("auxv types:");
	do {
		CHECK_EQ(auxv[count].a_type, from_kernel[count].a_type);
		printf(" %lu", (unsigned long)auxv[count].a_type);
		if (auxv[count].a_type != AT_HWCAP2 && auxv[count].a_type != AT_HWCAP)
			CHECK_EQ(auxv[count].a_un.a_val, from_kernel[count].a_un.a_val);
	} while (auxv[count++].a_type != AT_NULL);
	printf("\n");
	CHECK(size >= count * sizeof *auxv);

	CHECK_EQ(getauxval(AT_PHDR), (unsigned long)__ehdr_start + ((ElfW(Ehdr) *)__ehdr_start)->e_phoff);
	CHECK_EQ(getauxval(AT_PHNUM), ((ElfW(Ehdr) *)__ehdr_start)->e_phnum);
	CHECK_EQ(getauxval(AT_PHENT), sizeof(ElfW(Phdr)));
	CHECK_EQ(getauxval(AT_ENTRY), _start);
	CHECK_EQ(getauxval(AT_PAGESZ), sysconf(_SC_PAGESIZE));
	CHECK_EQ(getauxval(AT_UID), getuid());
	CHECK_EQ(getauxval(AT_EUID), geteuid());
	CHECK_EQ(getauxval(AT_GID), getgid());
	CHECK_EQ(getauxval(AT_EGID), getegid());
	CHECK_EQ(getauxval(AT_SECURE), 0);
	CHECK_EQ(getauxval(AT_CLKTCK), sysconf(_SC_CLK_TCK));
	CHECK(getauxval(AT_RANDOM) > (unsigned long)argv);
	CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
	printf("execfn %s\n", basename((char *)getauxval(AT_EXECFN)));
	CHECK_EQ(access((char *)getauxval(AT_EXECFN), X_OK), 0);
	/* The vdso is an ELF image, where the program finds it. */
	CHECK(!memcmp((void *)getauxval(AT_SYSINFO_EHDR), ELFMAG, SELFMAG));
	unsigned char *random = (unsigned char *)getauxval(AT_RANDOM), sum = 0;
	for (int i = 0; i < 16; i++)
		sum |= random[i];
	CHECK(sum);
	unsigned long base = getauxval(AT_BASE);
	printf("interpreter %s\n", base ? "yes" : "no");
	if (base)
		CHECK(!memcmp((void *)base, ELFMAG, SELFMAG));
}

static void check_stack(int argc, char **argv)
{
	CHECK_EQ(((long *)argv)[-1], argc);
	CHECK(argv[argc] == NULL);
	CHECK(environ == argv + argc + 1);
	/* The strings follow each other: arguments, then environment, then the file name. */
	char *at = argv[0];
	for (int i = 0; i < argc; i++) {
		CHECK(argv[i] == at);
		at += strlen(at) + 1;
	}
	for (char **e = environ; *e; e++) {
		CHECK(*e == at);
		at += strlen(at) + 1;
	}
	CHECK_EQ(at, getauxval(AT_EXECFN));
	/* All that lies in the mapping the kernel calls [stack]. */
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long start, end;
	int found = 0;
	CHECK(maps);
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			CHECK((unsigned long)&found >= start && (unsigned long)at < end);
			/* The name is the last string; the kernel leaves one empty word above it. */
			CHECK_EQ(end, (unsigned long)at + strlen(at) + 1 + sizeof(void *));
			found++;
		}
	fclose(maps);
	CHECK_EQ(found, 1);
}

int main(int argc, char **argv)
{
	char self[4096], name[64];

	printf("argc %d\n", argc);
	for (int i = 1; i < argc; i++)
		printf("argument %d: %s\n", i, argv[i]);
	check_stack(argc, argv);
	check_auxv(argv);
	check_block("/proc/self/cmdline", argv);
	check_block("/proc/self/environ", environ);
	ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(size > 0);
	self[size] = 0;
	printf("exe %s\n", basename(self));
	memset(name, 0, sizeof name);
	read_file("/proc/self/comm", name, sizeof name - 1);
	printf("comm %s", name);
	printf("program name %s\n", program_invocation_short_name);
	fflush(stdout);
	if (argc == 1) {
		pid_t child = fork();
		if (child == 0) {
			char *arguments[] = {"another name", "one", "", "three with spaces", NULL};
			char *environment[] = {"ONLY=this", NULL};
			execve("/proc/self/exe", arguments, environment);
			_exit(1);
		}
		int status;
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
	return done();
}
