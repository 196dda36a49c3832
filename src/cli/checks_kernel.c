/* bugnet doctor: what the kernel lets us do. */
#define _GNU_SOURCE 1

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <elf.h>
#include <unistd.h>

#include "cli/checks.h"

#define CONTAINER_ADVICE "allow it in the container's seccomp profile (docker: --security-opt seccomp=FILE)"

void check_kernel(struct finding *finding)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	finding_what(finding, "Linux %s", name.release);
	if (major > 5 || (major == 5 && minor >= 9))
		return;
	/* Distributions carry FSGSBASE back to older versions. */
	finding_mend(finding, fsgsbase_enabled() ? CHECK_WARN : CHECK_FAIL, "use Linux 5.9 or later");
}

/* gVisor pretends to be Linux everywhere except in its kernel log. */
static bool is_gvisor(void)
{
	enum { READ_ALL = 3 };
	char log[4096];
	int length = klogctl(READ_ALL, log, sizeof(log) - 1);

	if (length <= 0)
		return false;
	log[length] = '\0';
	return strstr(log, "Starting gVisor") != NULL;
}

void check_sandbox(struct finding *finding)
{
	char version[512] = "";

	read_first_line("/proc/version", version, sizeof(version));
	if (strcasestr(version, "microsoft")) {
		bool second = strstr(version, "WSL2") != NULL;

		finding_what(finding, "Windows Subsystem for Linux %s",
		        second ? "2: a Linux kernel of its own make, on which bugnet is not tested"
		               : "1: not a Linux kernel");
		finding_mend(finding, CHECK_WARN, "%s",
		        second ? "if a program behaves differently, try it on plain Linux"
		               : "use WSL 2: wsl --set-version DISTRIBUTION 2");
	} else if (is_gvisor()) {
		finding_what(finding, "gVisor: not a Linux kernel");
		finding_mend(finding, CHECK_WARN, "run the container with runc (docker run --runtime=runc)");
	} else if (access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0) {
		finding_what(finding, "in a container, on a Linux kernel");
	} else {
		finding_what(finding, "none noticed");
	}
}

void check_memfd(struct finding *finding)
{
	int fd = memfd_create("bugnet-doctor", MFD_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		finding_what(finding, "memfd_create works");
		return;
	}
	finding_what(finding, "memfd_create: %s", strerror(errno));
	if (errno == EACCES)
		finding_mend(finding, CHECK_FAIL, "sysctl vm.memfd_noexec=1 or 0");
	else
		finding_mend(finding, CHECK_FAIL, CONTAINER_ADVICE);
}

/* Put code into a memfd through one mapping and run it through another, as the cache does. */
static bool run_from_memfd(int fd)
{
	static const uint8_t code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov eax,42; ret */
	int (*function)(void);
	void *mapping;
	bool ran;

	if (write(fd, code, sizeof(code)) != sizeof(code))
		return false;
	mapping = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (mapping == MAP_FAILED)
		return false;
	memcpy(&function, &mapping, sizeof(function));
	ran = function() == 42;
	munmap(mapping, 4096);
	return ran;
}

void check_memfd_exec(struct finding *finding)
{
	char setting[16];
	int fd = memfd_create("bugnet-doctor", MFD_CLOEXEC);

	if (!read_first_line("/proc/sys/vm/memfd_noexec", setting, sizeof(setting)))
		strcpy(setting, "not there");
	if (fd >= 0 && run_from_memfd(fd)) {
		finding_what(finding, "code in a memfd can be executed (vm.memfd_noexec: %s)", setting);
	} else {
		finding_what(finding, "code in a memfd cannot be executed: %s (vm.memfd_noexec: %s)",
		        strerror(errno), setting);
		finding_mend(finding, CHECK_FAIL,
		        "sysctl vm.memfd_noexec=0; with SELinux allow execmem and execmod to this user");
	}
	if (fd >= 0)
		close(fd);
}

void check_process_vm(struct finding *finding)
{
	char from = 'x', to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 && to == from) {
		finding_what(finding, "process_vm_readv works");
		return;
	}
	finding_what(finding, "process_vm_readv: %s", strerror(errno));
	finding_mend(finding, CHECK_FAIL, CONTAINER_ADVICE);
}

void check_pidfd(struct finding *finding)
{
	int fd = syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		close(fd);
		finding_what(finding, "pidfd_open works");
		return;
	}
	finding_what(finding, "pidfd_open: %s", strerror(errno));
	finding_mend(finding, CHECK_FAIL, CONTAINER_ADVICE);
}

/* ---- ptrace ---- */

