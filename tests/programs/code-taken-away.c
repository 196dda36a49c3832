/*
 * Code that is taken away or replaced by calls other than munmap: what may not be executed any more must not be, and
 * old code must not go on running.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define MSEAL           462
#define PROCESS_MADVISE 440

static sigjmp_buf before;

static void caught(int number)
{
	siglongjmp(before, number);
}

/* What the code returns, or the signal that it ended with, negative. */
static int try(void *code)
{
	int number = sigsetjmp(before, 1);

	return number ? -number : ((int (*)(void))code)();
}

static void write_code(unsigned char *code, int value)
{
	memcpy(code, "\xb8\0\0\0\0\xc3", 6);
	memcpy(code + 1, &value, 4);
}

static unsigned char *make_code(int value)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(code != MAP_FAILED);
	write_code(code, value);
	return code;
}

static void protections(void)
{
	for (int from = 4; from < 8; from++) {
		for (int to = 0; to < 4; to++) {
			unsigned char *code = make_code(6);
			CHECK_EQ(mprotect(code, 4096, from), 0);
			CHECK_EQ(mprotect(code, 4096, to), 0);
			CHECK_EQ(try(code), -SIGSEGV);
			munmap(code, 4096);
		}
	}
}

static void heap(void)
{
	char *end = (char *)(((uintptr_t)sbrk(0) + 4095) & -4096ul);

	CHECK_EQ(brk(end + 4096), 0);
	CHECK_EQ(mprotect(end, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	write_code((unsigned char *)end, 7);
	CHECK_EQ(try(end), 7);
	CHECK_EQ(brk(end), 0);
	CHECK_EQ(try(end), -SIGSEGV);
}

static int status_in_child(void *code)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		int result = try(code);
		_exit(result < 0 ? 100 - result : result);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void forks(void)
{
	unsigned char *code = make_code(8), *other = make_code(9);

	CHECK_EQ(try(code), 8);
	CHECK_EQ(try(other), 9);
	CHECK_EQ(madvise(code, 4096, MADV_DONTFORK), 0);
	CHECK_EQ(status_in_child(code), 100 + SIGSEGV);
	CHECK_EQ(status_in_child(other), 9);
	write_code(other, 10);
	CHECK_EQ(try(other), 10);
	CHECK_EQ(try(code), 8);
}

/* Both calls tell of everything; pages that were watched before must still be found writable. */
static void advice(void)
{
	unsigned char *code = make_code(3), *other = make_code(4);
	struct iovec range = {code, 4096};
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	CHECK_EQ(try(code), 3);
	CHECK_EQ(try(other), 4);
	if (self >= 0 && syscall(PROCESS_MADVISE, self, &range, 1, MADV_DONTNEED, 0) == 4096) {
		CHECK_EQ(code[0], 0);
		write_code(code, 5);
		CHECK_EQ(try(code), 5);
	}
	int segment = shmget(IPC_PRIVATE, 4096, 0600);
	if (segment >= 0) {
		void *memory = shmat(segment, NULL, 0);
		CHECK(memory != (void *)-1);
		shmctl(segment, IPC_RMID, NULL);
		shmdt(memory);
	}
	write_code(other, 6);
	CHECK_EQ(try(other), 6);
}

static void seals(void)
{
	unsigned char *run = make_code(1), *fresh = make_code(2);

	CHECK_EQ(try(run), 1);
	if (syscall(MSEAL, run, 4096, 0) != 0)
		return; /* an old kernel */
	write_code(run, 11);
	CHECK_EQ(try(run), 11);
	CHECK_EQ(syscall(MSEAL, fresh, 4096, 0), 0);
	CHECK_EQ(try(fresh), 2);
	write_code(fresh, 12);
	CHECK_EQ(try(fresh), 12);
}

static void private_alias(void)
{
	int file = memfd_create("code", 0);

	CHECK(file >= 0);
	CHECK_EQ(ftruncate(file, 4096), 0);
	unsigned char *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	CHECK(writable != MAP_FAILED && code != MAP_FAILED);
	for (int i = 1; i < 5; i++) {
		write_code(writable, i);
		CHECK_EQ(try(code), i);
	}
}

int main(void)
{
	signal(SIGSEGV, caught);
	signal(SIGBUS, caught);
	protections();
	heap();
	forks();
	advice();
	seals();
	private_alias();
	return done();
}
