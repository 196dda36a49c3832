#include "recording/names.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "recording/event.h"

#define ERRNO_MAXIMUM 4095 /* results from -4095 to -1 are errors */

/* ---- system calls ---- */

static const char *const syscall_names[] = {
#include "syscall_names.inc" /* made from the kernel's header when bugnet is built */
};

const char *syscall_name(uint64_t number, char text[NAME_TEXT_SIZE])
{
	if (number < sizeof syscall_names / sizeof *syscall_names && syscall_names[number])
		snprintf(text, NAME_TEXT_SIZE, "%s", syscall_names[number]);
	else
		snprintf(text, NAME_TEXT_SIZE, "syscall_%" PRIu64, number);
	return text;
}

static bool returns_address(uint64_t number)
{
	return number == SYS_mmap || number == SYS_mremap || number == SYS_brk || number == SYS_shmat;
}

const char *syscall_result_text(uint64_t number, int64_t result, char text[NAME_TEXT_SIZE])
{
	if (result < 0 && result >= -ERRNO_MAXIMUM) {
		const char *name = strerrorname_np((int)-result);
		if (name)
			snprintf(text, NAME_TEXT_SIZE, "-1 %s (%s)", name, strerrordesc_np((int)-result));
		else
			snprintf(text, NAME_TEXT_SIZE, "-1 (errno %" PRId64 ")", -result);
	} else if (returns_address(number) && result) {
		snprintf(text, NAME_TEXT_SIZE, "%#" PRIx64, (uint64_t)result);
	} else {
		snprintf(text, NAME_TEXT_SIZE, "%" PRId64, result);
	}
	return text;
}

/* ---- signals ---- */

#define KERNEL_SIGRTMIN 32 /* libc keeps the first ones for itself, the kernel counts from here */

const char *signal_name(uint32_t number, char text[NAME_TEXT_SIZE])
{
	const char *name = number < KERNEL_SIGRTMIN ? sigabbrev_np((int)number) : NULL;

	if (number == SIGIO) /* libc prefers its other name */
		snprintf(text, NAME_TEXT_SIZE, "SIGIO");
	else if (name)
		snprintf(text, NAME_TEXT_SIZE, "SIG%s", name);
	else if (number == KERNEL_SIGRTMIN)
		snprintf(text, NAME_TEXT_SIZE, "SIGRTMIN");
	else if (number > KERNEL_SIGRTMIN && number <= 64)
		snprintf(text, NAME_TEXT_SIZE, "SIGRT_%u", number - KERNEL_SIGRTMIN);
	else
		snprintf(text, NAME_TEXT_SIZE, "SIG%u", number);
	return text;
}

/* Signal 0: any signal. */
static const struct {
	uint32_t signal;
	int32_t code;
	const char *name;
} codes[] = {
#define ANY(name)                                                                                            \
	{                                                                                                    \
		0, name, #name                                                                               \
	}
#define CODE(signal, name)                                                                                   \
	{                                                                                                    \
		signal, name, #name                                                                          \
	}
        ANY(SI_USER),
        ANY(SI_KERNEL),
        ANY(SI_QUEUE),
        ANY(SI_TIMER),
        ANY(SI_MESGQ),
        ANY(SI_ASYNCIO),
        ANY(SI_SIGIO),
        ANY(SI_TKILL),
        CODE(SIGILL, ILL_ILLOPC),
        CODE(SIGILL, ILL_ILLOPN),
        CODE(SIGILL, ILL_ILLADR),
        CODE(SIGILL, ILL_ILLTRP),
        CODE(SIGILL, ILL_PRVOPC),
        CODE(SIGILL, ILL_PRVREG),
        CODE(SIGILL, ILL_COPROC),
        CODE(SIGILL, ILL_BADSTK),
        CODE(SIGFPE, FPE_INTDIV),
        CODE(SIGFPE, FPE_INTOVF),
        CODE(SIGFPE, FPE_FLTDIV),
        CODE(SIGFPE, FPE_FLTOVF),
        CODE(SIGFPE, FPE_FLTUND),
        CODE(SIGFPE, FPE_FLTRES),
        CODE(SIGFPE, FPE_FLTINV),
        CODE(SIGFPE, FPE_FLTSUB),
        CODE(SIGSEGV, SEGV_MAPERR),
        CODE(SIGSEGV, SEGV_ACCERR),
        CODE(SIGSEGV, SEGV_BNDERR),
        CODE(SIGSEGV, SEGV_PKUERR),
        CODE(SIGBUS, BUS_ADRALN),
        CODE(SIGBUS, BUS_ADRERR),
        CODE(SIGBUS, BUS_OBJERR),
        CODE(SIGBUS, BUS_MCEERR_AR),
        CODE(SIGBUS, BUS_MCEERR_AO),
        CODE(SIGTRAP, TRAP_BRKPT),
        CODE(SIGTRAP, TRAP_TRACE),
        CODE(SIGTRAP, TRAP_BRANCH),
        CODE(SIGTRAP, TRAP_HWBKPT),
        CODE(SIGCHLD, CLD_EXITED),
        CODE(SIGCHLD, CLD_KILLED),
        CODE(SIGCHLD, CLD_DUMPED),
        CODE(SIGCHLD, CLD_TRAPPED),
        CODE(SIGCHLD, CLD_STOPPED),
        CODE(SIGCHLD, CLD_CONTINUED),
        CODE(SIGPOLL, POLL_IN),
        CODE(SIGPOLL, POLL_OUT),
        CODE(SIGPOLL, POLL_MSG),
        CODE(SIGPOLL, POLL_ERR),
        CODE(SIGPOLL, POLL_PRI),
        CODE(SIGPOLL, POLL_HUP),
};

