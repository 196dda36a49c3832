/*
 * What the arguments of system calls are, as far as somebody who lists calls wants to know.
 *
 * Two read this. Recording keeps the memory that arguments lead to, since nobody can ask the
 * kernel afterwards: what is listed here is loaded at the call, in the log's eyes, as far as
 * a listing shows it. Listings decode it. Nothing else depends on it: a call that is missing
 * here, or wrong, is recorded and replayed as exactly as any other.
 *
 * Freestanding.
 */
#ifndef BUGNET_RECORDING_SIGNATURES_H
#define BUGNET_RECORDING_SIGNATURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* How much of what arguments lead to is kept and shown. */
#define SIGNATURE_BYTES    32   /* of a buffer */
#define SIGNATURE_PATH     4096 /* of a text that ends with a zero, with it */
#define SIGNATURE_ELEMENTS 16   /* of an array */

enum structure {
	STRUCTURE_NONE,
	STRUCTURE_INT,
	STRUCTURE_INT_PAIR,
	STRUCTURE_LONG,
	STRUCTURE_WAIT_STATUS,
	STRUCTURE_STAT,
	STRUCTURE_STATX,
	STRUCTURE_STATFS,
	STRUCTURE_TIMESPEC,
	STRUCTURE_TIMEVAL,
	STRUCTURE_UTIMES,
	STRUCTURE_TIMEZONE,
	STRUCTURE_ITIMERVAL,
	STRUCTURE_ITIMERSPEC,
	STRUCTURE_RLIMIT,
	STRUCTURE_SIGACTION,
	STRUCTURE_SIGSET,
	STRUCTURE_SIGSTACK,
	STRUCTURE_SIGINFO,
	STRUCTURE_UTSNAME,
	STRUCTURE_RUSAGE,
	STRUCTURE_SYSINFO,
	STRUCTURE_TMS,
	STRUCTURE_TERMIOS,
	STRUCTURE_WINSIZE,
	STRUCTURE_FLOCK,
	STRUCTURE_EPOLL_EVENT,
	STRUCTURE_POLLFD,
	STRUCTURE_CLONE,
	STRUCTURE_IOVEC,
	STRUCTURE_MSGHDR,
	STRUCTURE_SIGSET_SIZED, /* pselect6: a pointer to a signal set, and its size */
	STRUCTURES
};

static const uint8_t structure_sizes[STRUCTURES] = {
        [STRUCTURE_INT] = 4,
        [STRUCTURE_INT_PAIR] = 8,
        [STRUCTURE_LONG] = 8,
        [STRUCTURE_WAIT_STATUS] = 4,
        [STRUCTURE_STAT] = 144,
        [STRUCTURE_STATX] = 128,
        [STRUCTURE_STATFS] = 120,
        [STRUCTURE_TIMESPEC] = 16,
        [STRUCTURE_TIMEVAL] = 16,
        [STRUCTURE_UTIMES] = 32,
        [STRUCTURE_TIMEZONE] = 8,
        [STRUCTURE_ITIMERVAL] = 32,
        [STRUCTURE_ITIMERSPEC] = 32,
        [STRUCTURE_RLIMIT] = 16,
        [STRUCTURE_SIGACTION] = 32,
        [STRUCTURE_SIGSET] = 8,
        [STRUCTURE_SIGSTACK] = 24,
        [STRUCTURE_SIGINFO] = 48,
        [STRUCTURE_UTSNAME] = 195,
        [STRUCTURE_RUSAGE] = 144,
        [STRUCTURE_SYSINFO] = 112,
        [STRUCTURE_TMS] = 32,
        [STRUCTURE_TERMIOS] = 36,
        [STRUCTURE_WINSIZE] = 8,
        [STRUCTURE_FLOCK] = 32,
        [STRUCTURE_EPOLL_EVENT] = 12,
        [STRUCTURE_POLLFD] = 8,
        [STRUCTURE_CLONE] = 64,
        [STRUCTURE_IOVEC] = 16,
        [STRUCTURE_MSGHDR] = 56,
        [STRUCTURE_SIGSET_SIZED] = 16,
};

