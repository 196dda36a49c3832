/*
 * The kernel writes code that has run before: read, pread, readv, recv, process_vm_writev,
 * mremap onto it, madvise that zeroes it, a write to the file behind it; and another process through shared
 * memory.
 */
#include "emit.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096ul

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

int main(void)
{
	uint8_t *page =
	        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t buffer[64];
	int fds[2], pair[2];

	CHECK(page != MAP_FAILED);
	CHECK(!pipe(fds));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	memset(buffer, 0xcc, sizeof buffer);
	emit_constant(page, -1);
	CHECK_EQ(call(page, 0), -1);
	for (int i = 0; i < 1000; i++) {
		emit_constant(buffer, i);
		CHECK_EQ(write(fds[1], buffer, 16), 16);
		CHECK_EQ(read(fds[0], page, 16), 16);
		CHECK_EQ(call(page, 0), i);
		emit_add(buffer, i);
		CHECK_EQ(write(fds[1], buffer, 16), 16);
		struct iovec vector[2] = {{page, 3}, {page + 3, 13}};
		CHECK_EQ(readv(fds[0], vector, 2), 16);
		CHECK_EQ(call(page, 3), i + 3);
		emit_multiply(buffer, i);
		CHECK_EQ(send(pair[0], buffer, 16, 0), 16);
		CHECK_EQ(recv(pair[1], page, 16, MSG_WAITALL), 16);
		CHECK_EQ(call(page, 3), i * 3);
	}
	puts("read, readv, recv");

	int file = memfd_create("file", MFD_CLOEXEC);
	CHECK(!ftruncate(file, 2 * PAGE));
	for (int i = 0; i < 500; i++) {
		emit_constant(buffer, i);
		CHECK_EQ(pwrite(file, buffer, 16, 0), 16);
		CHECK_EQ(pread(file, page, 16, 0), 16);
		CHECK_EQ(call(page, 0), i);
	}
	/* The file is mapped executable; writes to it appear there. */
	uint8_t *mapped = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
	CHECK(mapped != MAP_FAILED);
	for (int i = 0; i < 500; i++) {
		emit_add(buffer, i);
		CHECK_EQ(pwrite(file, buffer, 16, 0), 16);
		CHECK_EQ(call(mapped, 1), i + 1);
	}
	puts("the file behind it");

	for (int i = 0; i < 200; i++) {
		emit_multiply(buffer, i);
		struct iovec local = {buffer, 16}, remote = {page, 16};
		if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != 16)
			break; /* forbidden here: fine */
		CHECK_EQ(call(page, 9), i * 9);
	}
	puts("process_vm_writev");

	for (int i = 0; i < 300; i++) {
		uint8_t *other = mmap(
		        NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(other != MAP_FAILED);
		emit_constant(other + 8, i);
		CHECK_EQ(call(other + 8, 0), i);
		CHECK_EQ(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page), page);
		CHECK_EQ(call(page + 8, 0), i);
	}
	puts("mremap");

	struct sigaction action = {.sa_handler = on_fault};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	for (int i = 0; i < 100; i++) {
		emit_constant(page, i);
		CHECK_EQ(call(page, 0), i);
		CHECK(!madvise(page, PAGE, MADV_DONTNEED));
		/* zeros: add %al, (%rax) with rax 0 */
		int sig = sigsetjmp(back, 1);
		if (!sig) {
			asm volatile("xorl %%eax, %%eax; call *%0" : : "r"(page) : "rax", "memory", "cc");
			fail("zeros ran");
		}
		CHECK_EQ(sig, SIGSEGV);
	}
	puts("madvise");

	uint8_t *shared =
	        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	int to[2], from[2];
	char byte;
	CHECK(!pipe(to));
	CHECK(!pipe(from));
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < 1000; i++) {
			CHECK_EQ(read(to[0], &byte, 1), 1);
			emit_constant(shared + 128, i * 7);
			CHECK_EQ(write(from[1], "x", 1), 1);
		}
		_exit(0);
	}
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(write(to[1], "x", 1), 1);
		CHECK_EQ(read(from[0], &byte, 1), 1);
		CHECK_EQ(call(shared + 128, 0), i * 7);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	puts("another process");
	return done();
}
