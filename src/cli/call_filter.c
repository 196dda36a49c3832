#include "cli/call_filter.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "cli/error.h"
#include "cli/suggest.h"
#include "recording/names.h"
#include "recording/signatures.h"

/* ---- classes ---- */

/* Is any argument of the kind and, if that matters, with the detail? */
static bool has_argument(uint64_t number, enum argument_kind kind, int detail)
{
	const struct signature *signature = signature_of(number);

	for (unsigned i = 0; signature && i < SIGNATURE_ARGUMENTS; i++) {
		if (signature->arguments[i].kind == kind &&
		        (detail < 0 || signature->arguments[i].detail == detail))
			return true;
	}
	return false;
}

static bool is_file_call(uint64_t number)
{
	return has_argument(number, ARGUMENT_TEXT, SIGNATURE_IS_PATH) || number == SYS_getcwd;
}

static bool is_descriptor_call(uint64_t number)
{
	return has_argument(number, ARGUMENT_INT, SIGNATURE_IS_DESCRIPTOR) ||
	       has_argument(number, ARGUMENT_DIRECTORY, -1) || has_argument(number, ARGUMENT_POLL, -1) ||
	       has_argument(number, ARGUMENT_DESCRIPTORS, -1) || number == SYS_pipe || number == SYS_pipe2;
}

static bool is_among(uint64_t number, const uint16_t *numbers)
{
	for (; *numbers; numbers++) {
		if (*numbers == number)
			return true;
	}
	return false;
}

static bool is_memory_call(uint64_t number)
{
	static const uint16_t numbers[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_pkey_mprotect,
	        SYS_madvise, SYS_msync, SYS_mlock, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_mincore,
	        SYS_brk, SYS_membarrier, SYS_shmat, SYS_shmdt, SYS_remap_file_pages, 0};

	return is_among(number, numbers);
}

static bool is_network_call(uint64_t number)
{
	return (number >= SYS_socket && number <= SYS_getsockopt) || number == SYS_accept4 ||
	       number == SYS_sendmmsg || number == SYS_recvmmsg;
}

static bool is_process_call(uint64_t number)
{
	static const uint16_t numbers[] = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve,
	        SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_kill, SYS_tkill,
	        SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_open, SYS_pidfd_send_signal,
	        0};

	return is_among(number, numbers);
}

static bool is_signal_call(uint64_t number)
{
	static const uint16_t numbers[] = {SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
	        SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
	        SYS_rt_sigsuspend, SYS_sigaltstack, SYS_signalfd, SYS_signalfd4, SYS_kill, SYS_tkill,
	        SYS_tgkill, SYS_pause, 0};

	return is_among(number, numbers);
}

static const struct {
	const char *name;
	bool (*has)(uint64_t number);
} classes[] = {
        {"%file", is_file_call},
        {"%desc", is_descriptor_call},
        {"%memory", is_memory_call},
        {"%network", is_network_call},
        {"%process", is_process_call},
        {"%signal", is_signal_call},
};

/* ---- names ---- */

static bool add_class(struct call_filter *filter, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		if (strlen(classes[i].name) != length || memcmp(classes[i].name, name, length) != 0)
			continue;
		for (uint64_t number = 0; number < CALL_FILTER_NUMBERS; number++)
			filter->named[number] |= classes[i].has(number);
		return true;
	}
	return false;
}

static bool add_call(struct call_filter *filter, const char *name, size_t length)
{
	char text[NAME_TEXT_SIZE];

	for (uint64_t number = 0; number < CALL_FILTER_NUMBERS; number++) {
		syscall_name(number, text);
		if (strlen(text) != length || memcmp(text, name, length) != 0)
			continue;
		filter->named[number] = true;
		return true;
	}
	return false;
}

static void report_unknown(const char *command, const char *name, size_t length)
{
	char texts[CALL_FILTER_NUMBERS][NAME_TEXT_SIZE];
	struct suggestion suggestion;

	suggest_init(&suggestion, name, length);
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		suggest_offer(&suggestion, classes[i].name);
	for (uint64_t number = 0; number < CALL_FILTER_NUMBERS; number++)
		suggest_offer(&suggestion, syscall_name(number, texts[number]));
	if (suggestion.best)
		error_print(command, "option '-e': there is no system call '%.*s'; did you mean '%s'?",
		        (int)length, name, suggestion.best);
	else
		error_print(command,
		        "option '-e': there is no system call '%.*s'; give names, or %%file, %%desc, "
		        "%%memory, "
		        "%%network, %%process, %%signal",
		        (int)length, name);
}

bool call_filter_parse(const char *command, const char *text, struct call_filter *filter)
{
	*filter = (struct call_filter){.used = text};
	if (!text)
		return true;
	if (strncmp(text, "trace=", 6) == 0)
		text += 6;
	if (*text == '!') {
		filter->inverted = true;
		text++;
	}
	if (strcmp(text, "none") == 0)
		return true;
	for (const char *name = text;;) {
		size_t length = strcspn(name, ",");
		if (!add_class(filter, name, length) && !add_call(filter, name, length)) {
			report_unknown(command, name, length);
			return false;
		}
		if (!name[length])
			return true;
		name += length + 1;
	}
}

bool call_filter_shows(const struct call_filter *filter, uint64_t number)
{
	if (!filter->used)
		return true;
	return (number < CALL_FILTER_NUMBERS && filter->named[number]) != filter->inverted;
}
