/*
 * What system calls do to the program's memory, while whole pages are logged (pages.c): what the kernel is
 * about to touch is opened before, or it would say EFAULT, and what it may have written is logged behind it.
 * Where that is was found before the call, which may overwrite what tells it. More than it touches does no
 * harm. A call that is not here, or that is asked for something that is not here, ends the logging of whole
 * pages before it is made: there everything is compared when it is loaded, and nothing has to be known.
 */
#include "target/stub.h"

#define AT_ONCE      (1ul << 20) /* more than that is not opened for a call */
#define MOST_VECTORS 64
#define MOST_TEXTS   65536
#define TEXT_PIECE   64

enum what {
	NOTHING, /* ends the list */
	TEXT,    /* up to a zero */
	TEXTS,   /* pointers to such, up to NULL */
	IN,      /* so many bytes, which the kernel reads */
	OUT,     /* writes, */
	BOTH,
	IN_BY, /* as many bytes as an argument says, times `size` */
	OUT_BY,
	BOTH_BY,
	RESULT_BY, /* the same, but it writes the result times `size` */
	SIZED, /* OUT, as many bytes as an int that an argument leads to says; that is read and written, too
	        */
	BITS,  /* a set of descriptors, as many as the first argument says */
	VECTORS_IN,
	VECTORS_OUT,
	MESSAGE_IN,
	MESSAGE_OUT,
	SIGNAL_SET, /* a pointer to one, and its size */
};

/* `by`: the number of that argument. */
struct touched {
	uint8_t argument, what;
	uint16_t size;
	uint8_t by;
};

#define MOST_TOUCHED 5

struct call {
	bool known;
	struct touched touched[MOST_TOUCHED];
};

/* clang-format off */
#define T(n)            {n, TEXT, 0, 0}
#define I(n, size)      {n, IN, size, 0}
#define O(n, size)      {n, OUT, size, 0}
#define B(n, size)      {n, BOTH, size, 0}
#define IB(n, size, by) {n, IN_BY, size, by}
#define OB(n, size, by) {n, OUT_BY, size, by}
#define BB(n, size, by) {n, BOTH_BY, size, by}
#define RB(n, size, by) {n, RESULT_BY, size, by}
#define S(n, by)        {n, SIZED, 0, by}
#define K(n, kind, by)  {n, kind, 0, by}
#define CALL(name, ...) [__NR_##name] = {true, {__VA_ARGS__}}
#define SIMPLE(name)    [__NR_##name] = {true, {{0}}}

