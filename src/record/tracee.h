/* A stopped process under ptrace, with PTRACE_O_TRACESYSGOOD: system calls and memory, on the way in. */
#ifndef BUGNET_RECORD_TRACEE_H
#define BUGNET_RECORD_TRACEE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tracee {
	pid_t pid;
	struct user_regs_struct registers; /* the program's, as it stopped */
	uint64_t syscall_address;          /* of a syscall instruction it may be put at */
	uint64_t patch_address,
	        patched; /* where one was written because none was found, and what was there */
	int mem_fd;
	uint64_t signals; /* that came meanwhile and are sent again at the end */
};

/* Returns 0 or -errno. */
int tracee_init(struct tracee *tracee, pid_t pid, int mem_fd, uint64_t vdso);
/* Puts registers and memory back as they were. */
int tracee_deinit(struct tracee *tracee);
/* Makes a system call in the tracee; the kernel's result, or -errno when tracing failed. */
int64_t tracee_syscall(struct tracee *tracee, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
        uint64_t e, uint64_t f);
int tracee_read(struct tracee *tracee, uint64_t address, void *bytes, size_t size);
int tracee_write(struct tracee *tracee, uint64_t address, const void *bytes, size_t size);

#endif
