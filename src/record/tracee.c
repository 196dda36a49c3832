#include "record/tracee.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define VDSO_SEARCHED 8192

int tracee_read(struct tracee *tracee, uint64_t address, void *bytes, size_t size)
{
	ssize_t n = pread(tracee->mem_fd, bytes, size, (off_t)address);
	return n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
}

int tracee_write(struct tracee *tracee, uint64_t address, const void *bytes, size_t size)
{
	ssize_t n = pwrite(tracee->mem_fd, bytes, size, (off_t)address);
	return n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
}

/* The vdso falls back on system calls, so it has the instruction; else one is written at the pc for a while.
 */
static int find_syscall(struct tracee *tracee, uint64_t vdso)
{
	uint8_t code[VDSO_SEARCHED];
	ssize_t size = vdso ? pread(tracee->mem_fd, code, sizeof code, (off_t)vdso) : 0;

	/* mov eax, NUMBER; syscall: the two bytes alone may be part of something else. */
	for (ssize_t i = 0; i + 6 < size; i++) {
		static const uint8_t end[] = {0, 0, 0, 0x0f, 0x05};
		if (code[i] == 0xb8 && memcmp(&code[i + 2], end, sizeof end) == 0) {
			tracee->syscall_address = vdso + (uint64_t)i + 5;
			return 0;
		}
	}
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, tracee->pid, tracee->registers.rip, 0);
	if (errno)
		return -errno;
	tracee->patched = (uint64_t)word;
	tracee->patch_address = tracee->registers.rip;
	if (ptrace(PTRACE_POKETEXT, tracee->pid, tracee->registers.rip, (word & ~0xffffl) | 0x050f) < 0)
		return -errno;
	tracee->syscall_address = tracee->registers.rip;
	return 0;
}

int tracee_init(struct tracee *tracee, pid_t pid, int mem_fd, uint64_t vdso)
{
	*tracee = (struct tracee){.pid = pid, .mem_fd = mem_fd};
	if (ptrace(PTRACE_GETREGS, pid, 0, &tracee->registers) < 0)
		return -errno;
	return find_syscall(tracee, vdso);
}

int tracee_deinit(struct tracee *tracee)
{
	if (tracee->patch_address &&
	        ptrace(PTRACE_POKETEXT, tracee->pid, tracee->patch_address, tracee->patched) < 0)
		return -errno;
	for (int i = 1; i < 64; i++) {
		if (tracee->signals >> i & 1)
			kill(tracee->pid, i);
	}
	return ptrace(PTRACE_SETREGS, tracee->pid, 0, &tracee->registers) < 0 ? -errno : 0;
}

int64_t tracee_syscall(struct tracee *tracee, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
        uint64_t e, uint64_t f)
{
	struct user_regs_struct call = tracee->registers, registers;
	int status;

	call.rax = (uint64_t)number;
	call.orig_rax = (uint64_t)-1;
	call.rdi = a;
	call.rsi = b;
	call.rdx = c;
	call.r10 = d;
	call.r8 = e;
	call.r9 = f;
	call.rip = tracee->syscall_address;
	/* The first step only ends the execve it stopped in, with that one's result: step until ours is
	 * behind. */
	do {
		if (ptrace(PTRACE_SETREGS, tracee->pid, 0, &call) < 0)
			return -errno;
		if (ptrace(PTRACE_SINGLESTEP, tracee->pid, 0, 0) < 0)
			return -errno;
		if (waitpid(tracee->pid, &status, __WALL) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (WSTOPSIG(status) != SIGTRAP && status >> 16 == 0)
			tracee->signals |= 1ul << WSTOPSIG(status);
		if (ptrace(PTRACE_GETREGS, tracee->pid, 0, &registers) < 0)
			return -errno;
	} while (registers.rip == tracee->syscall_address);
	return (int64_t)registers.rax;
}