/* Sets of named numbers: explain/vocabulary.c has the names. */
enum vocabulary {
	NAMES_OPEN = 1,
	NAMES_ACCESS,
	NAMES_AT,
	NAMES_AT_STATX,
	NAMES_PROTECTION,
	NAMES_MAP,
	NAMES_REMAP,
	NAMES_SYNC,
	NAMES_ADVICE,
	NAMES_FILE_ADVICE,
	NAMES_SEEK,
	NAMES_CLONE,
	NAMES_FUTEX,
	NAMES_FAMILY,
	NAMES_SOCKET,
	NAMES_MESSAGE,
	NAMES_SHUTDOWN,
	NAMES_LEVEL,
	NAMES_SOCKET_OPTION,
	NAMES_FCNTL,
	NAMES_IOCTL,
	NAMES_LOCK,
	NAMES_POLL,
	NAMES_EPOLL,
	NAMES_EPOLL_OPERATION,
	NAMES_SIGMASK,
	NAMES_SIGACTION,
	NAMES_SIGSTACK,
	NAMES_PRCTL,
	NAMES_ARCH_PRCTL,
	NAMES_CLOCK,
	NAMES_TIMER,
	NAMES_ITIMER,
	NAMES_RESOURCE,
	NAMES_USAGE,
	NAMES_WAIT,
	NAMES_WAIT_ID,
	NAMES_RANDOM,
	NAMES_RENAME,
	NAMES_STATX,
	NAMES_STATX_ATTRIBUTE,
	NAMES_EVENTFD,
	NAMES_TIMERFD,
	NAMES_SIGNALFD,
	NAMES_INOTIFY,
	NAMES_PIPE,
	NAMES_MEMFD,
	NAMES_MEMBARRIER,
	NAMES_RSEQ,
	NAMES_CLOSE_RANGE,
	NAMES_FALLOCATE,
	NAMES_DESCRIPTOR, /* FD_CLOEXEC */
	VOCABULARIES
};

/* The detail of a memory argument is a structure, or the number of the argument that has its size. */
enum argument_kind {
	ARGUMENT_NONE,
	/* numbers */
	ARGUMENT_INT,      /* 32 bits, signed */
	ARGUMENT_UNSIGNED, /* 32 bits */
	ARGUMENT_LONG,     /* signed */
	ARGUMENT_SIZE,     /* unsigned */
	ARGUMENT_HEX,
	ARGUMENT_POINTER, /* that nobody follows */
	ARGUMENT_MODE,    /* of a file, octal */
	ARGUMENT_DIRECTORY,
	ARGUMENT_SIGNAL,
	ARGUMENT_FLAGS,  /* names that are or-ed; detail: the vocabulary */
	ARGUMENT_CHOICE, /* one name */
	/* of those before them */
	ARGUMENT_PROTOCOL,
	ARGUMENT_FCNTL,
	ARGUMENT_IOCTL,
	ARGUMENT_OPTION, /* of a socket */
	ARGUMENT_TIMEOUT_MS,
	/* memory that the kernel reads */
	ARGUMENT_TEXT,
	ARGUMENT_TEXTS, /* pointers to texts, ended by NULL */
	ARGUMENT_ENVIRONMENT,
	ARGUMENT_BYTES,       /* detail: who has the size */
	ARGUMENT_STRUCT,      /* detail: the structure */
	ARGUMENT_VECTORS,     /* struct iovec; detail: who has the count */
	ARGUMENT_ADDRESS,     /* of a socket; detail: who has the size */
	ARGUMENT_MESSAGE,     /* struct msghdr */
	ARGUMENT_DESCRIPTORS, /* fd_set; the first argument is the number of bits */
	ARGUMENT_FUTEX_TIMEOUT,
	ARGUMENT_PRCTL,
	/* memory that the kernel writes */
	ARGUMENT_OUT,                     /* from here on */
	ARGUMENT_TEXT_OUT = ARGUMENT_OUT, /* result bytes, without a zero or with it */
	ARGUMENT_BYTES_OUT,               /* result bytes */
	ARGUMENT_STRUCT_OUT,
	ARGUMENT_VECTORS_OUT, /* result bytes in all */
	ARGUMENT_ADDRESS_OUT, /* detail: who leads to the size */
	ARGUMENT_SIZE_OUT,    /* socklen_t, read and written */
	ARGUMENT_MESSAGE_OUT,
	ARGUMENT_BITS_OUT,   /* processors: result bytes */
	ARGUMENT_EVENTS_OUT, /* struct epoll_event, result of them */
	/* both */
	ARGUMENT_POLL, /* struct pollfd; detail: who has the count */
};