static const struct call calls[] = {
	CALL(read, RB(1, 1, 2)), CALL(pread64, RB(1, 1, 2)), CALL(write, IB(1, 1, 2)), CALL(pwrite64, IB(1, 1, 2)),
	CALL(readv, K(1, VECTORS_OUT, 2)), CALL(preadv, K(1, VECTORS_OUT, 2)), CALL(writev, K(1, VECTORS_IN, 2)),
	CALL(pwritev, K(1, VECTORS_IN, 2)), CALL(open, T(0)), CALL(openat, T(1)), CALL(creat, T(0)), SIMPLE(close),
	SIMPLE(close_range), SIMPLE(lseek), CALL(stat, T(0), O(1, 144)), CALL(lstat, T(0), O(1, 144)),
	CALL(fstat, O(1, 144)), CALL(newfstatat, T(1), O(2, 144)), CALL(statx, T(1), O(4, 256)),
	CALL(statfs, T(0), O(1, 120)), CALL(fstatfs, O(1, 120)), CALL(access, T(0)), CALL(faccessat, T(1)),
	CALL(faccessat2, T(1)), CALL(getdents64, RB(1, 1, 2)), CALL(getdents, RB(1, 1, 2)), CALL(getcwd, RB(0, 1, 1)),
	CALL(chdir, T(0)), SIMPLE(fchdir), CALL(rename, T(0), T(1)), CALL(renameat, T(1), T(3)),
	CALL(renameat2, T(1), T(3)), CALL(mkdir, T(0)), CALL(mkdirat, T(1)), CALL(rmdir, T(0)), CALL(link, T(0), T(1)),
	CALL(linkat, T(1), T(3)), CALL(symlink, T(0), T(1)), CALL(symlinkat, T(0), T(2)), CALL(unlink, T(0)),
	CALL(unlinkat, T(1)), CALL(readlink, T(0), RB(1, 1, 2)), CALL(readlinkat, T(1), RB(2, 1, 3)), CALL(chmod, T(0)),
	SIMPLE(fchmod), CALL(fchmodat, T(1)), CALL(chown, T(0)), CALL(lchown, T(0)), SIMPLE(fchown), CALL(fchownat, T(1)),
	CALL(utimensat, T(1), I(2, 32)), CALL(utime, T(0), I(1, 16)), CALL(utimes, T(0), I(1, 32)), CALL(truncate, T(0)),
	SIMPLE(ftruncate), SIMPLE(fallocate), SIMPLE(fadvise64), SIMPLE(readahead), SIMPLE(fsync), SIMPLE(fdatasync),
	SIMPLE(sync), SIMPLE(syncfs), SIMPLE(sync_file_range), SIMPLE(flock), SIMPLE(fcntl), SIMPLE(ioctl), SIMPLE(dup),
	SIMPLE(dup2), SIMPLE(dup3), CALL(pipe, O(0, 8)), CALL(pipe2, O(0, 8)), SIMPLE(umask), CALL(sendfile, B(2, 8)),
	CALL(copy_file_range, B(1, 8), B(3, 8)), CALL(splice, B(1, 8), B(3, 8)), SIMPLE(tee),
	CALL(getxattr, T(0), T(1), RB(2, 1, 3)), CALL(lgetxattr, T(0), T(1), RB(2, 1, 3)),
	CALL(fgetxattr, T(1), RB(2, 1, 3)), CALL(listxattr, T(0), RB(1, 1, 2)), CALL(llistxattr, T(0), RB(1, 1, 2)),
	SIMPLE(inotify_init1), CALL(inotify_add_watch, T(1)), SIMPLE(inotify_rm_watch), CALL(memfd_create, T(0)),
	SIMPLE(mmap), SIMPLE(munmap), SIMPLE(mremap), SIMPLE(mprotect), SIMPLE(madvise), SIMPLE(brk), SIMPLE(msync),
	SIMPLE(clone), SIMPLE(fork), CALL(execve, T(0), K(1, TEXTS, 0), K(2, TEXTS, 0)), SIMPLE(exit), SIMPLE(exit_group),
	CALL(wait4, O(1, 4), O(3, 144)), CALL(waitid, O(2, 128), O(4, 144)), SIMPLE(getpid), SIMPLE(getppid),
	SIMPLE(gettid), SIMPLE(getpgrp), SIMPLE(getpgid), SIMPLE(setpgid), SIMPLE(getsid), SIMPLE(setsid), SIMPLE(getuid),
	SIMPLE(geteuid), SIMPLE(getgid), SIMPLE(getegid), SIMPLE(setuid), SIMPLE(setgid), SIMPLE(setreuid),
	SIMPLE(setregid), SIMPLE(setresuid), SIMPLE(setresgid), CALL(getresuid, O(0, 4), O(1, 4), O(2, 4)),
	CALL(getresgid, O(0, 4), O(1, 4), O(2, 4)), CALL(getgroups, RB(1, 4, 0)), SIMPLE(prctl), SIMPLE(arch_prctl),
	SIMPLE(set_tid_address), SIMPLE(set_robust_list), SIMPLE(rseq), SIMPLE(futex), SIMPLE(sched_yield),
	CALL(sched_getaffinity, RB(2, 1, 1)), CALL(sched_setaffinity, IB(2, 1, 1)), CALL(sched_getparam, O(1, 4)),
	SIMPLE(sched_getscheduler), SIMPLE(sched_get_priority_max), SIMPLE(sched_get_priority_min), SIMPLE(getpriority),
	SIMPLE(setpriority), CALL(getcpu, O(0, 4), O(1, 4)), CALL(getrlimit, O(1, 16)), CALL(setrlimit, I(1, 16)),
	CALL(prlimit64, I(2, 16), O(3, 16)), CALL(getrusage, O(1, 144)), CALL(times, O(0, 32)), CALL(uname, O(0, 390)),
	CALL(sysinfo, O(0, 112)), CALL(getrandom, RB(0, 1, 1)), SIMPLE(personality), SIMPLE(membarrier),
	SIMPLE(pidfd_open), CALL(capget, B(0, 8), O(1, 24)), CALL(capset, I(0, 8), I(1, 24)), CALL(rt_sigaction, I(1, 32), O(2, 32)), CALL(rt_sigprocmask, I(1, 8), O(2, 8)),
	CALL(rt_sigpending, O(0, 8)), CALL(rt_sigsuspend, I(0, 8)), CALL(rt_sigtimedwait, I(0, 8), O(1, 128), I(2, 16)),
	CALL(rt_sigqueueinfo, I(2, 128)), CALL(rt_tgsigqueueinfo, I(3, 128)), CALL(sigaltstack, I(0, 24), O(1, 24)),
	CALL(signalfd4, I(1, 8)), SIMPLE(rt_sigreturn), SIMPLE(kill), SIMPLE(tkill), SIMPLE(tgkill), SIMPLE(pause),
	SIMPLE(alarm), CALL(nanosleep, I(0, 16), O(1, 16)), CALL(clock_nanosleep, I(2, 16), O(3, 16)),
	CALL(clock_gettime, O(1, 16)), CALL(clock_getres, O(1, 16)), CALL(gettimeofday, O(0, 16), O(1, 8)),
	CALL(time, O(0, 8)), CALL(getitimer, O(1, 32)), CALL(setitimer, I(1, 32), O(2, 32)),
	CALL(timer_create, I(1, 64), O(2, 4)), CALL(timer_settime, I(2, 32), O(3, 32)), CALL(timer_gettime, O(1, 32)),
	SIMPLE(timer_getoverrun), SIMPLE(timer_delete), SIMPLE(timerfd_create), CALL(timerfd_settime, I(2, 32), O(3, 32)),
	CALL(timerfd_gettime, O(1, 32)), CALL(poll, BB(0, 8, 1)), CALL(ppoll, BB(0, 8, 1), B(2, 16), I(3, 8)),
	CALL(select, K(1, BITS, 0), K(2, BITS, 0), K(3, BITS, 0), B(4, 16)),
	CALL(pselect6, K(1, BITS, 0), K(2, BITS, 0), K(3, BITS, 0), B(4, 16), K(5, SIGNAL_SET, 0)), SIMPLE(epoll_create),
	SIMPLE(epoll_create1), CALL(epoll_ctl, I(3, 12)), CALL(epoll_wait, RB(1, 12, 2)),
	CALL(epoll_pwait, RB(1, 12, 2), I(4, 8)), SIMPLE(eventfd), SIMPLE(eventfd2), SIMPLE(socket),
	CALL(socketpair, O(3, 8)), CALL(bind, IB(1, 1, 2)), CALL(connect, IB(1, 1, 2)), SIMPLE(listen),
	CALL(accept, S(1, 2)), CALL(accept4, S(1, 2)), CALL(getsockname, S(1, 2)), CALL(getpeername, S(1, 2)),
	CALL(sendto, IB(1, 1, 2), IB(4, 1, 5)), CALL(recvfrom, RB(1, 1, 2), S(4, 5)), CALL(sendmsg, K(1, MESSAGE_IN, 0)),
	CALL(recvmsg, K(1, MESSAGE_OUT, 0)), SIMPLE(shutdown), CALL(setsockopt, IB(3, 1, 4)), CALL(getsockopt, S(3, 4)),
};
/* clang-format on */