const char *signal_code_name(uint32_t signal, int32_t code, char text[NAME_TEXT_SIZE])
{
	if (signal == SIGSYS && code == 1)
		return strcpy(text, "SYS_SECCOMP");
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (codes[i].code == code && (!codes[i].signal || codes[i].signal == signal)) {
			snprintf(text, NAME_TEXT_SIZE, "%s", codes[i].name);
			return text;
		}
	}
	snprintf(text, NAME_TEXT_SIZE, "%d", code);
	return text;
}

static bool has_address(uint32_t signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGTRAP;
}

static void child_text(int32_t code, const uint64_t details[4], char *text, size_t size)
{
	uint32_t status = (uint32_t)details[1];
	char name[NAME_TEXT_SIZE], how[NAME_TEXT_SIZE];

	if (code == CLD_EXITED)
		snprintf(how, sizeof how, "%" PRId32, (int32_t)status);
	else
		snprintf(how, sizeof how, "%s", signal_name(status, name));
	snprintf(text, size, ", si_pid=%d, si_uid=%u, si_status=%s, si_utime=%" PRId64 ", si_stime=%" PRId64,
	        (int)details[0], (uint32_t)(details[0] >> 32), how, (int64_t)details[2], (int64_t)details[3]);
}

/* What comes with a signal depends on who sent it; from the kernel, on the signal. */
static void details_text(uint32_t signal, int32_t code, const uint64_t details[4], char *text, size_t size)
{
	int first = (int)details[0];
	uint32_t second = (uint32_t)(details[0] >> 32);

	*text = 0;
	if (code == SI_USER || code == SI_TKILL)
		snprintf(text, size, ", si_pid=%d, si_uid=%u", first, second);
	else if (code == SI_TIMER)
		snprintf(text, size,
		        ", si_timerid=%d, si_overrun=%d, si_value={sival_int=%d, sival_ptr=%#" PRIx64 "}",
		        first, (int)second, (int)details[1], details[1]);
	else if (code < 0)
		snprintf(text, size,
		        ", si_pid=%d, si_uid=%u, si_value={sival_int=%d, sival_ptr=%#" PRIx64 "}", first,
		        second, (int)details[1], details[1]);
	else if (signal == SIGCHLD && code != SI_KERNEL)
		child_text(code, details, text, size);
	else if (has_address(signal) && details[0])
		snprintf(text, size, ", si_addr=%#" PRIx64, details[0]);
	else if (has_address(signal))
		snprintf(text, size, ", si_addr=NULL");
}

const char *signal_info_text(
        uint32_t signal, int32_t code, const uint64_t details[4], char text[SIGNAL_INFO_TEXT_SIZE])
{
	char name[NAME_TEXT_SIZE], code_name[NAME_TEXT_SIZE],
	        rest[SIGNAL_INFO_TEXT_SIZE - 2 * NAME_TEXT_SIZE];

	details_text(signal, code, details, rest, sizeof rest);
	snprintf(text, SIGNAL_INFO_TEXT_SIZE, "{si_signo=%s, si_code=%s%s}", signal_name(signal, name),
	        signal_code_name(signal, code, code_name), rest);
	return text;
}

const char *end_text(uint32_t kind, int32_t status, char text[NAME_TEXT_SIZE])
{
	char name[NAME_TEXT_SIZE];

	switch (kind) {
	case END_EXIT:
	case END_THREAD_EXIT:
		snprintf(text, NAME_TEXT_SIZE, "exited with status %d", status & 0xff);
		return text;
	case END_KILLED:
		snprintf(text, NAME_TEXT_SIZE, "killed by %.80s", signal_name((uint32_t)status, name));
		return text;
	case END_EXEC:
		return strcpy(text, "executed another program");
	case END_RELEASED:
		return strcpy(text, "went on without being recorded");
	}
	return strcpy(text, "no end recorded");
}
