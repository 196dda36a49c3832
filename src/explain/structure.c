#include "explain/structure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "explain/quote.h"
#include "explain/vocabulary.h"
#include "recording/names.h"

#define KERNEL_SIGNALS 64
#define RESTORER       0x04000000u

/* ---- parts ---- */

static uint64_t number_at(const uint8_t *bytes, size_t offset, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, bytes + offset, size);
	return number;
}

static int32_t int_at(const uint8_t *bytes, size_t offset)
{
	return (int32_t)number_at(bytes, offset, 4);
}

static int64_t long_at(const uint8_t *bytes, size_t offset)
{
	return (int64_t)number_at(bytes, offset, 8);
}

static void print_pointer(FILE *out, uint64_t address)
{
	if (address)
		fprintf(out, "%#" PRIx64, address);
	else
		fputs("NULL", out);
}

static void print_signal_short(FILE *out, unsigned number)
{
	char name[NAME_TEXT_SIZE];

	fputs(signal_name(number, name) + 3, out); /* without SIG */
}

/* The shorter of the set and of what is not in it, as strace prefers it. */
void explain_signal_set(FILE *out, uint64_t set)
{
	bool inverted = __builtin_popcountll(set) >= KERNEL_SIGNALS * 2 / 3;
	bool first = true;

	if (inverted)
		set = ~set;
	fputs(inverted ? "~[" : "[", out);
	for (unsigned i = 0; i < KERNEL_SIGNALS; i++) {
		if (!(set >> i & 1))
			continue;
		if (!first)
			fputc(' ', out);
		print_signal_short(out, i + 1);
		first = false;
	}
	fputc(']', out);
}

void explain_file_mode(FILE *out, uint32_t mode)
{
	static const struct {
		uint32_t type;
		const char *name;
	} types[] = {{S_IFREG, "S_IFREG"}, {S_IFDIR, "S_IFDIR"}, {S_IFLNK, "S_IFLNK"}, {S_IFCHR, "S_IFCHR"},
	        {S_IFBLK, "S_IFBLK"}, {S_IFIFO, "S_IFIFO"}, {S_IFSOCK, "S_IFSOCK"}};
	uint32_t rest = mode & ~(uint32_t)S_IFMT;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if ((mode & S_IFMT) == types[i].type) {
			fprintf(out, "%s|", types[i].name);
			rest = mode & 07777;
		}
	}
	if (mode & S_ISUID)
		fputs("S_ISUID|", out);
	if (mode & S_ISGID)
		fputs("S_ISGID|", out);
	if (mode & S_ISVTX)
		fputs("S_ISVTX|", out);
	fprintf(out, "0%03o", rest & ~07000u);
}

static void print_text_field(FILE *out, const uint8_t *bytes, size_t size)
{
	explain_quoted(out, bytes, strnlen((const char *)bytes, size), false);
}

/* ---- files ---- */

static void print_device(FILE *out, uint64_t device)
{
	fprintf(out, "makedev(%#x, %#x)", gnu_dev_major(device), gnu_dev_minor(device));
}

static void print_stat(FILE *out, const uint8_t *bytes)
{
	struct stat status;

	memcpy(&status, bytes, sizeof status);
	fputs("{st_mode=", out);
	explain_file_mode(out, status.st_mode);
	if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
		fputs(", st_rdev=", out);
		print_device(out, status.st_rdev);
	} else {
		fprintf(out, ", st_size=%" PRId64, (int64_t)status.st_size);
	}
	fputs(", ...}", out);
}

static void print_statx(FILE *out, const uint8_t *bytes)
{
	fputs("{stx_mask=", out);
	explain_flags(out, NAMES_STATX, number_at(bytes, 0, 4));
	fputs(", stx_attributes=", out);
	explain_flags(out, NAMES_STATX_ATTRIBUTE, number_at(bytes, 8, 8));
	fputs(", stx_mode=", out);
	explain_file_mode(out, (uint32_t)number_at(bytes, 28, 2));
	fprintf(out, ", stx_size=%" PRIu64 ", ...}", number_at(bytes, 40, 8));
}