struct vector {
	uint64_t base, size;
};

struct message {
	uint64_t name, name_size, vectors, count, control, control_size, flags;
};

/* One call, which is about to be made. */
struct making {
	struct thread *thread;
	uint64_t here;
	uint64_t arguments[6];
	bool known; /* so far */
};

static void touch_as(struct making *m, uint64_t address, uint64_t size, enum written written, uint32_t unit)
{
	struct call_writes *writes = pages_writes();

	if (!address || !size)
		return;
	if (size > AT_ONCE || (written != WRITTEN_NOT && writes->count == MOST_WRITES)) {
		m->known = false;
		return;
	}
	pages_open(m->thread, m->here, address, size);
	if (written == WRITTEN_NOT)
		return;
	pages_keep(address, size);
	writes->items[writes->count++] = (struct call_write){address, size, written, unit};
}

static void touch_bytes(struct making *m, uint64_t address, uint64_t size, bool writes)
{
	touch_as(m, address, size, writes ? WRITTEN_ANYHOW : WRITTEN_NOT, 1);
}

static bool get(struct making *m, void *to, uint64_t address, uint64_t size)
{
	touch_bytes(m, address, size, false);
	return address && read_program(to, address, size) == 0;
}

static void touch_text(struct making *m, uint64_t address)
{
	char piece[TEXT_PIECE];

	for (uint64_t at = address, most = 0; address && most < MOST_TEXTS; most++) {
		uint64_t size = TEXT_PIECE - at % TEXT_PIECE;
		if (!get(m, piece, at, size))
			return;
		for (uint64_t i = 0; i < size; i++) {
			if (!piece[i])
				return;
		}
		at += size;
	}
}

