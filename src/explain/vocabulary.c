#include "explain/vocabulary.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/rseq.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct word {
	const char *name;
	uint64_t value;
	uint64_t mask; /* the bits that must be as in the value */
};

#define FLAG(name)                                                                                           \
	{                                                                                                    \
#name, (uint64_t)(name), (uint64_t)(name)                                                    \
	}
#define NUMBER(name)                                                                                         \
	{                                                                                                    \
#name, (uint64_t)(name), UINT64_MAX                                                          \
	}
#define FIELD(name, mask)                                                                                    \
	{                                                                                                    \
#name, (uint64_t)(name), (uint64_t)(mask)                                                    \
	}

/* clang-format off */
#define KERNEL_LARGEFILE 0100000 /* libc has 0 for it where it needs none */

static const struct word words_open[] = {
	FIELD(O_RDONLY, O_ACCMODE), FIELD(O_WRONLY, O_ACCMODE), FIELD(O_RDWR, O_ACCMODE),
	FLAG(O_CREAT), FLAG(O_EXCL), FLAG(O_NOCTTY), FLAG(O_TRUNC), FLAG(O_APPEND), FLAG(O_NONBLOCK),
	FIELD(O_SYNC, O_SYNC), FLAG(O_DSYNC), FLAG(O_ASYNC), FLAG(O_DIRECT),
	{"O_LARGEFILE", KERNEL_LARGEFILE, KERNEL_LARGEFILE}, FLAG(O_NOFOLLOW), FLAG(O_NOATIME), FLAG(O_CLOEXEC),
	FLAG(O_PATH), FIELD(O_TMPFILE, O_TMPFILE), FLAG(O_DIRECTORY), {NULL, 0, 0},
};
static const struct word words_access[] = {
	NUMBER(F_OK), FLAG(R_OK), FLAG(W_OK), FLAG(X_OK), {NULL, 0, 0},
};
#define AT_WORDS \
	FLAG(AT_SYMLINK_NOFOLLOW), FLAG(AT_REMOVEDIR), FLAG(AT_SYMLINK_FOLLOW), FLAG(AT_NO_AUTOMOUNT), \
	FLAG(AT_EMPTY_PATH), {NULL, 0, 0}