static void print_statfs(FILE *out, const uint8_t *bytes)
{
	struct statfs status;

	memcpy(&status, bytes, sizeof status);
	fprintf(out,
	        "{f_type=%#lx, f_bsize=%ld, f_blocks=%lu, f_bfree=%lu, f_bavail=%lu, f_files=%lu, "
	        "f_ffree=%lu, ...}",
	        (unsigned long)status.f_type, (long)status.f_bsize, (unsigned long)status.f_blocks,
	        (unsigned long)status.f_bfree, (unsigned long)status.f_bavail, (unsigned long)status.f_files,
	        (unsigned long)status.f_ffree);
}

static void print_flock(FILE *out, const uint8_t *bytes)
{
	static const char *const types[] = {"F_RDLCK", "F_WRLCK", "F_UNLCK"};
	uint64_t type = number_at(bytes, 0, 2);

	if (type < sizeof types / sizeof *types)
		fprintf(out, "{l_type=%s, l_whence=", types[type]);
	else
		fprintf(out, "{l_type=%#" PRIx64 ", l_whence=", type);
	explain_choice(out, NAMES_SEEK, number_at(bytes, 2, 2));
	fprintf(out, ", l_start=%" PRId64 ", l_len=%" PRId64 "}", long_at(bytes, 8), long_at(bytes, 16));
}

/* ---- time ---- */

static void print_time(FILE *out, const uint8_t *bytes, const char *fraction)
{
	fprintf(out, "{tv_sec=%" PRId64 ", %s=%" PRId64 "}", long_at(bytes, 0), fraction, long_at(bytes, 8));
}

static void print_timespec(FILE *out, const uint8_t *bytes)
{
	print_time(out, bytes, "tv_nsec");
}

static void print_timeval(FILE *out, const uint8_t *bytes)
{
	print_time(out, bytes, "tv_usec");
}

/* utimensat: UTIME_NOW and UTIME_OMIT stand in the nanoseconds. */
static void print_utime(FILE *out, const uint8_t *bytes)
{
	if (long_at(bytes, 8) == UTIME_NOW)
		fputs("UTIME_NOW", out);
	else if (long_at(bytes, 8) == UTIME_OMIT)
		fputs("UTIME_OMIT", out);
	else
		print_timespec(out, bytes);
}

static void print_utimes(FILE *out, const uint8_t *bytes)
{
	fputc('[', out);
	print_utime(out, bytes);
	fputs(", ", out);
	print_utime(out, bytes + 16);
	fputc(']', out);
}

static void print_timer(FILE *out, const uint8_t *bytes, const char *fraction)
{
	fputs("{it_interval=", out);
	print_time(out, bytes, fraction);
	fputs(", it_value=", out);
	print_time(out, bytes + 16, fraction);
	fputc('}', out);
}

static void print_itimerval(FILE *out, const uint8_t *bytes)
{
	print_timer(out, bytes, "tv_usec");
}

static void print_itimerspec(FILE *out, const uint8_t *bytes)
{
	print_timer(out, bytes, "tv_nsec");
}

static void print_timezone(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "{tz_minuteswest=%d, tz_dsttime=%d}", int_at(bytes, 0), int_at(bytes, 4));
}

/* ---- the process ---- */

static void print_limit(FILE *out, uint64_t limit)
{
	if (limit == UINT64_MAX)
		fputs("RLIM64_INFINITY", out);
	else if (limit > 1024 && limit % 1024 == 0)
		fprintf(out, "%" PRIu64 "*1024", limit / 1024);
	else
		fprintf(out, "%" PRIu64, limit);
}

static void print_rlimit(FILE *out, const uint8_t *bytes)
{
	fputs("{rlim_cur=", out);
	print_limit(out, number_at(bytes, 0, 8));
	fputs(", rlim_max=", out);
	print_limit(out, number_at(bytes, 8, 8));
	fputc('}', out);
}