/* Details of ARGUMENT_INT and ARGUMENT_TEXT, for those who look for such calls. */
#define SIGNATURE_IS_DESCRIPTOR 1
#define SIGNATURE_IS_PATH       1

struct argument {
	uint8_t kind, detail;
};

#define SIGNATURE_ARGUMENTS 6

struct signature {
	struct argument arguments[SIGNATURE_ARGUMENTS]; /* the first of kind ARGUMENT_NONE ends them */
	bool known;
};

/* Does the operation of a futex call take a timeout? */
static inline bool futex_has_timeout(uint64_t operation)
{
	unsigned command = operation & 0x7f;

	return command == 0 || command == 6 || command == 9 || command == 11 || command == 13;
}

/* What the third argument of an ioctl leads to, and whether the kernel writes it. */
static inline enum structure ioctl_structure(uint64_t request, bool *out)
{
	*out = true;
	switch ((uint32_t)request) {
	case 0x5401: /* TCGETS */
		return STRUCTURE_TERMIOS;
	case 0x5413: /* TIOCGWINSZ */
		return STRUCTURE_WINSIZE;
	case 0x540f: /* TIOCGPGRP */
	case 0x541b: /* FIONREAD */
	case 0x5429: /* TIOCGSID */
		return STRUCTURE_INT;
	default:
		break;
	}
	*out = false;
	switch ((uint32_t)request) {
	case 0x5402: /* TCSETS */
	case 0x5403: /* TCSETSW */
	case 0x5404: /* TCSETSF */
		return STRUCTURE_TERMIOS;
	case 0x5414: /* TIOCSWINSZ */
		return STRUCTURE_WINSIZE;
	case 0x5410: /* TIOCSPGRP */
	case 0x5421: /* FIONBIO */
		return STRUCTURE_INT;
	default:
		return STRUCTURE_NONE;
	}
}

/* Does the second argument of a prctl lead to a text? */
static inline bool prctl_has_text(uint64_t option)
{
	return (uint32_t)option == 15; /* PR_SET_NAME */
}

/* Does the command of an fcntl lead to a struct flock? */
static inline bool fcntl_has_lock(uint64_t command)
{
	return (command >= 5 && command <= 7) || (command >= 36 && command <= 38);
}

/* ---- the table ---- */

/* clang-format off */
#define INT        {ARGUMENT_INT, 0}
#define UNSIGNED   {ARGUMENT_UNSIGNED, 0}
#define LONG       {ARGUMENT_LONG, 0}
#define SIZE       {ARGUMENT_SIZE, 0}
#define HEX        {ARGUMENT_HEX, 0}
#define POINTER    {ARGUMENT_POINTER, 0}
#define MODE       {ARGUMENT_MODE, 0}
#define FD         {ARGUMENT_INT, SIGNATURE_IS_DESCRIPTOR}
#define DIRECTORY  {ARGUMENT_DIRECTORY, 0}
#define SIGNAL     {ARGUMENT_SIGNAL, 0}
#define TEXT       {ARGUMENT_TEXT, 0}
#define PATH       {ARGUMENT_TEXT, SIGNATURE_IS_PATH}
#define FLAGS(words)   {ARGUMENT_FLAGS, NAMES_##words}
#define CHOICE(words)  {ARGUMENT_CHOICE, NAMES_##words}
#define READS(name)    {ARGUMENT_STRUCT, STRUCTURE_##name}
#define WRITES(name)   {ARGUMENT_STRUCT_OUT, STRUCTURE_##name}
#define SIZED(kind, by) {ARGUMENT_##kind, by}
#define PLAIN(kind)    {ARGUMENT_##kind, 0}
#define CALL(name, ...) [SYS_##name] = {{__VA_ARGS__}, true}

