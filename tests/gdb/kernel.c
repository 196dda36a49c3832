/*
 * What a program has the kernel do: memory is mapped, moved, protected and unmapped, a process is made, a signal with a
 * value comes. Then it prints its own mappings, and dies.
 *
 * gdb: its system calls, signals and processes are caught, and its mappings compared, by tests/gdb.sh.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

volatile int value;
pid_t child;

static void note(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	value = info->si_value.sival_int;
}

/* As they are: without a buffer of the library's, which would map more. */
static void print_mappings(void)
{
	static char text[65536];
	int file = open("/proc/self/maps", O_RDONLY);
	ssize_t size;

	while ((size = read(file, text, sizeof text)) > 0) {
		if (write(1, text, (size_t)size) != size)
			abort();
	}
	close(file);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
	int status;

	sigaction(SIGUSR2, &action, NULL);
	char *memory = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, 16 * PAGE);
	mprotect(memory + 4 * PAGE, 2 * PAGE, PROT_READ);
	munmap(memory + 8 * PAGE, PAGE);
	char *moved = mremap(memory + 12 * PAGE, 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	moved[5 * PAGE] = 1;
	char *large = malloc(100000);
	large[5] = 1;

	child = fork();
	if (child == 0)
		_exit(3);
	waitpid(child, &status, 0);

	sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 4711});
	print_mappings();
	abort();
}