static void print_rusage(FILE *out, const uint8_t *bytes)
{
	fputs("{ru_utime=", out);
	print_timeval(out, bytes);
	fputs(", ru_stime=", out);
	print_timeval(out, bytes + 16);
	fputs(", ...}", out);
}

static void print_tms(FILE *out, const uint8_t *bytes)
{
	fprintf(out,
	        "{tms_utime=%" PRId64 ", tms_stime=%" PRId64 ", tms_cutime=%" PRId64 ", tms_cstime=%" PRId64
	        "}",
	        long_at(bytes, 0), long_at(bytes, 8), long_at(bytes, 16), long_at(bytes, 24));
}

static void print_utsname(FILE *out, const uint8_t *bytes)
{
	struct utsname name;

	memcpy(&name, bytes, offsetof(struct utsname, release));
	fputs("{sysname=", out);
	print_text_field(out, (const uint8_t *)name.sysname, sizeof name.sysname);
	fputs(", nodename=", out);
	print_text_field(out, (const uint8_t *)name.nodename, sizeof name.nodename);
	fputs(", ...}", out);
}

static void print_sysinfo(FILE *out, const uint8_t *bytes)
{
	struct sysinfo info;

	memcpy(&info, bytes, sizeof info);
	fprintf(out,
	        "{uptime=%ld, loads=[%lu, %lu, %lu], totalram=%lu, freeram=%lu, sharedram=%lu, "
	        "bufferram=%lu, "
	        "totalswap=%lu, freeswap=%lu, procs=%u, totalhigh=%lu, freehigh=%lu, mem_unit=%u}",
	        info.uptime, info.loads[0], info.loads[1], info.loads[2], info.totalram, info.freeram,
	        info.sharedram, info.bufferram, info.totalswap, info.freeswap, info.procs, info.totalhigh,
	        info.freehigh, info.mem_unit);
}