/* Seize, stop, read registers, let go. Returns 0 or an errno. */
static int trace(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec vector = {&registers, sizeof(registers)};
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		return errno;
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return ECHILD;
	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector) < 0)
		return errno;
	return ptrace(PTRACE_DETACH, pid, 0, 0) < 0 ? errno : 0;
}

static int exit_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/*
 * Play the program that is to be traced by a helper it started: the helper is not its
 * ancestor, so it needs the permission that bugnet asks for too. Never returns; the
 * exit status is 0 or an errno.
 */
__attribute__((noreturn)) static void be_traced(void)
{
	pid_t self = getpid();
	int go[2];
	pid_t helper;
	char byte = 0;

	alarm(5); /* whatever goes wrong, doctor goes on */
	if (pipe(go) < 0)
		_exit(errno);
	helper = fork();
	if (helper < 0)
		_exit(errno);
	if (helper == 0) {
		alarm(5);
		if (read(go[0], &byte, 1) != 1)
			_exit(EPIPE);
		_exit(trace(self));
	}
	prctl(PR_SET_PTRACER, helper, 0, 0, 0); /* fails without Yama, which then needs none */
	if (write(go[1], &byte, 1) != 1)
		_exit(errno);
	_exit(exit_status(helper));
}

static int try_ptrace(void)
{
	pid_t child;

	signal(SIGCHLD, SIG_DFL); /* whoever started us may ignore it, which takes exit statuses away */
	child = fork();
	if (child < 0)
		return errno;
	if (child == 0)
		be_traced();
	return exit_status(child);
}

void check_ptrace(struct finding *finding)
{
	char scope[16], tracer[32];
	int error = try_ptrace();

	if (!read_first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		strcpy(scope, "no Yama");
	if (error == 0) {
		finding_what(finding, "a helper can trace this process (Yama ptrace_scope: %s)", scope);
		return;
	}
	finding_what(finding, "a helper cannot trace this process: %s (Yama ptrace_scope: %s)",
	        strerror(error), scope);
	if (read_field("/proc/self/status", "TracerPid", tracer, sizeof(tracer)) && atoi(tracer) != 0)
		finding_mend(finding, CHECK_FAIL, "bugnet itself is traced by process %d: run it without",
		        atoi(tracer));
	else if (error == EAGAIN)
		finding_mend(finding, CHECK_FAIL, "allow more processes: ulimit -u unlimited");
	else if (*scope == '3')
		finding_mend(finding, CHECK_FAIL,
		        "scope 3 lasts until the next boot: set kernel.yama.ptrace_scope=1 in /etc/sysctl.d "
		        "and boot");
	else if (*scope == '2')
		finding_mend(finding, CHECK_FAIL,
		        "sysctl kernel.yama.ptrace_scope=1, or give bugnet CAP_SYS_PTRACE");
	else
		finding_mend(
		        finding, CHECK_FAIL, "allow ptrace in the container (docker: --cap-add=SYS_PTRACE)");
}

/* ---- the rest ---- */

void check_seccomp(struct finding *finding)
{
	char mode[16];

	if (!read_field("/proc/self/status", "Seccomp", mode, sizeof(mode)))
		finding_what(finding, "unknown: /proc/self/status does not say");
	else if (atoi(mode) == 0)
		finding_what(finding, "no filter");
	else
		finding_what(
		        finding, "a filter is in force (a container?); what bugnet needs is tried above");
}

void check_vsyscall(struct finding *finding)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	const char *mode = "none";

	while (maps && fgets(line, sizeof(line), maps)) {
		char permissions[8] = "";

		if (strstr(line, "[vsyscall]") && sscanf(line, "%*s %7s", permissions) == 1)
			mode = *permissions == 'r' ? "emulate" : "xonly";
	}
	if (maps)
		fclose(maps);
	finding_what(finding, "%s", maps ? mode : "unknown: /proc/self/maps cannot be read");
}

void check_user_namespace(struct finding *finding)
{
	char line[128];
	unsigned long inside, outside, count;

	if (!read_first_line("/proc/self/uid_map", line, sizeof(line)) ||
	        sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3)
		finding_what(finding, "none, or not known");
	else if (inside == 0 && outside == 0 && count == UINT32_MAX)
		finding_what(finding, "the initial one; uid %u", geteuid());
	else
		finding_what(finding, "one of its own: uid %lu here is %lu outside; uid %u", inside, outside,
		        geteuid());
}

void check_perf(struct finding *finding)
{
	struct perf_event_attr attributes = {
	        .type = PERF_TYPE_HARDWARE,
	        .size = sizeof(attributes),
	        .config = PERF_COUNT_HW_INSTRUCTIONS,
	        .exclude_kernel = 1,
	        .exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	finding_what(
	        finding, "hardware counters are %s; not needed", fd >= 0 ? "available" : "not available");
}
