/*
 * Confinement in replay. What runs here came from a file that somebody sent: its system
 * calls are never made, but a store of it may hit the stub itself, which makes some. So
 * the kernel is told to allow those that replay needs, and nothing else.
 */
#include "target/stub.h"

#define PR_SET_NO_NEW_PRIVS 38
#define PR_SET_PDEATHSIG    1
#define SECCOMP_SET_FILTER  1
#define RETURN_ALLOW        0x7fff0000u
#define RETURN_KILL         0x80000000u
#define ARCH_X86_64         0xc000003eu

/* struct sock_filter and struct sock_fprog: the kernel's ABI */
struct filter {
	uint16_t code;
	uint8_t if_true, if_false;
	uint32_t value;
};
struct filter_program {
	uint16_t length;
	const struct filter *filters;
};

#define LOAD(offset)                                                                                         \
	{                                                                                                    \
		0x20, 0, 0, offset                                                                           \
	}
#define JUMP_IF(value, skip)                                                                                 \
	{                                                                                                    \
		0x15, skip, 0, value                                                                         \
	}
#define SKIP_UNLESS(value, n)                                                                                \
	{                                                                                                    \
		0x15, 0, n, value                                                                            \
	}
#define RETURN(value)                                                                                        \
	{                                                                                                    \
		0x06, 0, 0, value                                                                            \
	}

#define DATA_NUMBER       0 /* offsets in struct seccomp_data */
#define DATA_ARCHITECTURE 4
#define DATA_ARGUMENT_0   16

#define CLONE_FLAGS     (K_CLONE_PARENT | K_SIGCHLD) /* see park.c */
#define PARKING_FILTERS 11

void confine(bool parking)
{
	static const struct filter filters[] = {
	        /* only where there are parked processes */
	        LOAD(DATA_ARCHITECTURE),
	        SKIP_UNLESS(ARCH_X86_64, 9),
	        LOAD(DATA_NUMBER),
	        JUMP_IF(__NR_getppid, 6),
	        SKIP_UNLESS(__NR_prctl, 2),
	        LOAD(DATA_ARGUMENT_0),
	        JUMP_IF(PR_SET_PDEATHSIG, 3),
	        SKIP_UNLESS(__NR_clone, 3),
	        LOAD(DATA_ARGUMENT_0),
	        SKIP_UNLESS(CLONE_FLAGS, 1),
	        RETURN(RETURN_ALLOW),
	        /* everywhere; PARKING_FILTERS are before this */
	        LOAD(DATA_ARCHITECTURE),
	        SKIP_UNLESS(ARCH_X86_64, 14),
	        LOAD(DATA_NUMBER),
	        JUMP_IF(__NR_mmap, 13),
	        JUMP_IF(__NR_munmap, 12),
	        JUMP_IF(__NR_futex, 11),
	        JUMP_IF(__NR_rt_sigreturn, 10),
	        JUMP_IF(__NR_exit_group, 9),
	        /* the stub's last words, and its end */
	        JUMP_IF(__NR_rt_sigaction, 8),
	        JUMP_IF(__NR_rt_sigprocmask, 7),
	        JUMP_IF(__NR_getpid, 6),
	        JUMP_IF(__NR_gettid, 5),
	        JUMP_IF(__NR_tgkill, 4),
	        SKIP_UNLESS(__NR_write, 2),
	        LOAD(DATA_ARGUMENT_0),
	        JUMP_IF(2, 1),
	        RETURN(RETURN_KILL),
	        RETURN(RETURN_ALLOW),
	};
	unsigned first = parking ? 0 : PARKING_FILTERS;
	struct filter_program program = {sizeof filters / sizeof *filters - first, filters + first};

	/* A kernel without it has nothing to confine with. */
	if (syscall5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		syscall3(__NR_seccomp, SECCOMP_SET_FILTER, 0, &program);
}