static void print_wait_status(FILE *out, const uint8_t *bytes)
{
	int status = int_at(bytes, 0);
	char name[NAME_TEXT_SIZE];

	if (WIFEXITED(status))
		fprintf(out, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSTOPPED(status))
		fprintf(out, "[{WIFSTOPPED(s) && WSTOPSIG(s) == %s}]",
		        signal_name((uint32_t)WSTOPSIG(status), name));
	else if (WIFSIGNALED(status))
		fprintf(out, "[{WIFSIGNALED(s) && WTERMSIG(s) == %s%s}]",
		        signal_name((uint32_t)WTERMSIG(status), name),
		        WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	else
		fprintf(out, "[{WIFCONTINUED(s)}]");
}

static void print_clone(FILE *out, const uint8_t *bytes)
{
	char name[NAME_TEXT_SIZE];
	uint64_t flags = number_at(bytes, 0, 8), signal = number_at(bytes, 32, 8);

	fputs("{flags=", out);
	explain_flags(out, NAMES_CLONE, flags);
	if (flags & 0x01200000) /* CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID */
		fprintf(out, ", child_tid=%#" PRIx64, number_at(bytes, 16, 8));
	if (flags & 0x00100000) /* CLONE_PARENT_SETTID */
		fprintf(out, ", parent_tid=%#" PRIx64, number_at(bytes, 24, 8));
	fprintf(out, ", exit_signal=%s, stack=", signal ? signal_name((uint32_t)signal, name) : "0");
	print_pointer(out, number_at(bytes, 40, 8));
	fprintf(out, ", stack_size=%#" PRIx64, number_at(bytes, 48, 8));
	if (flags & 0x00080000) /* CLONE_SETTLS */
		fprintf(out, ", tls=%#" PRIx64, number_at(bytes, 56, 8));
	fputc('}', out);
}

/* ---- signals ---- */

static void print_sigaction(FILE *out, const uint8_t *bytes)
{
	uint64_t handler = number_at(bytes, 0, 8), flags = number_at(bytes, 8, 8);

	fputs("{sa_handler=", out);
	if (handler == (uint64_t)(uintptr_t)SIG_DFL)
		fputs("SIG_DFL", out);
	else if (handler == (uint64_t)(uintptr_t)SIG_IGN)
		fputs("SIG_IGN", out);
	else
		fprintf(out, "%#" PRIx64, handler);
	fputs(", sa_mask=", out);
	explain_signal_set(out, number_at(bytes, 24, 8));
	fputs(", sa_flags=", out);
	explain_flags(out, NAMES_SIGACTION, (uint32_t)flags);
	if (flags & RESTORER)
		fprintf(out, ", sa_restorer=%#" PRIx64, number_at(bytes, 16, 8));
	fputc('}', out);
}

static void print_sigset(FILE *out, const uint8_t *bytes)
{
	explain_signal_set(out, number_at(bytes, 0, 8));
}

static void print_sigstack(FILE *out, const uint8_t *bytes)
{
	fputs("{ss_sp=", out);
	print_pointer(out, number_at(bytes, 0, 8));
	fputs(", ss_flags=", out);
	explain_flags(out, NAMES_SIGSTACK, number_at(bytes, 8, 4));
	fprintf(out, ", ss_size=%" PRIu64 "}", number_at(bytes, 16, 8));
}

static void print_siginfo(FILE *out, const uint8_t *bytes)
{
	char text[SIGNAL_INFO_TEXT_SIZE];
	uint64_t details[4];

	memcpy(details, bytes + 16, sizeof details);
	fputs(signal_info_text((uint32_t)number_at(bytes, 0, 4), int_at(bytes, 8), details, text), out);
}

/* ---- terminals ---- */

static void print_termios(FILE *out, const uint8_t *bytes)
{
	fprintf(out,
	        "{c_iflag=%#" PRIx64 ", c_oflag=%#" PRIx64 ", c_cflag=%#" PRIx64 ", c_lflag=%#" PRIx64
	        ", ...}",
	        number_at(bytes, 0, 4), number_at(bytes, 4, 4), number_at(bytes, 8, 4),
	        number_at(bytes, 12, 4));
}

static void print_winsize(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "{ws_row=%u, ws_col=%u, ws_xpixel=%u, ws_ypixel=%u}", (unsigned)number_at(bytes, 0, 2),
	        (unsigned)number_at(bytes, 2, 2), (unsigned)number_at(bytes, 4, 2),
	        (unsigned)number_at(bytes, 6, 2));
}

/* ---- descriptors ---- */

static void print_epoll_event(FILE *out, const uint8_t *bytes)
{
	fputs("{events=", out);
	explain_flags(out, NAMES_EPOLL, number_at(bytes, 0, 4));
	fprintf(out, ", data={u32=%" PRIu64 ", u64=%" PRIu64 "}}", number_at(bytes, 4, 4),
	        number_at(bytes, 4, 8));
}

static void print_pollfd(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "{fd=%d", int_at(bytes, 0));
	if (int_at(bytes, 0) >= 0) {
		fputs(", events=", out);
		explain_flags(out, NAMES_POLL, number_at(bytes, 4, 2));
	}
	fputc('}', out);
}

static void print_unix_address(FILE *out, const uint8_t *bytes, uint32_t size)
{
	size_t start = offsetof(struct sockaddr_un, sun_path);

	if (size <= start)
		return;
	fputs(", sun_path=", out);
	if (!bytes[start]) { /* an abstract name: all of it counts, behind the zero */
		fputc('@', out);
		explain_quoted(out, bytes + start + 1, size - start - 1, false);
	} else {
		print_text_field(out, bytes + start, size - start);
	}
}

static void print_inet_address(FILE *out, const uint8_t *bytes)
{
	struct sockaddr_in address;
	char text[INET_ADDRSTRLEN];

	memcpy(&address, bytes, sizeof address);
	fprintf(out, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", ntohs(address.sin_port),
	        inet_ntop(AF_INET, &address.sin_addr, text, sizeof text));
}