static void touch_texts(struct making *m, uint64_t address)
{
	uint64_t text;

	for (uint64_t i = 0; i < MOST_TEXTS && get(m, &text, address + 8 * i, 8) && text; i++)
		touch_text(m, text);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void touch_vectors(struct making *m, uint64_t address, uint64_t count, bool writes)
{
	struct vector vector;

	if (count > MOST_VECTORS)
		m->known = false;
	for (uint64_t i = 0; m->known && i < count; i++) {
		if (!get(m, &vector, address + i * sizeof vector, sizeof vector))
			return;
		touch_as(m, vector.base, vector.size, writes ? WRITTEN_IN_TURN : WRITTEN_NOT, 1);
	}
}

static void touch_message(struct making *m, uint64_t address, bool writes)
{
	struct message message;

	if (!get(m, &message, address, sizeof message))
		return;
	touch_bytes(m, message.name, (uint32_t)message.name_size, writes);
	touch_bytes(m, message.control, message.control_size, writes);
	touch_vectors(m, message.vectors, message.count, writes);
	touch_bytes(m, address, sizeof message, writes);
}

static void touch_sized(struct making *m, uint64_t address, uint64_t size_at)
{
	int32_t size;

	if (!get(m, &size, size_at, sizeof size))
		return;
	if (size > 0)
		touch_bytes(m, address, (uint32_t)size, true);
	touch_bytes(m, size_at, sizeof size, true);
}

static void touch_argument(struct making *m, const struct touched *touched)
{
	uint64_t address = m->arguments[touched->argument], by = m->arguments[touched->by];
	uint64_t size = by > AT_ONCE ? AT_ONCE + 1 : by * touched->size, set[2];

	switch ((enum what)touched->what) {
	case TEXT:
		touch_text(m, address);
		break;
	case TEXTS:
		touch_texts(m, address);
		break;
	case IN:
	case OUT:
	case BOTH:
		touch_bytes(m, address, touched->size, touched->what != IN);
		break;
	case IN_BY:
	case OUT_BY:
	case BOTH_BY:
		touch_bytes(m, address, size, touched->what != IN_BY);
		break;
	case RESULT_BY:
		touch_as(m, address, size, WRITTEN_BY_RESULT, touched->size);
		break;
	case SIZED:
		touch_sized(m, address, by);
		break;
	case BITS:
		touch_bytes(m, address, (least(m->arguments[0], 8 * AT_ONCE) + 63) / 64 * 8, true);
		break;
	case VECTORS_IN:
	case VECTORS_OUT:
		touch_vectors(m, address, by, touched->what == VECTORS_OUT);
		break;
	case MESSAGE_IN:
	case MESSAGE_OUT:
		touch_message(m, address, touched->what == MESSAGE_OUT);
		break;
	case SIGNAL_SET:
		if (get(m, set, address, sizeof set))
			touch_bytes(m, set[0], 8, false);
		break;
	case NOTHING:
		break;
	}
}

/* ---- what depends on a number ---- */

static bool ioctl_is_known(struct making *m)
{
	uint64_t address = m->arguments[2];

	switch ((uint32_t)m->arguments[1]) {
	case 0x5401: /* TCGETS */
	case 0x5402: /* TCSETS, TCSETSW, TCSETSF */
	case 0x5403:
	case 0x5404:
		touch_bytes(m, address, 36, (uint32_t)m->arguments[1] == 0x5401);
		return true;
	case 0x5413: /* TIOCGWINSZ, TIOCSWINSZ */
	case 0x5414:
		touch_bytes(m, address, 8, (uint32_t)m->arguments[1] == 0x5413);
		return true;
	case 0x540f: /* TIOCGPGRP, TIOCSPGRP, FIONREAD, FIONBIO, TIOCGSID */
	case 0x5410:
	case 0x541b:
	case 0x5421:
	case 0x5429:
		touch_bytes(m, address, 4, true);
		return true;
	case 0x5409: /* TCSBRK, TCXONC, TCFLSH */
	case 0x540a:
	case 0x540b:
	case 0x5450: /* FIONCLEX, FIOCLEX */
	case 0x5451:
	case 0x40049409: /* FICLONE */
		return true;
	default:
		return false;
	}
}

static bool fcntl_is_known(struct making *m)
{
	uint32_t command = (uint32_t)m->arguments[1];

	if ((command >= 5 && command <= 7) || (command >= 36 && command <= 38)) { /* locks */
		touch_bytes(m, m->arguments[2], 32, true);
		return true;
	}
	return command <= 4 || (command >= 8 && command <= 11) || (command >= 1024 && command <= 1034);
}

static bool prctl_is_known(struct making *m)
{
	switch ((uint32_t)m->arguments[0]) {
	case 15: /* PR_SET_NAME, PR_GET_NAME */
	case 16:
		touch_bytes(m, m->arguments[1], 16, (uint32_t)m->arguments[0] == 16);
		return true;
	case 0x53564d41: /* PR_SET_VMA: a name */
		touch_text(m, m->arguments[4]);
		return true;
	case 1: /* PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_GET_KEEPCAPS, PR_SET_KEEPCAPS */
	case 3:
	case 4:
	case 7:
	case 8:
	case 23: /* PR_CAPBSET_READ */
	case 38: /* PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS */
	case 39:
		return true;
	default:
		return false;
	}
}

static bool futex_is_known(struct making *m)
{
	uint32_t command = (uint32_t)m->arguments[1] & 0x7f;

	touch_bytes(m, m->arguments[0], 4, false);
	if (command == 0 || command == 9) /* FUTEX_WAIT, FUTEX_WAIT_BITSET */
		touch_bytes(m, m->arguments[3], 16, false);
	return command == 0 || command == 1 || command == 9 || command == 10;
}

static bool ends_with_name(const char *path, unsigned last)
{
	static const char names[][16] = {
	        "maps", "smaps", "smaps_rollup", "pagemap", "mem", "numa_maps", "clear_refs"};

	for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
		unsigned i = 0;
		while (names[n][i] && names[n][i] == path[last + i])
			i++;
		if (!names[n][i] && !path[last + i])
			return true;
	}
	return false;
}