static const struct signature signatures[] = {
	/* files */
	CALL(read, FD, SIZED(BYTES_OUT, 2), SIZE),
	CALL(write, FD, SIZED(BYTES, 2), SIZE),
	CALL(pread64, FD, SIZED(BYTES_OUT, 2), SIZE, LONG),
	CALL(pwrite64, FD, SIZED(BYTES, 2), SIZE, LONG),
	CALL(readv, FD, SIZED(VECTORS_OUT, 2), INT),
	CALL(writev, FD, SIZED(VECTORS, 2), INT),
	CALL(preadv, FD, SIZED(VECTORS_OUT, 2), INT, LONG),
	CALL(pwritev, FD, SIZED(VECTORS, 2), INT, LONG),
	CALL(open, PATH, FLAGS(OPEN), MODE),
	CALL(openat, DIRECTORY, PATH, FLAGS(OPEN), MODE),
	CALL(creat, PATH, MODE),
	CALL(close, FD),
	CALL(close_range, FD, FD, FLAGS(CLOSE_RANGE)),
	CALL(lseek, FD, LONG, CHOICE(SEEK)),
	CALL(stat, PATH, WRITES(STAT)),
	CALL(lstat, PATH, WRITES(STAT)),
	CALL(fstat, FD, WRITES(STAT)),
	CALL(newfstatat, DIRECTORY, PATH, WRITES(STAT), FLAGS(AT)),
	CALL(statx, DIRECTORY, PATH, FLAGS(AT_STATX), FLAGS(STATX), WRITES(STATX)),
	CALL(statfs, PATH, WRITES(STATFS)),
	CALL(fstatfs, FD, WRITES(STATFS)),
	CALL(access, PATH, FLAGS(ACCESS)),
	CALL(faccessat, DIRECTORY, PATH, FLAGS(ACCESS)),
	CALL(faccessat2, DIRECTORY, PATH, FLAGS(ACCESS), FLAGS(AT)),
	CALL(getdents64, FD, POINTER, SIZE),
	CALL(getdents, FD, POINTER, SIZE),
	CALL(getcwd, SIZED(TEXT_OUT, 1), SIZE),
	CALL(chdir, PATH),
	CALL(fchdir, FD),
	CALL(chroot, PATH),
	CALL(rename, PATH, PATH),
	CALL(renameat, DIRECTORY, PATH, DIRECTORY, PATH),
	CALL(renameat2, DIRECTORY, PATH, DIRECTORY, PATH, FLAGS(RENAME)),
	CALL(mkdir, PATH, MODE),
	CALL(mkdirat, DIRECTORY, PATH, MODE),
	CALL(rmdir, PATH),
	CALL(mknod, PATH, MODE, HEX),
	CALL(mknodat, DIRECTORY, PATH, MODE, HEX),
	CALL(link, PATH, PATH),
	CALL(linkat, DIRECTORY, PATH, DIRECTORY, PATH, FLAGS(AT)),
	CALL(symlink, PATH, PATH),
	CALL(symlinkat, PATH, DIRECTORY, PATH),
	CALL(unlink, PATH),
	CALL(unlinkat, DIRECTORY, PATH, FLAGS(AT)),
	CALL(readlink, PATH, SIZED(TEXT_OUT, 2), SIZE),
	CALL(readlinkat, DIRECTORY, PATH, SIZED(TEXT_OUT, 3), SIZE),
	CALL(chmod, PATH, MODE),
	CALL(fchmod, FD, MODE),
	CALL(fchmodat, DIRECTORY, PATH, MODE),
	CALL(chown, PATH, INT, INT),
	CALL(lchown, PATH, INT, INT),
	CALL(fchown, FD, INT, INT),
	CALL(fchownat, DIRECTORY, PATH, INT, INT, FLAGS(AT)),
	CALL(utimensat, DIRECTORY, PATH, READS(UTIMES), FLAGS(AT)),
	CALL(truncate, PATH, LONG),
	CALL(ftruncate, FD, LONG),
	CALL(fallocate, FD, FLAGS(FALLOCATE), LONG, LONG),
	CALL(fadvise64, FD, LONG, LONG, CHOICE(FILE_ADVICE)),
	CALL(fsync, FD),
	CALL(fdatasync, FD),
	CALL(sync),
	CALL(syncfs, FD),
	CALL(flock, FD, FLAGS(LOCK)),
	CALL(fcntl, FD, CHOICE(FCNTL), PLAIN(FCNTL)),
	CALL(ioctl, FD, CHOICE(IOCTL), PLAIN(IOCTL)),
	CALL(dup, FD),
	CALL(dup2, FD, FD),
	CALL(dup3, FD, FD, FLAGS(PIPE)),
	CALL(pipe, WRITES(INT_PAIR)),
	CALL(pipe2, WRITES(INT_PAIR), FLAGS(PIPE)),
	CALL(umask, MODE),
	CALL(sendfile, FD, FD, POINTER, SIZE),
	CALL(copy_file_range, FD, POINTER, FD, POINTER, SIZE, UNSIGNED),
	CALL(splice, FD, POINTER, FD, POINTER, SIZE, HEX),
	CALL(getxattr, PATH, TEXT, SIZED(BYTES_OUT, 3), SIZE),
	CALL(lgetxattr, PATH, TEXT, SIZED(BYTES_OUT, 3), SIZE),
	CALL(fgetxattr, FD, TEXT, SIZED(BYTES_OUT, 3), SIZE),
	CALL(setxattr, PATH, TEXT, SIZED(BYTES, 3), SIZE, INT),
	CALL(listxattr, PATH, SIZED(BYTES_OUT, 2), SIZE),
	CALL(llistxattr, PATH, SIZED(BYTES_OUT, 2), SIZE),
	CALL(inotify_init1, FLAGS(INOTIFY)),
	CALL(inotify_add_watch, FD, PATH, HEX),
	CALL(inotify_rm_watch, FD, INT),
	CALL(memfd_create, TEXT, FLAGS(MEMFD)),
	CALL(mount, PATH, PATH, TEXT, HEX, POINTER),
	CALL(umount2, PATH, HEX),
	/* memory */
	CALL(mmap, POINTER, SIZE, FLAGS(PROTECTION), FLAGS(MAP), FD, HEX),
	CALL(munmap, POINTER, SIZE),
	CALL(mremap, POINTER, SIZE, SIZE, FLAGS(REMAP), POINTER),
	CALL(mprotect, POINTER, SIZE, FLAGS(PROTECTION)),
	CALL(pkey_mprotect, POINTER, SIZE, FLAGS(PROTECTION), INT),
	CALL(madvise, POINTER, SIZE, CHOICE(ADVICE)),
	CALL(msync, POINTER, SIZE, FLAGS(SYNC)),
	CALL(mlock, POINTER, SIZE),
	CALL(munlock, POINTER, SIZE),
	CALL(mincore, POINTER, SIZE, POINTER),
	CALL(brk, POINTER),
	CALL(membarrier, CHOICE(MEMBARRIER), HEX, INT),
	CALL(shmget, HEX, SIZE, HEX),
	CALL(shmat, INT, POINTER, HEX),
	CALL(shmdt, POINTER),
	/* processes and threads */
	CALL(clone, FLAGS(CLONE), POINTER, POINTER, POINTER, HEX),
	CALL(clone3, READS(CLONE), SIZE),
	CALL(fork),
	CALL(vfork),
	CALL(execve, PATH, PLAIN(TEXTS), PLAIN(ENVIRONMENT)),
	CALL(execveat, DIRECTORY, PATH, PLAIN(TEXTS), PLAIN(ENVIRONMENT), FLAGS(AT)),
	CALL(exit, INT),
	CALL(exit_group, INT),
	CALL(wait4, INT, WRITES(WAIT_STATUS), FLAGS(WAIT), WRITES(RUSAGE)),
	CALL(waitid, CHOICE(WAIT_ID), INT, WRITES(SIGINFO), FLAGS(WAIT), WRITES(RUSAGE)),
	CALL(getpid),
	CALL(getppid),
	CALL(gettid),
	CALL(getpgrp),
	CALL(getpgid, INT),
	CALL(setpgid, INT, INT),
	CALL(getsid, INT),
	CALL(setsid),
	CALL(getuid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getegid),
	CALL(setuid, INT),
	CALL(setgid, INT),
	CALL(setreuid, INT, INT),
	CALL(setregid, INT, INT),
	CALL(setresuid, INT, INT, INT),
	CALL(setresgid, INT, INT, INT),
	CALL(getresuid, WRITES(INT), WRITES(INT), WRITES(INT)),
	CALL(getresgid, WRITES(INT), WRITES(INT), WRITES(INT)),
	CALL(getgroups, INT, POINTER),
	CALL(setgroups, INT, POINTER),
	CALL(prctl, CHOICE(PRCTL), PLAIN(PRCTL), HEX, HEX, HEX),
	CALL(arch_prctl, CHOICE(ARCH_PRCTL), HEX),
	CALL(set_tid_address, POINTER),
	CALL(set_robust_list, POINTER, SIZE),
	CALL(get_robust_list, INT, POINTER, POINTER),
	CALL(rseq, POINTER, HEX, FLAGS(RSEQ), HEX),
	CALL(futex, POINTER, FLAGS(FUTEX), UNSIGNED, PLAIN(FUTEX_TIMEOUT), POINTER, HEX),
	CALL(sched_yield),
	CALL(sched_getaffinity, INT, SIZE, PLAIN(BITS_OUT)),
	CALL(sched_setaffinity, INT, SIZE, POINTER),
	CALL(sched_getparam, INT, POINTER),
	CALL(sched_getscheduler, INT),
	CALL(getpriority, INT, INT),
	CALL(setpriority, INT, INT, INT),
	CALL(getrlimit, CHOICE(RESOURCE), WRITES(RLIMIT)),
	CALL(setrlimit, CHOICE(RESOURCE), READS(RLIMIT)),
	CALL(prlimit64, INT, CHOICE(RESOURCE), READS(RLIMIT), WRITES(RLIMIT)),
	CALL(getrusage, CHOICE(USAGE), WRITES(RUSAGE)),
	CALL(times, WRITES(TMS)),
	CALL(uname, WRITES(UTSNAME)),
	CALL(sysinfo, WRITES(SYSINFO)),
	CALL(getrandom, SIZED(BYTES_OUT, 1), SIZE, FLAGS(RANDOM)),
	CALL(seccomp, UNSIGNED, HEX, POINTER),
	CALL(ptrace, INT, INT, POINTER, POINTER),
	CALL(pidfd_open, INT, HEX),
	CALL(capget, POINTER, POINTER),
	/* signals */
	CALL(rt_sigaction, SIGNAL, READS(SIGACTION), WRITES(SIGACTION), SIZE),
	CALL(rt_sigprocmask, CHOICE(SIGMASK), READS(SIGSET), WRITES(SIGSET), SIZE),
	CALL(rt_sigpending, WRITES(SIGSET), SIZE),
	CALL(rt_sigsuspend, READS(SIGSET), SIZE),
	CALL(rt_sigtimedwait, READS(SIGSET), WRITES(SIGINFO), READS(TIMESPEC), SIZE),
	CALL(rt_sigqueueinfo, INT, SIGNAL, READS(SIGINFO)),
	CALL(rt_tgsigqueueinfo, INT, INT, SIGNAL, READS(SIGINFO)),
	CALL(sigaltstack, READS(SIGSTACK), WRITES(SIGSTACK)),
	CALL(signalfd4, FD, READS(SIGSET), SIZE, FLAGS(SIGNALFD)),
	CALL(kill, INT, SIGNAL),
	CALL(tkill, INT, SIGNAL),
	CALL(tgkill, INT, INT, SIGNAL),
	CALL(pause),
	CALL(alarm, UNSIGNED),
	/* time */
	CALL(nanosleep, READS(TIMESPEC), POINTER),
	CALL(clock_nanosleep, CHOICE(CLOCK), FLAGS(TIMER), READS(TIMESPEC), POINTER),
	CALL(clock_gettime, CHOICE(CLOCK), WRITES(TIMESPEC)),
	CALL(clock_getres, CHOICE(CLOCK), WRITES(TIMESPEC)),
	CALL(clock_settime, CHOICE(CLOCK), READS(TIMESPEC)),
	CALL(gettimeofday, WRITES(TIMEVAL), WRITES(TIMEZONE)),
	CALL(time, WRITES(LONG)),
	CALL(getitimer, CHOICE(ITIMER), WRITES(ITIMERVAL)),
	CALL(setitimer, CHOICE(ITIMER), READS(ITIMERVAL), WRITES(ITIMERVAL)),
	CALL(timer_create, CHOICE(CLOCK), POINTER, WRITES(INT)),
	CALL(timer_settime, INT, FLAGS(TIMER), READS(ITIMERSPEC), WRITES(ITIMERSPEC)),
	CALL(timer_delete, INT),
	CALL(timerfd_create, CHOICE(CLOCK), FLAGS(TIMERFD)),
	CALL(timerfd_settime, FD, FLAGS(TIMER), READS(ITIMERSPEC), WRITES(ITIMERSPEC)),
	CALL(timerfd_gettime, FD, WRITES(ITIMERSPEC)),
	/* waiting for descriptors */
	CALL(poll, SIZED(POLL, 1), UNSIGNED, PLAIN(TIMEOUT_MS)),
	CALL(ppoll, SIZED(POLL, 1), UNSIGNED, READS(TIMESPEC), READS(SIGSET), SIZE),
	CALL(select, INT, PLAIN(DESCRIPTORS), PLAIN(DESCRIPTORS), PLAIN(DESCRIPTORS), READS(TIMEVAL)),
	CALL(pselect6, INT, PLAIN(DESCRIPTORS), PLAIN(DESCRIPTORS), PLAIN(DESCRIPTORS), READS(TIMESPEC),
		READS(SIGSET_SIZED)),
	CALL(epoll_create, INT),
	CALL(epoll_create1, FLAGS(EPOLL)),
	CALL(epoll_ctl, FD, CHOICE(EPOLL_OPERATION), FD, READS(EPOLL_EVENT)),
	CALL(epoll_wait, FD, PLAIN(EVENTS_OUT), INT, PLAIN(TIMEOUT_MS)),
	CALL(epoll_pwait, FD, PLAIN(EVENTS_OUT), INT, PLAIN(TIMEOUT_MS), READS(SIGSET), SIZE),
	CALL(eventfd, UNSIGNED),
	CALL(eventfd2, UNSIGNED, FLAGS(EVENTFD)),
	/* network */
	CALL(socket, CHOICE(FAMILY), FLAGS(SOCKET), PLAIN(PROTOCOL)),
	CALL(socketpair, CHOICE(FAMILY), FLAGS(SOCKET), PLAIN(PROTOCOL), WRITES(INT_PAIR)),
	CALL(bind, FD, SIZED(ADDRESS, 2), UNSIGNED),
	CALL(connect, FD, SIZED(ADDRESS, 2), UNSIGNED),
	CALL(listen, FD, INT),
	CALL(accept, FD, SIZED(ADDRESS_OUT, 2), PLAIN(SIZE_OUT)),
	CALL(accept4, FD, SIZED(ADDRESS_OUT, 2), PLAIN(SIZE_OUT), FLAGS(SOCKET)),
	CALL(getsockname, FD, SIZED(ADDRESS_OUT, 2), PLAIN(SIZE_OUT)),
	CALL(getpeername, FD, SIZED(ADDRESS_OUT, 2), PLAIN(SIZE_OUT)),
	CALL(sendto, FD, SIZED(BYTES, 2), SIZE, FLAGS(MESSAGE), SIZED(ADDRESS, 5), UNSIGNED),
	CALL(recvfrom, FD, SIZED(BYTES_OUT, 2), SIZE, FLAGS(MESSAGE), SIZED(ADDRESS_OUT, 5), PLAIN(SIZE_OUT)),
	CALL(sendmsg, FD, PLAIN(MESSAGE), FLAGS(MESSAGE)),
	CALL(recvmsg, FD, PLAIN(MESSAGE_OUT), FLAGS(MESSAGE)),
	CALL(shutdown, FD, CHOICE(SHUTDOWN)),
	CALL(setsockopt, FD, CHOICE(LEVEL), PLAIN(OPTION), SIZED(BYTES, 4), UNSIGNED),
	CALL(getsockopt, FD, CHOICE(LEVEL), PLAIN(OPTION), WRITES(INT), PLAIN(SIZE_OUT)),
};

#undef INT
#undef UNSIGNED
#undef LONG
#undef SIZE
#undef HEX
#undef POINTER
#undef MODE
#undef FD
#undef DIRECTORY
#undef SIGNAL
#undef TEXT
#undef PATH
#undef FLAGS
#undef CHOICE
#undef READS
#undef WRITES
#undef SIZED
#undef PLAIN
#undef CALL
/* clang-format on */

#define SIGNATURES (sizeof signatures / sizeof *signatures)

/* NULL: nobody knows what its arguments are. */
static inline const struct signature *signature_of(uint64_t number)
{
	return number < SIGNATURES && signatures[number].known ? &signatures[number] : 0;
}

#endif