static void print_inet6_address(FILE *out, const uint8_t *bytes)
{
	struct sockaddr_in6 address;
	char text[INET6_ADDRSTRLEN];

	memcpy(&address, bytes, sizeof address);
	fprintf(out,
	        ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", &sin6_addr), "
	        "sin6_scope_id=%u",
	        ntohs(address.sin6_port), ntohl(address.sin6_flowinfo),
	        inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text), address.sin6_scope_id);
}

void explain_socket_address(FILE *out, const uint8_t *bytes, uint32_t size)
{
	uint64_t family = number_at(bytes, 0, 2);

	fputs("{sa_family=", out);
	explain_choice(out, NAMES_FAMILY, family);
	if (family == AF_UNIX) {
		print_unix_address(out, bytes, size);
	} else if (family == AF_INET && size >= sizeof(struct sockaddr_in)) {
		print_inet_address(out, bytes);
	} else if (family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
		print_inet6_address(out, bytes);
	} else if (family == AF_NETLINK && size >= 12) {
		fprintf(out, ", nl_pid=%d, nl_groups=%08" PRIx64, int_at(bytes, 4), number_at(bytes, 8, 4));
	} else if (size > 2) {
		fputs(", sa_data=", out);
		explain_quoted(out, bytes + 2, size - 2, false);
	}
	fputc('}', out);
}

/* ---- all of them ---- */

static void print_int(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "[%d]", int_at(bytes, 0));
}

static void print_int_pair(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "[%d, %d]", int_at(bytes, 0), int_at(bytes, 4));
}

static void print_long(FILE *out, const uint8_t *bytes)
{
	fprintf(out, "[%" PRId64 "]", long_at(bytes, 0));
}

void explain_structure(FILE *out, enum structure structure, const uint8_t *bytes)
{
	static void (*const printers[STRUCTURES])(FILE * out, const uint8_t *bytes) = {
	        [STRUCTURE_INT] = print_int,
	        [STRUCTURE_INT_PAIR] = print_int_pair,
	        [STRUCTURE_LONG] = print_long,
	        [STRUCTURE_WAIT_STATUS] = print_wait_status,
	        [STRUCTURE_STAT] = print_stat,
	        [STRUCTURE_STATX] = print_statx,
	        [STRUCTURE_STATFS] = print_statfs,
	        [STRUCTURE_TIMESPEC] = print_timespec,
	        [STRUCTURE_TIMEVAL] = print_timeval,
	        [STRUCTURE_UTIMES] = print_utimes,
	        [STRUCTURE_TIMEZONE] = print_timezone,
	        [STRUCTURE_ITIMERVAL] = print_itimerval,
	        [STRUCTURE_ITIMERSPEC] = print_itimerspec,
	        [STRUCTURE_RLIMIT] = print_rlimit,
	        [STRUCTURE_SIGACTION] = print_sigaction,
	        [STRUCTURE_SIGSET] = print_sigset,
	        [STRUCTURE_SIGSTACK] = print_sigstack,
	        [STRUCTURE_SIGINFO] = print_siginfo,
	        [STRUCTURE_UTSNAME] = print_utsname,
	        [STRUCTURE_RUSAGE] = print_rusage,
	        [STRUCTURE_SYSINFO] = print_sysinfo,
	        [STRUCTURE_TMS] = print_tms,
	        [STRUCTURE_TERMIOS] = print_termios,
	        [STRUCTURE_WINSIZE] = print_winsize,
	        [STRUCTURE_FLOCK] = print_flock,
	        [STRUCTURE_EPOLL_EVENT] = print_epoll_event,
	        [STRUCTURE_POLLFD] = print_pollfd,
	        [STRUCTURE_CLONE] = print_clone,
	};

	if (printers[structure])
		printers[structure](out, bytes);
	else
		fputs("{...}", out);
}