/* Whoever looks at its own mappings would see ours. */
static bool shows_memory(uint64_t address)
{
	char path[64] = {0};
	unsigned last = 0;
	bool of_processes = false;

	if (!address)
		return false;
	for (unsigned i = 0; i < sizeof path - 1 && read_program(&path[i], address + i, 1) == 0 && path[i];
	        i++) {
		last = path[i] == '/' ? i + 1 : last;
		of_processes |= i >= 4 && path[i] == '/' && path[i - 1] == 'c' && path[i - 2] == 'o' &&
		                path[i - 3] == 'r' && path[i - 4] == 'p';
	}
	return ends_with_name(path, last) && (path[0] != '/' || of_processes);
}

/* What an option leads to may have pointers in it, or memory mapped. */
static bool option_is_known(const uint64_t *a)
{
	uint32_t level = (uint32_t)a[1], option = (uint32_t)a[2];

	switch (level) {
	case 0: /* IPPROTO_IP, IPPROTO_UDP, IPPROTO_IPV6; from 64 on there are tables of filters */
	case 17:
	case 41:
		return option < 64;
	case 1: /* SOL_SOCKET; SO_ATTACH_FILTER or SO_GET_FILTER, SO_ATTACH_REUSEPORT_CBPF */
		return option != 26 && option != 51;
	case 6: /* IPPROTO_TCP; TCP_ZEROCOPY_RECEIVE */
		return option != 35;
	default:
		return false;
	}
}

/* What is closed does not count for the limit on data. */
static bool limit_is_known(uint64_t resource, uint64_t wanted)
{
	return !wanted || (uint32_t)resource != K_RLIMIT_DATA;
}

#define CLONE_CHILD_SETTID 0x1000000ul

static bool clone_is_known(struct making *m)
{
	uint64_t flags = m->arguments[0];

	if (flags & (K_CLONE_VM | K_CLONE_PIDFD))
		return false;
	if (flags & K_CLONE_PARENT_SETTID)
		touch_bytes(m, m->arguments[2], 4, true);
	if (flags & CLONE_CHILD_SETTID)
		touch_bytes(m, m->arguments[3], 4, false);
	return true;
}

/* Up to MADV_DONTNEED; MADV_MERGEABLE to MADV_NOHUGEPAGE, MADV_DONTDUMP and its contrary, MADV_COLD,
 * MADV_PAGEOUT. */
#define ADVICE_KNOWN ((1ul << 5) - 1 + (15ul << 12) + (3ul << 16) + (3ul << 20))

