/*
 * The kernel's interface as the stub needs it: system calls and the structures
 * of signal delivery. These are the kernel's, external ABI, not to be changed.
 */
#ifndef BUGNET_TARGET_KERNEL_H
#define BUGNET_TARGET_KERNEL_H

#include <stdint.h>
#include <asm/unistd_64.h>

static inline long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
}
#define syscall0(n)                syscall6(n, 0, 0, 0, 0, 0, 0)
#define syscall1(n, a)             syscall6(n, (long)(a), 0, 0, 0, 0, 0)
#define syscall2(n, a, b)          syscall6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define syscall3(n, a, b, c)       syscall6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define syscall4(n, a, b, c, d)    syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define syscall5(n, a, b, c, d, e) syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#define K_EPERM  1
#define K_EINTR  4
#define K_E2BIG  7
#define K_EAGAIN 11
#define K_ENOMEM 12
#define K_EFAULT 14
#define K_EEXIST 17
#define K_ENODEV 19
#define K_EINVAL 22
#define K_ENOSYS 38

static inline bool is_error(uint64_t result)
{
	return result > -4096ul;
}

/* signals */
#define K_SIGINT  2
#define K_SIGQUIT 3
#define K_SIGILL  4
#define K_SIGTRAP 5
#define K_SIGABRT 6
#define K_SIGBUS  7
#define K_SIGFPE  8
#define K_SIGKILL 9
#define K_SIGSEGV 11
#define K_SIGSTOP 19
#define K_SIGXCPU 24
#define K_SIGXFSZ 25
#define K_SIGSYS  31
#define SIGBIT(n) (1ul << ((n)-1))

/* What faults raise: never blocked in the kernel, see kernel_mask_for. */
#define FAULT_SIGNALS                                                                                        \
	(SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS) | SIGBIT(K_SIGFPE) | SIGBIT(K_SIGILL) | SIGBIT(K_SIGTRAP))
/* What makes a core file by default. */
#define CORE_SIGNALS                                                                                         \
	(FAULT_SIGNALS | SIGBIT(K_SIGQUIT) | SIGBIT(K_SIGABRT) | SIGBIT(K_SIGSYS) | SIGBIT(K_SIGXCPU) |      \
	        SIGBIT(K_SIGXFSZ))
/* What ends a process by default, without a core file: all but those that stop it, let it go on, or do
 * nothing. */
#define K_SIGCHLD  17
#define K_SIGCONT  18
#define K_SIGTSTP  20
#define K_SIGTTIN  21
#define K_SIGTTOU  22
#define K_SIGURG   23
#define K_SIGWINCH 28
#define TERMINATING_SIGNALS                                                                                  \
	(~(CORE_SIGNALS | SIGBIT(K_SIGKILL) | SIGBIT(K_SIGSTOP) | SIGBIT(K_SIGCHLD) | SIGBIT(K_SIGCONT) |    \
	        SIGBIT(K_SIGTSTP) | SIGBIT(K_SIGTTIN) | SIGBIT(K_SIGTTOU) | SIGBIT(K_SIGURG) |               \
	        SIGBIT(K_SIGWINCH)))
#define UNBLOCKABLE (SIGBIT(K_SIGKILL) | SIGBIT(K_SIGSTOP))

#define K_SIG_DFL 0ul
#define K_SIG_IGN 1ul

#define K_SA_NOCLDSTOP 1ul
#define K_SA_NOCLDWAIT 2ul
#define K_SA_SIGINFO   4ul
#define K_SA_RESTORER  0x04000000ul
#define K_SA_ONSTACK   0x08000000ul
#define K_SA_RESTART   0x10000000ul
#define K_SA_NODEFER   0x40000000ul
#define K_SA_RESETHAND 0x80000000ul
#define K_SA_KNOWN     (7ul | 0x800ul | 0xdc000000ul)

#define K_SS_ONSTACK    1
#define K_SS_DISABLE    2
#define K_SS_AUTODISARM 0x80000000u
#define K_MINSIGSTKSZ   2048