static const struct word words_at[] = {AT_WORDS};
static const struct word words_at_statx[] = {
	FIELD(AT_STATX_SYNC_AS_STAT, AT_STATX_SYNC_TYPE), FIELD(AT_STATX_FORCE_SYNC, AT_STATX_SYNC_TYPE),
	FIELD(AT_STATX_DONT_SYNC, AT_STATX_SYNC_TYPE), AT_WORDS,
};
static const struct word words_protection[] = {
	NUMBER(PROT_NONE), FLAG(PROT_READ), FLAG(PROT_WRITE), FLAG(PROT_EXEC), FLAG(PROT_GROWSDOWN),
	FLAG(PROT_GROWSUP), {NULL, 0, 0},
};
static const struct word words_map[] = {
	FIELD(MAP_SHARED, 0xf), FIELD(MAP_PRIVATE, 0xf), FIELD(MAP_SHARED_VALIDATE, 0xf), FLAG(MAP_32BIT),
	FLAG(MAP_FIXED), FLAG(MAP_ANONYMOUS), FLAG(MAP_GROWSDOWN), FLAG(MAP_DENYWRITE), FLAG(MAP_EXECUTABLE),
	FLAG(MAP_LOCKED), FLAG(MAP_NORESERVE), FLAG(MAP_POPULATE), FLAG(MAP_NONBLOCK), FLAG(MAP_STACK),
	FLAG(MAP_HUGETLB), FLAG(MAP_SYNC), FLAG(MAP_FIXED_NOREPLACE), {NULL, 0, 0},
};
static const struct word words_remap[] = {
	FLAG(MREMAP_MAYMOVE), FLAG(MREMAP_FIXED), {"MREMAP_DONTUNMAP", 4, 4}, {NULL, 0, 0},
};
static const struct word words_sync[] = {FLAG(MS_ASYNC), FLAG(MS_INVALIDATE), FLAG(MS_SYNC), {NULL, 0, 0}};
static const struct word words_advice[] = {
	NUMBER(MADV_NORMAL), NUMBER(MADV_RANDOM), NUMBER(MADV_SEQUENTIAL), NUMBER(MADV_WILLNEED),
	NUMBER(MADV_DONTNEED), NUMBER(MADV_FREE), NUMBER(MADV_REMOVE), NUMBER(MADV_DONTFORK),
	NUMBER(MADV_DOFORK), NUMBER(MADV_MERGEABLE), NUMBER(MADV_UNMERGEABLE), NUMBER(MADV_HUGEPAGE),
	NUMBER(MADV_NOHUGEPAGE), NUMBER(MADV_DONTDUMP), NUMBER(MADV_DODUMP), NUMBER(MADV_WIPEONFORK),
	NUMBER(MADV_KEEPONFORK), NUMBER(MADV_COLD), NUMBER(MADV_PAGEOUT), {"MADV_POPULATE_READ", 22, UINT64_MAX},
	{"MADV_POPULATE_WRITE", 23, UINT64_MAX}, {NULL, 0, 0},
};
static const struct word words_file_advice[] = {
	NUMBER(POSIX_FADV_NORMAL), NUMBER(POSIX_FADV_RANDOM), NUMBER(POSIX_FADV_SEQUENTIAL),
	NUMBER(POSIX_FADV_WILLNEED), NUMBER(POSIX_FADV_DONTNEED), NUMBER(POSIX_FADV_NOREUSE), {NULL, 0, 0},
};
static const struct word words_seek[] = {
	NUMBER(SEEK_SET), NUMBER(SEEK_CUR), NUMBER(SEEK_END), NUMBER(SEEK_DATA), NUMBER(SEEK_HOLE), {NULL, 0, 0},
};
static const struct word words_clone[] = {
	FLAG(CLONE_VM), FLAG(CLONE_FS), FLAG(CLONE_FILES), FLAG(CLONE_SIGHAND), {"CLONE_PIDFD", 0x1000, 0x1000},
	FLAG(CLONE_PTRACE), FLAG(CLONE_VFORK), FLAG(CLONE_PARENT), FLAG(CLONE_THREAD), FLAG(CLONE_NEWNS),
	FLAG(CLONE_SYSVSEM), FLAG(CLONE_SETTLS), FLAG(CLONE_PARENT_SETTID), FLAG(CLONE_CHILD_CLEARTID),
	FLAG(CLONE_DETACHED), FLAG(CLONE_UNTRACED), FLAG(CLONE_CHILD_SETTID), FLAG(CLONE_NEWCGROUP),
	FLAG(CLONE_NEWUTS), FLAG(CLONE_NEWIPC), FLAG(CLONE_NEWUSER), FLAG(CLONE_NEWPID), FLAG(CLONE_NEWNET),
	FLAG(CLONE_IO), {"CLONE_CLEAR_SIGHAND", 0x100000000, 0x100000000}, {NULL, 0, 0},
};
/* The flags are part of the usual names. */
#define FUTEX_MATCH (0x7fu | FUTEX_PRIVATE_FLAG)
static const struct word words_futex[] = {
	FIELD(FUTEX_WAIT_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_WAIT, FUTEX_MATCH),
	FIELD(FUTEX_WAKE_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_WAKE, FUTEX_MATCH),
	FIELD(FUTEX_REQUEUE_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_REQUEUE, FUTEX_MATCH),
	FIELD(FUTEX_CMP_REQUEUE_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_CMP_REQUEUE, FUTEX_MATCH),
	FIELD(FUTEX_WAKE_OP_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_WAKE_OP, FUTEX_MATCH),
	FIELD(FUTEX_LOCK_PI_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_LOCK_PI, FUTEX_MATCH),
	FIELD(FUTEX_UNLOCK_PI_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_UNLOCK_PI, FUTEX_MATCH),
	FIELD(FUTEX_TRYLOCK_PI_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_TRYLOCK_PI, FUTEX_MATCH),
	FIELD(FUTEX_WAIT_BITSET_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_WAIT_BITSET, FUTEX_MATCH),
	FIELD(FUTEX_WAKE_BITSET_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_WAKE_BITSET, FUTEX_MATCH),
	FIELD(FUTEX_WAIT_REQUEUE_PI_PRIVATE, FUTEX_MATCH), FIELD(FUTEX_CMP_REQUEUE_PI_PRIVATE, FUTEX_MATCH),
	FLAG(FUTEX_CLOCK_REALTIME), {NULL, 0, 0},
};
static const struct word words_family[] = {
	NUMBER(AF_UNSPEC), NUMBER(AF_UNIX), NUMBER(AF_INET), NUMBER(AF_INET6), NUMBER(AF_NETLINK),
	NUMBER(AF_PACKET), NUMBER(AF_VSOCK), NUMBER(AF_ALG), NUMBER(AF_BLUETOOTH), {NULL, 0, 0},
};
static const struct word words_socket[] = {
	FIELD(SOCK_STREAM, 0xf), FIELD(SOCK_DGRAM, 0xf), FIELD(SOCK_RAW, 0xf), FIELD(SOCK_SEQPACKET, 0xf),
	FLAG(SOCK_CLOEXEC), FLAG(SOCK_NONBLOCK), {NULL, 0, 0},
};
static const struct word words_message[] = {
	FLAG(MSG_OOB), FLAG(MSG_PEEK), FLAG(MSG_DONTROUTE), FLAG(MSG_CTRUNC), FLAG(MSG_TRUNC), FLAG(MSG_DONTWAIT),
	FLAG(MSG_EOR), FLAG(MSG_WAITALL), FLAG(MSG_CONFIRM), FLAG(MSG_ERRQUEUE), FLAG(MSG_NOSIGNAL),
	FLAG(MSG_MORE), FLAG(MSG_WAITFORONE), FLAG(MSG_FASTOPEN), FLAG(MSG_CMSG_CLOEXEC), {NULL, 0, 0},
};
static const struct word words_shutdown[] = {NUMBER(SHUT_RD), NUMBER(SHUT_WR), NUMBER(SHUT_RDWR), {NULL, 0, 0}};
static const struct word words_level[] = {
	NUMBER(SOL_SOCKET), {"SOL_IP", 0, UINT64_MAX}, {"SOL_TCP", 6, UINT64_MAX}, {"SOL_UDP", 17, UINT64_MAX},
	{"SOL_IPV6", 41, UINT64_MAX}, {"SOL_NETLINK", 270, UINT64_MAX}, {NULL, 0, 0},
};
static const struct word words_socket_option[] = {
	NUMBER(SO_DEBUG), NUMBER(SO_REUSEADDR), NUMBER(SO_TYPE), NUMBER(SO_ERROR), NUMBER(SO_DONTROUTE),
	NUMBER(SO_BROADCAST), NUMBER(SO_SNDBUF), NUMBER(SO_RCVBUF), NUMBER(SO_KEEPALIVE), NUMBER(SO_OOBINLINE),
	NUMBER(SO_PRIORITY), NUMBER(SO_LINGER), NUMBER(SO_REUSEPORT), NUMBER(SO_PASSCRED), NUMBER(SO_PEERCRED),
	NUMBER(SO_RCVLOWAT), NUMBER(SO_SNDLOWAT), NUMBER(SO_BINDTODEVICE), NUMBER(SO_ATTACH_FILTER),
	NUMBER(SO_ACCEPTCONN), NUMBER(SO_PEERSEC), NUMBER(SO_SNDBUFFORCE), NUMBER(SO_RCVBUFFORCE),
	NUMBER(SO_MARK), NUMBER(SO_PROTOCOL), NUMBER(SO_DOMAIN), {NULL, 0, 0},
};
static const struct word words_fcntl[] = {
	NUMBER(F_DUPFD), NUMBER(F_GETFD), NUMBER(F_SETFD), NUMBER(F_GETFL), NUMBER(F_SETFL), NUMBER(F_GETLK),
	NUMBER(F_SETLK), NUMBER(F_SETLKW), NUMBER(F_SETOWN), NUMBER(F_GETOWN), NUMBER(F_SETSIG), NUMBER(F_GETSIG),
	NUMBER(F_OFD_GETLK), NUMBER(F_OFD_SETLK), NUMBER(F_OFD_SETLKW), NUMBER(F_SETLEASE), NUMBER(F_GETLEASE),
	NUMBER(F_NOTIFY), NUMBER(F_DUPFD_CLOEXEC), NUMBER(F_SETPIPE_SZ), NUMBER(F_GETPIPE_SZ),
	NUMBER(F_ADD_SEALS), NUMBER(F_GET_SEALS), {NULL, 0, 0},
};
static const struct word words_ioctl[] = {
	NUMBER(TCGETS), NUMBER(TCSETS), NUMBER(TCSETSW), NUMBER(TCSETSF), NUMBER(TCSBRK), NUMBER(TCXONC),
	NUMBER(TCFLSH), NUMBER(TIOCSCTTY), NUMBER(TIOCGPGRP), NUMBER(TIOCSPGRP), NUMBER(TIOCOUTQ),
	NUMBER(TIOCGWINSZ), NUMBER(TIOCSWINSZ), NUMBER(FIONREAD), NUMBER(FIONBIO), NUMBER(TIOCNOTTY),
	NUMBER(TIOCGSID), NUMBER(TIOCGPTN), NUMBER(TIOCSPTLCK), NUMBER(TIOCGPTPEER), NUMBER(FIOCLEX),
	NUMBER(FIONCLEX), {"FICLONE", 0x40049409, UINT64_MAX}, {"BTRFS_IOC_CLONE", 0x40049409, UINT64_MAX},
	{"FS_IOC_GETFLAGS", 0x80086601, UINT64_MAX}, {NULL, 0, 0},
};
static const struct word words_lock[] = {FLAG(LOCK_SH), FLAG(LOCK_EX), FLAG(LOCK_UN), FLAG(LOCK_NB), {NULL, 0, 0}};
static const struct word words_poll[] = {
	FLAG(POLLIN), FLAG(POLLPRI), FLAG(POLLOUT), FLAG(POLLERR), FLAG(POLLHUP), FLAG(POLLNVAL), FLAG(POLLRDNORM),
	FLAG(POLLRDBAND), FLAG(POLLWRNORM), FLAG(POLLWRBAND), FLAG(POLLMSG), FLAG(POLLRDHUP), {NULL, 0, 0},
};
static const struct word words_epoll[] = {
	FLAG(EPOLLIN), FLAG(EPOLLPRI), FLAG(EPOLLOUT), FLAG(EPOLLERR), FLAG(EPOLLHUP), FLAG(EPOLLRDNORM),
	FLAG(EPOLLRDBAND), FLAG(EPOLLWRNORM), FLAG(EPOLLWRBAND), FLAG(EPOLLMSG), FLAG(EPOLLRDHUP),
	FLAG(EPOLLEXCLUSIVE), FLAG(EPOLLWAKEUP), FLAG(EPOLLONESHOT), FLAG(EPOLLET),
	{"EPOLL_CLOEXEC", EPOLL_CLOEXEC, EPOLL_CLOEXEC}, {NULL, 0, 0},
};
static const struct word words_epoll_operation[] = {
	NUMBER(EPOLL_CTL_ADD), NUMBER(EPOLL_CTL_DEL), NUMBER(EPOLL_CTL_MOD), {NULL, 0, 0},
};
static const struct word words_sigmask[] = {NUMBER(SIG_BLOCK), NUMBER(SIG_UNBLOCK), NUMBER(SIG_SETMASK), {NULL, 0, 0}};
static const struct word words_sigaction[] = {
	{"SA_RESTORER", 0x04000000, 0x04000000}, FLAG(SA_ONSTACK), FLAG(SA_RESTART), FLAG(SA_NODEFER),
	FLAG(SA_RESETHAND), FLAG(SA_SIGINFO), FLAG(SA_NOCLDSTOP), FLAG(SA_NOCLDWAIT), {NULL, 0, 0},
};
static const struct word words_sigstack[] = {
	FLAG(SS_ONSTACK), FLAG(SS_DISABLE), {"SS_AUTODISARM", 1u << 31, 1u << 31}, {NULL, 0, 0},
};
static const struct word words_prctl[] = {
	NUMBER(PR_SET_PDEATHSIG), NUMBER(PR_GET_PDEATHSIG), NUMBER(PR_GET_DUMPABLE), NUMBER(PR_SET_DUMPABLE),
	NUMBER(PR_GET_KEEPCAPS), NUMBER(PR_SET_KEEPCAPS), NUMBER(PR_SET_NAME), NUMBER(PR_GET_NAME),
	NUMBER(PR_GET_SECCOMP), NUMBER(PR_SET_SECCOMP), NUMBER(PR_CAPBSET_READ), NUMBER(PR_CAPBSET_DROP),
	NUMBER(PR_GET_TSC), NUMBER(PR_SET_TSC), NUMBER(PR_GET_SECUREBITS), NUMBER(PR_SET_SECUREBITS),
	NUMBER(PR_SET_TIMERSLACK), NUMBER(PR_GET_TIMERSLACK), NUMBER(PR_SET_MM), NUMBER(PR_SET_CHILD_SUBREAPER),
	NUMBER(PR_GET_CHILD_SUBREAPER), NUMBER(PR_SET_NO_NEW_PRIVS), NUMBER(PR_GET_NO_NEW_PRIVS),
	NUMBER(PR_SET_THP_DISABLE), NUMBER(PR_GET_THP_DISABLE), NUMBER(PR_CAP_AMBIENT), NUMBER(PR_SET_PTRACER),
	{"PR_SET_VMA", 0x53564d41, UINT64_MAX}, {NULL, 0, 0},
};
static const struct word words_arch_prctl[] = {
	NUMBER(ARCH_SET_GS), NUMBER(ARCH_SET_FS), NUMBER(ARCH_GET_FS), NUMBER(ARCH_GET_GS),
	NUMBER(ARCH_GET_CPUID), NUMBER(ARCH_SET_CPUID), {NULL, 0, 0},
};
static const struct word words_clock[] = {
	NUMBER(CLOCK_REALTIME), NUMBER(CLOCK_MONOTONIC), NUMBER(CLOCK_PROCESS_CPUTIME_ID),
	NUMBER(CLOCK_THREAD_CPUTIME_ID), NUMBER(CLOCK_MONOTONIC_RAW), NUMBER(CLOCK_REALTIME_COARSE),
	NUMBER(CLOCK_MONOTONIC_COARSE), NUMBER(CLOCK_BOOTTIME), NUMBER(CLOCK_REALTIME_ALARM),
	NUMBER(CLOCK_BOOTTIME_ALARM), NUMBER(CLOCK_TAI), {NULL, 0, 0},
};
static const struct word words_timer[] = {FLAG(TIMER_ABSTIME), {"TFD_TIMER_CANCEL_ON_SET", 2, 2}, {NULL, 0, 0}};
static const struct word words_itimer[] = {
	NUMBER(ITIMER_REAL), NUMBER(ITIMER_VIRTUAL), NUMBER(ITIMER_PROF), {NULL, 0, 0},
};
static const struct word words_resource[] = {
	NUMBER(RLIMIT_CPU), NUMBER(RLIMIT_FSIZE), NUMBER(RLIMIT_DATA), NUMBER(RLIMIT_STACK), NUMBER(RLIMIT_CORE),
	NUMBER(RLIMIT_RSS), NUMBER(RLIMIT_NPROC), NUMBER(RLIMIT_NOFILE), NUMBER(RLIMIT_MEMLOCK), NUMBER(RLIMIT_AS),
	NUMBER(RLIMIT_LOCKS), NUMBER(RLIMIT_SIGPENDING), NUMBER(RLIMIT_MSGQUEUE), NUMBER(RLIMIT_NICE),
	NUMBER(RLIMIT_RTPRIO), NUMBER(RLIMIT_RTTIME), {NULL, 0, 0},
};
static const struct word words_usage[] = {
	NUMBER(RUSAGE_SELF), {"RUSAGE_CHILDREN", 0xffffffff, UINT64_MAX}, NUMBER(RUSAGE_THREAD), {NULL, 0, 0},
};
static const struct word words_wait[] = {
	FLAG(WNOHANG), FLAG(WSTOPPED), FLAG(WEXITED), FLAG(WCONTINUED), FLAG(WNOWAIT), {"__WNOTHREAD", 0x20000000, 0x20000000},
	{"__WALL", 0x40000000, 0x40000000}, {"__WCLONE", 0x80000000, 0x80000000}, {NULL, 0, 0},
};
static const struct word words_wait_id[] = {
	NUMBER(P_ALL), NUMBER(P_PID), NUMBER(P_PGID), {"P_PIDFD", 3, UINT64_MAX}, {NULL, 0, 0},
};
static const struct word words_random[] = {FLAG(GRND_NONBLOCK), FLAG(GRND_RANDOM), {"GRND_INSECURE", 4, 4}, {NULL, 0, 0}};
static const struct word words_rename[] = {
	FLAG(RENAME_NOREPLACE), FLAG(RENAME_EXCHANGE), FLAG(RENAME_WHITEOUT), {NULL, 0, 0},
};
static const struct word words_statx[] = {
	FIELD(STATX_ALL, STATX_ALL), FIELD(STATX_BASIC_STATS, STATX_BASIC_STATS), FLAG(STATX_TYPE),
	FLAG(STATX_MODE), FLAG(STATX_NLINK), FLAG(STATX_UID), FLAG(STATX_GID), FLAG(STATX_ATIME),
	FLAG(STATX_MTIME), FLAG(STATX_CTIME), FLAG(STATX_INO), FLAG(STATX_SIZE), FLAG(STATX_BLOCKS),
	FLAG(STATX_BTIME), {"STATX_MNT_ID", 0x1000, 0x1000}, {NULL, 0, 0},
};
static const struct word words_statx_attribute[] = {
	FLAG(STATX_ATTR_COMPRESSED), FLAG(STATX_ATTR_IMMUTABLE), FLAG(STATX_ATTR_APPEND), FLAG(STATX_ATTR_NODUMP),
	FLAG(STATX_ATTR_ENCRYPTED), FLAG(STATX_ATTR_AUTOMOUNT), {"STATX_ATTR_MOUNT_ROOT", 0x2000, 0x2000},
	{"STATX_ATTR_VERITY", 0x100000, 0x100000}, {"STATX_ATTR_DAX", 0x200000, 0x200000}, {NULL, 0, 0},
};
static const struct word words_eventfd[] = {FLAG(EFD_SEMAPHORE), FLAG(EFD_CLOEXEC), FLAG(EFD_NONBLOCK), {NULL, 0, 0}};
static const struct word words_timerfd[] = {FLAG(TFD_CLOEXEC), FLAG(TFD_NONBLOCK), {NULL, 0, 0}};
static const struct word words_signalfd[] = {FLAG(SFD_CLOEXEC), FLAG(SFD_NONBLOCK), {NULL, 0, 0}};
static const struct word words_inotify[] = {FLAG(IN_CLOEXEC), FLAG(IN_NONBLOCK), {NULL, 0, 0}};
static const struct word words_pipe[] = {FLAG(O_CLOEXEC), FLAG(O_NONBLOCK), FLAG(O_DIRECT), {NULL, 0, 0}};
static const struct word words_memfd[] = {
	FLAG(MFD_CLOEXEC), FLAG(MFD_ALLOW_SEALING), FLAG(MFD_HUGETLB), {"MFD_NOEXEC_SEAL", 8, 8}, {"MFD_EXEC", 16, 16},
	{NULL, 0, 0},
};
static const struct word words_membarrier[] = {
	NUMBER(MEMBARRIER_CMD_QUERY), NUMBER(MEMBARRIER_CMD_GLOBAL), NUMBER(MEMBARRIER_CMD_GLOBAL_EXPEDITED),
	NUMBER(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), NUMBER(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
	NUMBER(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), {NULL, 0, 0},
};
static const struct word words_rseq[] = {FLAG(RSEQ_FLAG_UNREGISTER), {NULL, 0, 0}};
static const struct word words_close_range[] = {FLAG(CLOSE_RANGE_UNSHARE), FLAG(CLOSE_RANGE_CLOEXEC), {NULL, 0, 0}};
static const struct word words_fallocate[] = {
	FLAG(FALLOC_FL_KEEP_SIZE), FLAG(FALLOC_FL_PUNCH_HOLE), FLAG(FALLOC_FL_COLLAPSE_RANGE),
	FLAG(FALLOC_FL_ZERO_RANGE), FLAG(FALLOC_FL_INSERT_RANGE), {NULL, 0, 0},
};
static const struct word words_descriptor[] = {FLAG(FD_CLOEXEC), {NULL, 0, 0}};
/* clang-format on */

/* `unknown` is what a reader is told about bits or numbers without a name. */
static const struct {
	const struct word *words;
	const char *unknown;
} vocabularies[VOCABULARIES] = {
        [NAMES_OPEN] = {words_open, "O_???"},
        [NAMES_ACCESS] = {words_access, "?_OK"},
        [NAMES_AT] = {words_at, "AT_???"},
        [NAMES_AT_STATX] = {words_at_statx, "AT_???"},
        [NAMES_PROTECTION] = {words_protection, "PROT_???"},
        [NAMES_MAP] = {words_map, "MAP_???"},
        [NAMES_REMAP] = {words_remap, "MREMAP_???"},
        [NAMES_SYNC] = {words_sync, "MS_???"},
        [NAMES_ADVICE] = {words_advice, "MADV_???"},
        [NAMES_FILE_ADVICE] = {words_file_advice, "POSIX_FADV_???"},
        [NAMES_SEEK] = {words_seek, "SEEK_???"},
        [NAMES_CLONE] = {words_clone, "CLONE_???"},
        [NAMES_FUTEX] = {words_futex, "FUTEX_???"},
        [NAMES_FAMILY] = {words_family, "AF_???"},
        [NAMES_SOCKET] = {words_socket, "SOCK_???"},
        [NAMES_MESSAGE] = {words_message, "MSG_???"},
        [NAMES_SHUTDOWN] = {words_shutdown, "SHUT_???"},
        [NAMES_LEVEL] = {words_level, "SOL_???"},
        [NAMES_SOCKET_OPTION] = {words_socket_option, "SO_???"},
        [NAMES_FCNTL] = {words_fcntl, "F_???"},
        [NAMES_IOCTL] = {words_ioctl, NULL},
        [NAMES_LOCK] = {words_lock, "LOCK_???"},
        [NAMES_POLL] = {words_poll, "POLL???"},
        [NAMES_EPOLL] = {words_epoll, "EPOLL???"},
        [NAMES_EPOLL_OPERATION] = {words_epoll_operation, "EPOLL_CTL_???"},
        [NAMES_SIGMASK] = {words_sigmask, "SIG_???"},
        [NAMES_SIGACTION] = {words_sigaction, "SA_???"},
        [NAMES_SIGSTACK] = {words_sigstack, "SS_???"},
        [NAMES_PRCTL] = {words_prctl, "PR_???"},
        [NAMES_ARCH_PRCTL] = {words_arch_prctl, "ARCH_???"},
        [NAMES_CLOCK] = {words_clock, "CLOCK_???"},
        [NAMES_TIMER] = {words_timer, "TIMER_???"},
        [NAMES_ITIMER] = {words_itimer, "ITIMER_???"},
        [NAMES_RESOURCE] = {words_resource, "RLIMIT_???"},
        [NAMES_USAGE] = {words_usage, "RUSAGE_???"},
        [NAMES_WAIT] = {words_wait, "W???"},
        [NAMES_WAIT_ID] = {words_wait_id, "P_???"},
        [NAMES_RANDOM] = {words_random, "GRND_???"},
        [NAMES_RENAME] = {words_rename, "RENAME_???"},
        [NAMES_STATX] = {words_statx, "STATX_???"},
        [NAMES_STATX_ATTRIBUTE] = {words_statx_attribute, "STATX_ATTR_???"},
        [NAMES_EVENTFD] = {words_eventfd, "EFD_???"},
        [NAMES_TIMERFD] = {words_timerfd, "TFD_???"},
        [NAMES_SIGNALFD] = {words_signalfd, "SFD_???"},
        [NAMES_INOTIFY] = {words_inotify, "IN_???"},
        [NAMES_PIPE] = {words_pipe, "O_???"},
        [NAMES_MEMFD] = {words_memfd, "MFD_???"},
        [NAMES_MEMBARRIER] = {words_membarrier, "MEMBARRIER_CMD_???"},
        [NAMES_RSEQ] = {words_rseq, "RSEQ_FLAG_???"},
        [NAMES_CLOSE_RANGE] = {words_close_range, "CLOSE_RANGE_???"},
        [NAMES_FALLOCATE] = {words_fallocate, "FALLOC_FL_???"},
        [NAMES_DESCRIPTOR] = {words_descriptor, "FD_???"},
};

static void print_unknown(FILE *out, enum vocabulary vocabulary, uint64_t value, bool alone)
{
	const char *unknown = vocabularies[vocabulary].unknown;

	fprintf(out, "%#" PRIx64, value);
	if (alone && unknown && value)
		fprintf(out, " /* %s */", unknown);
}

void explain_flags(FILE *out, enum vocabulary vocabulary, uint64_t value)
{
	uint64_t left = value;
	bool any = false;

	for (const struct word *word = vocabularies[vocabulary].words; word->name; word++) {
		bool matches =
		        word->mask == UINT64_MAX ? value == word->value : (left & word->mask) == word->value;
		/* a name for 0 is one of a field, and only what is not used up can have it */
		if (!matches || (word->mask != UINT64_MAX && (word->mask & value & ~left)))
			continue;
		fprintf(out, "%s%s", any ? "|" : "", word->name);
		any = true;
		left &= ~word->mask;
		if (word->value == 0 && word->mask == UINT64_MAX)
			return;
	}
	if (left && any)
		fprintf(out, "|%#" PRIx64, left);
	else if (left || !any)
		print_unknown(out, vocabulary, left, true);
}

void explain_choice(FILE *out, enum vocabulary vocabulary, uint64_t value)
{
	for (const struct word *word = vocabularies[vocabulary].words; word->name; word++) {
		if (word->value == value) {
			fputs(word->name, out);
			return;
		}
	}
	print_unknown(out, vocabulary, value, true);
}