static bool depends_on_number(struct making *m, uint64_t number)
{
	const uint64_t *a = m->arguments;

	switch (number) {
	case __NR_ioctl:
		return ioctl_is_known(m);
	case __NR_fcntl:
		return fcntl_is_known(m);
	case __NR_prctl:
		return prctl_is_known(m);
	case __NR_arch_prctl: /* ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS */
		if ((uint32_t)a[0] == 0x1003 || (uint32_t)a[0] == 0x1004)
			touch_bytes(m, a[1], 8, true);
		return (uint32_t)a[0] >= 0x1001 && (uint32_t)a[0] <= 0x1004;
	case __NR_setsockopt:
	case __NR_getsockopt:
		return option_is_known(a);
	case __NR_setrlimit:
		return limit_is_known(a[0], a[1]);
	case __NR_prlimit64:
		return limit_is_known(a[1], a[2]);
	case __NR_futex:
		return futex_is_known(m);
	case __NR_clone:
		return clone_is_known(m);
	case __NR_mmap:
		return pages_may_map(m->thread, a);
	case __NR_mprotect:
		return !(a[2] & ~7ul) && pages_may_protect(a);
	case __NR_madvise:
		return a[2] < 64 && ADVICE_KNOWN >> a[2] & 1;
	case __NR_mremap:
		return !(a[3] & K_MREMAP_DONTUNMAP) && a[1];
	case __NR_open:
		return !shows_memory(a[0]);
	case __NR_openat:
		return !shows_memory(a[1]);
	default:
		return true;
	}
}

static bool make(struct making *m, uint64_t number)
{
	const struct call *call = number < sizeof calls / sizeof *calls ? &calls[number] : NULL;

	m->known = call && call->known;
	for (unsigned i = 0; m->known && i < MOST_TOUCHED; i++)
		touch_argument(m, &call->touched[i]);
	return m->known && depends_on_number(m, number);
}

static struct making making_of(struct thread *thread, const struct registers *call, uint64_t here)
{
	const uint64_t *gpr = call->gpr;

	return (struct making){.thread = thread,
	        .here = here,
	        .arguments = {gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]}};
}

bool calls_prepare(struct thread *thread, const struct registers *call, uint64_t here)
{
	struct making m = making_of(thread, call, here);

	pages_forget_kept();
	return make(&m, call->gpr[RAX]);
}

/*
 * While loads are compared: does it do something to memory that stays, and that nobody could see later? Then
 * whole pages are not logged again.
 */
void calls_look_at(const struct registers *call)
{
	const uint64_t *gpr = call->gpr;
	bool stays = false;

	switch (gpr[RAX]) {
	case __NR_mmap:
		stays = !pages_may_stay(gpr[R10]);
		break;
	case __NR_madvise:
		stays = gpr[RDX] >= 64 || !(ADVICE_KNOWN >> gpr[RDX] & 1);
		break;
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_mlockall:
	case __NR_remap_file_pages:
	case __NR_pkey_mprotect:
	case __NR_shmat:
	case __NR_userfaultfd:
	case __NR_io_setup:
	case __NR_io_uring_setup:
	case __NR_process_madvise:
	case K_NR_mseal:
		stays = true;
		break;
	}
	if (stays)
		process()->memory.pages_again = 0;
}

/* How much of it the call may have written. */
static uint64_t written_size(const struct call_write *write, uint64_t result, uint64_t *left)
{
	bool failed = is_error(result), partly = result == (uint64_t)-K_EFAULT;
	uint64_t size = write->size;

	switch (write->written) {
	case WRITTEN_BY_RESULT:
		return failed ? (partly ? size : 0) : least(size, least(result, AT_ONCE) * write->unit);
	case WRITTEN_IN_TURN:
		if (!partly)
			size = least(size, *left);
		*left -= least(size, *left);
		return size;
	default:
		return size;
	}
}

void calls_done(struct thread *thread, const struct registers *call, uint64_t here)
{
	struct making m = making_of(thread, call, here);
	uint64_t number = call->gpr[RAX], result = thread->regs.gpr[RAX],
	         left = is_error(result) ? 0 : result;
	struct call_writes *writes = pages_writes();

	pages_mapped(thread, here, number, m.arguments, result);
	for (uint32_t i = 0; i < writes->count; i++)
		pages_log(thread, here, writes->items[i].address,
		        written_size(&writes->items[i], result, &left));
	pages_forget_kept();
	pages_log_written(thread, here);
}