#define K_SIG_BLOCK   0
#define K_SIG_UNBLOCK 1
#define K_SIG_SETMASK 2

#define K_SI_TKILL      (-6)
#define K_SI_KERNEL     0x80
#define K_RLIMIT_DATA   2
#define K_RLIMIT_AS     9
#define K_RLIM_INFINITY (~0ul)
#define K_TRAP_TRACE    2
#define K_SYS_SECCOMP   1

struct kernel_stack {
	uint64_t base;
	uint32_t flags;
	uint32_t padding;
	uint64_t size;
};

struct kernel_siginfo {
	int32_t number;
	int32_t error;
	int32_t code;
	int32_t padding;
	union {
		uint64_t address; /* faults; call address of SIGSYS */
		uint64_t rest[14];
	};
};

struct kernel_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
};

struct kernel_ucontext {
	uint64_t flags;
	uint64_t link;
	struct kernel_stack stack;
	struct kernel_sigcontext mcontext;
	uint64_t mask;
};

struct signal_frame {
	uint64_t restorer;
	struct kernel_ucontext context;
	struct kernel_siginfo siginfo;
};

/* The software-reserved bytes of an fxsave image in a signal frame. */
#define FPSTATE_SOFTWARE 464
#define FPSTATE_MAGIC1   0x46505853u
#define FPSTATE_MAGIC2   0x46505845u /* behind the extended state */
#define FPSTATE_LEGACY   512
struct fpstate_software {
	uint32_t magic1;
	uint32_t extended_size;
	uint64_t features;
	uint32_t size;
	uint32_t padding[7];
};

/* What a signal context tells of the fault besides the registers. */
struct fault_details {
	uint64_t err, trapno, cr2;
	uint64_t flags;
	uint16_t cs, gs, fs, ss;
};

#define TRAP_STACK       12
#define TRAP_PROTECTION  13
#define TRAP_PAGE_FAULT  14
#define TRAP_ALIGNMENT   17
#define PAGE_FAULT_WRITE 2
#define FLAG_SF          0x80ul
#define FLAG_TF          0x100ul
#define FLAG_NT          0x4000ul
#define FLAG_RF          0x10000ul
#define FLAG_AC          0x40000ul
/* What rt_sigreturn takes from a frame (RF means nothing to translated code). */
#define SIGRETURN_FLAGS  0x40dd5ul
#define FLAG_DF          0x400ul

/* memory */
#define K_PROT_NONE           0
#define K_PROT_READ           1
#define K_PROT_WRITE          2
#define K_PROT_EXEC           4
#define K_MAP_SHARED          1
#define K_MAP_PRIVATE         2
#define K_MAP_FIXED           0x10
#define K_MAP_ANONYMOUS       0x20
#define K_MAP_32BIT           0x40
#define K_MAP_GROWSDOWN       0x100
#define K_MAP_NORESERVE       0x4000
#define K_MAP_FIXED_NOREPLACE 0x100000
#define K_MREMAP_MAYMOVE      1
#define K_MREMAP_FIXED        2
#define K_MREMAP_DONTUNMAP    4
#define K_NR_process_madvise  440
#define K_NR_mseal            462
#define K_MADV_DONTNEED       4
#define K_MADV_DONTFORK       10
#define K_MADV_WIPEONFORK     18
#define K_MADV_DONTDUMP       16
#define K_MADV_POPULATE_WRITE 23

/* processes */
#define K_CLONE_VM            0x100ul
#define K_CLONE_PIDFD         0x1000ul
#define K_CLONE_SIGHAND       0x800ul
#define K_CLONE_VFORK         0x4000ul
#define K_CLONE_PARENT        0x8000ul
#define K_CLONE_THREAD        0x10000ul
#define K_CLONE_PARENT_SETTID 0x100000ul
#define K_CLONE_CLEAR_SIGHAND 0x100000000ul
#define K_SIGCHLD             17

#define K_FUTEX_WAIT 0
#define K_FUTEX_WAKE 1

struct kernel_timespec {
	int64_t seconds, nanoseconds;
};

#endif
