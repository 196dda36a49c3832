/* run: | --children */
/*
 * execve: with an empty environment, with long arguments, by descriptor (fexecve, execveat), of scripts,
 * chains of execs, descriptors closed on exec or kept, and every way to fail with the program going on.
 */
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static int run(const char *path, char **argv, char **env, int fd)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (fd < 0)
			execve(path, argv, env);
		else if (path)
			syscall(SYS_execveat, fd, path, argv, env, path[0] ? 0 : 0x1000);
		else
			fexecve(fd, argv, env);
		fail("exec of %s: %s", path ? path : "descriptor", strerror(errno));
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK(!fchmod(fd, mode));
	close(fd);
}

static int as_child(int argc, char **argv)
{
	uint64_t sum = 0;
	if (!strcmp(argv[1], "chain")) {
		int left = atoi(argv[2]);
		char next[16];
		if (!left) {
			puts("end of the chain");
			return 0;
		}
		snprintf(next, sizeof next, "%d", left - 1);
		execl("/proc/self/exe", argv[0], "chain", next, NULL);
		return 1;
	}
	for (int i = 0; i < argc; i++)
		for (char *c = argv[i]; *c; c++)
			sum = mix(sum, (unsigned char)*c);
	int variables = 0;
	for (char **e = environ; *e; e++, variables++)
		for (char *c = *e; *c; c++)
			sum = mix(sum, (unsigned char)*c);
	printf("argc %d, %d variables, sum %llx, fd 10 %s, fd 11 %s\n", argc, variables, (long long)sum,
	        fcntl(10, F_GETFD) < 0 ? "closed" : "open", fcntl(11, F_GETFD) < 0 ? "closed" : "open");
	return 7;
}

int main(int argc, char **argv)
{
	char self[4096];

	if (argc > 1)
		return as_child(argc, argv);
	ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(size > 0);
	self[size] = 0;
	int null = open("/dev/null", O_RDONLY);
	CHECK_EQ(dup2(null, 10), 10);
	CHECK_EQ(dup3(null, 11, O_CLOEXEC), 11);

	char *empty[] = {NULL}, *plain[] = {"program", "child", NULL};
	CHECK_EQ(run(self, plain, empty, -1), 7 << 8);

	/* Many and long arguments: 100 000 bytes in one, 5 000 of them. */
	static char big[100001];
	static char *many[5003];
	memset(big, 'x', sizeof big - 1);
	for (int i = 0; i < 5002; i++)
		many[i] = i == 1 ? "child" : i == 2000 ? big : "argument";
	char *env[] = {"A=1", "B=", "=C", "no equals sign", big, NULL};
	CHECK_EQ(run(self, many, env, -1), 7 << 8);

	int fd = open(self, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(run(NULL, plain, empty, fd), 7 << 8);
	CHECK_EQ(run("", plain, empty, fd), 7 << 8);
	int directory = open("/", O_PATH | O_DIRECTORY);
	CHECK_EQ(run(self + 1, plain, empty, directory), 7 << 8);

	char *chain[] = {"program", "chain", "30", NULL};
	CHECK_EQ(run(self, chain, empty, -1), 0);

	/* Scripts. */
	char script[5000];
	write_file("script", "#!/bin/sh\necho script \"$0\" \"$@\"\nexit 8\n", 0755);
	char *script_argv[] = {"ignored", "a b", "c", NULL};
	CHECK_EQ(run("./script", script_argv, environ, -1), 8 << 8);
	snprintf(script, sizeof script, "#! %s child \n", self);
	write_file("script2", script, 0755);
	CHECK_EQ(run("./script2", plain, empty, -1), 7 << 8);
	write_file("nested", "#!./script2\n", 0755);
	CHECK_EQ(run("./nested", plain, empty, -1), 7 << 8);

	/* Failures leave the program as it was. */
	write_file("not-executable", "#!/bin/sh\n", 0644);
	write_file("garbage", "neither ELF nor script", 0755);
	write_file("no-interpreter", "#!/no/such/interpreter\n", 0755);
	write_file("empty", "", 0755);
	CHECK(!mkdir("directory", 0755));
	CHECK(!symlink("loop", "loop"));
	CHECK_ERRNO(execve("/nonexistent", plain, empty), ENOENT);
	CHECK_ERRNO(execve("", plain, empty), ENOENT);
	CHECK_ERRNO(execve("./not-executable", plain, empty), EACCES);
	CHECK_ERRNO(execve("./directory", plain, empty), EACCES);
	CHECK_ERRNO(execve("./garbage", plain, empty), ENOEXEC);
	CHECK_ERRNO(execve("./empty", plain, empty), ENOEXEC);
	CHECK_ERRNO(execve("./no-interpreter", plain, empty), ENOENT);
	CHECK_ERRNO(execve("./loop", plain, empty), ELOOP);
	CHECK_ERRNO(execve("./script/x", plain, empty), ENOTDIR);
	CHECK_ERRNO(syscall(SYS_execve, 8, plain, empty), EFAULT);
	CHECK_ERRNO(syscall(SYS_execve, self, 8, empty), EFAULT);
	CHECK_ERRNO(syscall(SYS_execveat, 99, "", plain, empty, 0x1000), EBADF);
	static char huge[200000];
	memset(huge, 'y', sizeof huge - 1);
	char *too_long[] = {"program", huge, NULL};
	CHECK_ERRNO(execve(self, too_long, empty), E2BIG);
	int writing = open("busy", O_CREAT | O_RDWR, 0755);
	CHECK_EQ(write(writing, "x", 1), 1);
	CHECK_ERRNO(execve("./busy", plain, empty), ETXTBSY);
	CHECK_EQ(compute(1, 100), compute(1, 100));
	return done();
}
