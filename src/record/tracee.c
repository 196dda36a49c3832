#include "record/tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
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

/* Did the instruction itself fault? It would do so for ever. */
static bool has_faulted(const struct tracee *tracee, int signal)
{
	siginfo_t info;

	return (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL) &&
	       ptrace(PTRACE_GETSIGINFO, tracee->pid, 0, &info) == 0 && info.si_code > 0;
}

/* The next stop at a system call, its entry or its end; -errno: there is none. Signals come later. */
static int go_to_call(struct tracee *tracee)
{
	for (;;) {
		struct __ptrace_syscall_info info = {.op = PTRACE_SYSCALL_INFO_NONE};
		int status;
		if (ptrace(PTRACE_SYSCALL, tracee->pid, 0, 0) < 0 ||
		        waitpid(tracee->pid, &status, __WALL) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 16)
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->pid, sizeof info, &info) < 0)
			return -errno;
		if (info.op != PTRACE_SYSCALL_INFO_NONE)
			return info.op;
		if (has_faulted(tracee, WSTOPSIG(status)))
			return -EFAULT;
		tracee->signals |= 1ul << WSTOPSIG(status);
	}
}

/*
 * It stops at the call, not by a step over it: for the trap of a step the kernel forgets the handler of a
 * program that blocks SIGTRAP, and that another one ignores it.
 */
int64_t tracee_syscall(struct tracee *tracee, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
        uint64_t e, uint64_t f)
{
	struct user_regs_struct call = tracee->registers, registers;
	int stop;

	call.rax = (uint64_t)number;
	call.orig_rax = (uint64_t)-1;
	call.rdi = a;
	call.rsi = b;
	call.rdx = c;
	call.r10 = d;
	call.r8 = e;
	call.r9 = f;
	call.rip = tracee->syscall_address;
	/* The first stop may only be the end of the execve it stopped in, with that one's result. */
	do {
		if (ptrace(PTRACE_SETREGS, tracee->pid, 0, &call) < 0)
			return -errno;
		stop = go_to_call(tracee);
	} while (stop == PTRACE_SYSCALL_INFO_EXIT);
	if (stop > 0)
		stop = go_to_call(tracee);
	if (stop < 0)
		return stop;
	return ptrace(PTRACE_GETREGS, tracee->pid, 0, &registers) < 0 ? -errno : (int64_t)registers.rax;
}
