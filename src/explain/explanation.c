#include "explain/explanation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "explain/quote.h"
#include "explain/structure.h"
#include "explain/vocabulary.h"
#include "recording/names.h"

#define SOCKET_ADDRESS_BYTES 128
#define BIT_SET_BYTES        128
#define ENVIRONMENT_COUNTED  4096

/* One argument on its way to the text. */
struct speech {
	FILE *out;
	const struct explanation *call;
	const struct explained_memory *memory;
	struct argument argument;
	uint64_t value;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- numbers ---- */

static void say_pointer(const struct speech *s)
{
	if (s->value)
		fprintf(s->out, "%#" PRIx64, s->value);
	else
		fputs("NULL", s->out);
}

static void say_int(const struct speech *s)
{
	fprintf(s->out, "%" PRId32, (int32_t)s->value);
}

static void say_unsigned(const struct speech *s)
{
	fprintf(s->out, "%" PRIu32, (uint32_t)s->value);
}

static void say_long(const struct speech *s)
{
	fprintf(s->out, "%" PRId64, (int64_t)s->value);
}

static void say_size(const struct speech *s)
{
	fprintf(s->out, "%" PRIu64, s->value);
}

static void say_hex(const struct speech *s)
{
	fprintf(s->out, "%#" PRIx64, s->value);
}

/* A mask has no bits for types of files. */
static void say_mode(const struct speech *s)
{
	if (s->call->number == SYS_umask)
		fprintf(s->out, "0%02o", (unsigned)s->value);
	else
		explain_file_mode(s->out, (uint32_t)s->value & 0xffff);
}

static void say_directory(const struct speech *s)
{
	if ((int32_t)s->value == AT_FDCWD)
		fputs("AT_FDCWD", s->out);
	else
		say_int(s);
}

static void say_signal(const struct speech *s)
{
	char name[NAME_TEXT_SIZE];

	fputs((uint32_t)s->value ? signal_name((uint32_t)s->value, name) : "0", s->out);
}

/* Only clone's flags have more than 32 bits. */
static void say_flags(const struct speech *s)
{
	explain_flags(s->out, (enum vocabulary)s->argument.detail, (uint32_t)s->value);
}

static void say_choice(const struct speech *s)
{
	explain_choice(s->out, (enum vocabulary)s->argument.detail, (uint32_t)s->value);
}

static void say_protocol(const struct speech *s)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{IPPROTO_IP, "IPPROTO_IP"}, {IPPROTO_ICMP, "IPPROTO_ICMP"}, {IPPROTO_TCP, "IPPROTO_TCP"},
	        {IPPROTO_UDP, "IPPROTO_UDP"}, {IPPROTO_IPV6, "IPPROTO_IPV6"}, {IPPROTO_RAW, "IPPROTO_RAW"},
	        {IPPROTO_ICMPV6, "IPPROTO_ICMPV6"}};
	uint64_t family = s->call->arguments[0];

	for (size_t i = 0; i < sizeof names / sizeof *names && (family == AF_INET || family == AF_INET6);
	        i++) {
		if (names[i].number == (int)s->value) {
			fputs(names[i].name, s->out);
			return;
		}
	}
	say_int(s);
}

static void say_option(const struct speech *s)
{
	if ((int)s->call->arguments[1] == SOL_SOCKET)
		explain_choice(s->out, NAMES_SOCKET_OPTION, (uint32_t)s->value);
	else
		say_hex(s);
}

/* ---- memory ---- */

static bool failed(const struct explanation *call)
{
	return call->result < 0 && call->result >= -4095;
}

/*
 * False: its address has to do. What the kernel could not read, nobody could record; all else that
 * is not there is zero.
 */
static bool fetch(const struct speech *s, uint64_t address, void *to, size_t size)
{
	if (!s->memory->read || !address)
		return false;
	return s->memory->read(s->memory->context, address, to, size) > 0 || s->call->result != -EFAULT;
}

/* `most`: no more than so many bytes are shown. */
static void say_text_at(const struct speech *s, uint64_t address, size_t most)
{
	char text[SIGNATURE_PATH];
	struct speech pointer = *s;

	if (!fetch(s, address, text, sizeof text)) {
		pointer.value = address;
		say_pointer(&pointer);
		return;
	}
	size_t size = strnlen(text, sizeof text);
	explain_quoted(s->out, text, least(size, most), size > most || size == sizeof text);
}

static void say_text(const struct speech *s)
{
	bool path = s->argument.detail == SIGNATURE_IS_PATH;

	say_text_at(s, s->value, path ? SIGNATURE_PATH : SIGNATURE_BYTES);
}

static void say_texts(const struct speech *s)
{
	uint64_t text;

	if (!fetch(s, s->value, &text, sizeof text)) {
		say_pointer(s);
		return;
	}
	fputc('[', s->out);
	for (uint64_t i = 0; fetch(s, s->value + 8 * i, &text, sizeof text) && text; i++) {
		fputs(i ? ", " : "", s->out);
		if (i == SIGNATURE_ELEMENTS) {
			fputs("...", s->out);
			break;
		}
		say_text_at(s, text, SIGNATURE_BYTES);
	}
	fputc(']', s->out);
}

static void say_environment(const struct speech *s)
{
	uint64_t count = 0, text;

	say_pointer(s);
	if (!fetch(s, s->value, &text, sizeof text))
		return;
	while (count < ENVIRONMENT_COUNTED && fetch(s, s->value + 8 * count, &text, sizeof text) && text)
		count++;
	fprintf(s->out, " /* %" PRIu64 " var%s */", count, count == 1 ? "" : "s");
}

static void say_bytes_at(const struct speech *s, uint64_t address, uint64_t size)
{
	uint8_t bytes[SIGNATURE_BYTES];
	size_t shown = least(size, sizeof bytes);
	struct speech pointer = *s;

	pointer.value = address;
	if (!fetch(s, address, bytes, shown ? shown : 1))
		say_pointer(&pointer);
	else if (s->call->number == SYS_getrandom)
		explain_quoted_hex(s->out, bytes, shown, size > shown);
	else
		explain_quoted(s->out, bytes, shown, size > shown);
}

static void say_structure_as(const struct speech *s, enum structure structure)
{
	uint8_t bytes[UINT8_MAX];

	if (fetch(s, s->value, bytes, structure_sizes[structure]))
		explain_structure(s->out, structure, bytes);
	else
		say_pointer(s);
}

static uint64_t other(const struct speech *s)
{
	return s->call->arguments[s->argument.detail];
}

/* An option of a socket is a number as often as not. */
static void say_bytes(const struct speech *s)
{
	if (s->call->number == SYS_setsockopt && other(s) == sizeof(int))
		say_structure_as(s, STRUCTURE_INT);
	else
		say_bytes_at(s, s->value, other(s));
}

/* A set of signals on its way through pselect6. */
static void say_sized_set(const struct speech *s)
{
	uint64_t parts[2], set = 0;

	if (!fetch(s, s->value, parts, sizeof parts)) {
		say_pointer(s);
		return;
	}
	fputs("{sigmask=", s->out);
	if (fetch(s, parts[0], &set, sizeof set))
		explain_signal_set(s->out, set);
	else
		fputs("NULL", s->out);
	fprintf(s->out, ", sigsetsize=%" PRIu64 "}", parts[1]);
}

static void say_structure(const struct speech *s)
{
	if (s->argument.detail == STRUCTURE_SIGSET_SIZED)
		say_sized_set(s);
	else
		say_structure_as(s, (enum structure)s->argument.detail);
}

/* Element `i` of an array, with what stands before it; false: there is no more to say. */
static bool begin_element(const struct speech *s, uint64_t address, uint64_t i, void *bytes, size_t size)
{
	fputs(i ? ", " : "", s->out);
	if (i == SIGNATURE_ELEMENTS) {
		fputs("...", s->out);
		return false;
	}
	if (!fetch(s, address + i * size, bytes, size)) {
		fprintf(s->out, "... /* %#" PRIx64 " */", address + i * size);
		return false;
	}
	return true;
}

/* `left`: so many bytes are in the buffers, all in all. */
static void say_vectors_at(const struct speech *s, uint64_t address, uint64_t count, uint64_t left)
{
	struct {
		uint64_t base, size;
	} vector;
	struct speech pointer = *s;

	pointer.value = address;
	if (!count && address) {
		fputs("[]", s->out);
		return;
	}
	if (!fetch(s, address, &vector, sizeof vector)) {
		say_pointer(&pointer);
		return;
	}
	fputc('[', s->out);
	for (uint64_t i = 0; i < count && begin_element(s, address, i, &vector, sizeof vector); i++) {
		uint64_t size = least(vector.size, left);

		fputs("{iov_base=", s->out);
		say_bytes_at(s, vector.base, size);
		fprintf(s->out, ", iov_len=%" PRIu64 "}", vector.size);
		left -= size;
	}
	fputc(']', s->out);
}

static void say_vectors(const struct speech *s)
{
	say_vectors_at(s, s->value, other(s), UINT64_MAX);
}

static void say_address_at(const struct speech *s, uint64_t address, uint32_t size)
{
	uint8_t bytes[SOCKET_ADDRESS_BYTES] = {0};
	struct speech pointer = *s;

	pointer.value = address;
	size = (uint32_t)least(size, sizeof bytes);
	if (size >= sizeof(sa_family_t) && fetch(s, address, bytes, size))
		explain_socket_address(s->out, bytes, size);
	else
		say_pointer(&pointer);
}

static void say_address(const struct speech *s)
{
	say_address_at(s, s->value, (uint32_t)other(s));
}

static void say_message_at(const struct speech *s, uint64_t left)
{
	struct {
		uint64_t name;
		uint32_t name_size, padding;
		uint64_t vectors, count, control, control_size;
		uint32_t flags, padding_behind;
	} message;

	if (!fetch(s, s->value, &message, sizeof message)) {
		say_pointer(s);
		return;
	}
	fputs("{msg_name=", s->out);
	say_address_at(s, message.name, message.name_size);
	fprintf(s->out, ", msg_namelen=%u, msg_iov=", message.name_size);
	say_vectors_at(s, message.vectors, message.count, left);
	fprintf(s->out, ", msg_iovlen=%" PRIu64, message.count);
	if (message.control_size)
		fprintf(s->out, ", msg_control=%#" PRIx64, message.control);
	fprintf(s->out, ", msg_controllen=%" PRIu64 ", msg_flags=", message.control_size);
	explain_flags(s->out, NAMES_MESSAGE, message.flags);
	fputc('}', s->out);
}

static void say_message(const struct speech *s)
{
	say_message_at(s, UINT64_MAX);
}

static void say_bits(const struct speech *s, uint64_t count)
{
	uint8_t bits[BIT_SET_BYTES] = {0};
	bool first = true;

	count = least(count, 8 * sizeof bits);
	if (!fetch(s, s->value, bits, (count + 7) / 8)) {
		say_pointer(s);
		return;
	}
	fputc('[', s->out);
	for (uint64_t i = 0; i < count; i++) {
		if (!(bits[i / 8] >> i % 8 & 1))
			continue;
		fprintf(s->out, "%s%" PRIu64, first ? "" : " ", i);
		first = false;
	}
	fputc(']', s->out);
}

static void say_descriptors(const struct speech *s)
{
	say_bits(s, (uint32_t)s->call->arguments[0]);
}

/* An array of structures. */
static void say_elements(const struct speech *s, enum structure structure, uint64_t count)
{
	uint8_t bytes[UINT8_MAX];
	size_t size = structure_sizes[structure];

	if (!fetch(s, s->value, bytes, size)) {
		say_pointer(s);
		return;
	}
	fputc('[', s->out);
	for (uint64_t i = 0; i < count && begin_element(s, s->value, i, bytes, size); i++)
		explain_structure(s->out, structure, bytes);
	fputc(']', s->out);
}

static void say_poll(const struct speech *s)
{
	if ((uint32_t)other(s))
		say_elements(s, STRUCTURE_POLLFD, (uint32_t)other(s));
	else
		say_pointer(s);
}

static void say_futex_timeout(const struct speech *s)
{
	if (futex_has_timeout(s->call->arguments[1]))
		say_structure_as(s, STRUCTURE_TIMESPEC);
	else
		say_hex(s);
}

static void say_prctl(const struct speech *s)
{
	if (prctl_has_text(s->call->arguments[0]))
		say_text(s);
	else
		say_hex(s);
}

static void say_fcntl(const struct speech *s)
{
	uint32_t command = (uint32_t)s->call->arguments[1];

	if (fcntl_has_lock(command))
		say_structure_as(s, STRUCTURE_FLOCK);
	else if (command == F_SETFL)
		explain_flags(s->out, NAMES_OPEN, (uint32_t)s->value);
	else if (command == F_SETFD)
		explain_flags(s->out, NAMES_DESCRIPTOR, (uint32_t)s->value);
	else
		say_int(s);
}

static void say_ioctl(const struct speech *s)
{
	bool out;
	enum structure structure = ioctl_structure(s->call->arguments[1], &out);

	if (structure != STRUCTURE_NONE && !(out && failed(s->call)))
		say_structure_as(s, structure);
	else if (s->value)
		say_hex(s);
	else
		fputc('0', s->out);
}

/* ---- memory that the kernel wrote ---- */

static void say_text_out(const struct speech *s)
{
	char text[SIGNATURE_PATH];
	size_t size = least((uint64_t)s->call->result, sizeof text);

	if (fetch(s, s->value, text, size))
		explain_quoted(s->out, text, strnlen(text, size), false);
	else
		say_pointer(s);
}

static void say_bytes_out(const struct speech *s)
{
	say_bytes_at(s, s->value, least((uint64_t)s->call->result, other(s)));
}

/* A child that has not changed has no status. */
static void say_structure_out(const struct speech *s)
{
	uint32_t size = 0;
	struct speech size_at = *s;

	if (s->call->number == SYS_wait4 && s->call->result == 0) {
		say_pointer(s);
	} else if (s->call->number == SYS_getsockopt) {
		size_at.value = s->call->arguments[4];
		fetch(&size_at, size_at.value, &size, sizeof size);
		if (size == sizeof(int))
			say_structure(s);
		else
			say_pointer(s);
	} else {
		say_structure(s);
	}
}

static void say_bits_out(const struct speech *s)
{
	say_bits(s, 8 * least((uint64_t)s->call->result, BIT_SET_BYTES));
}

static void say_vectors_out(const struct speech *s)
{
	say_vectors_at(s, s->value, other(s), (uint64_t)s->call->result);
}

static void say_address_out(const struct speech *s)
{
	uint32_t size = 0;

	if (s->value && fetch(s, other(s), &size, sizeof size))
		say_address_at(s, s->value, size);
	else
		say_pointer(s);
}

/* The size that the program gave, and the one it got. */
static void say_size_out(const struct speech *s)
{
	uint32_t size = s->call->size_given;

	if (!fetch(s, s->value, &size, sizeof size))
		say_pointer(s);
	else if (size != s->call->size_given)
		fprintf(s->out, "[%" PRIu32 " => %" PRIu32 "]", s->call->size_given, size);
	else
		fprintf(s->out, "[%" PRIu32 "]", size);
}

static void say_message_out(const struct speech *s)
{
	say_message_at(s, (uint64_t)s->call->result);
}

static void say_events_out(const struct speech *s)
{
	say_elements(s, STRUCTURE_EPOLL_EVENT, (uint64_t)s->call->result);
}

/* ---- arguments ---- */

static void (*const speakers[])(const struct speech *) = {
        [ARGUMENT_NONE] = say_hex,
        [ARGUMENT_INT] = say_int,
        [ARGUMENT_UNSIGNED] = say_unsigned,
        [ARGUMENT_LONG] = say_long,
        [ARGUMENT_SIZE] = say_size,
        [ARGUMENT_HEX] = say_hex,
        [ARGUMENT_POINTER] = say_pointer,
        [ARGUMENT_MODE] = say_mode,
        [ARGUMENT_DIRECTORY] = say_directory,
        [ARGUMENT_SIGNAL] = say_signal,
        [ARGUMENT_FLAGS] = say_flags,
        [ARGUMENT_CHOICE] = say_choice,
        [ARGUMENT_PROTOCOL] = say_protocol,
        [ARGUMENT_FCNTL] = say_fcntl,
        [ARGUMENT_IOCTL] = say_ioctl,
        [ARGUMENT_OPTION] = say_option,
        [ARGUMENT_TIMEOUT_MS] = say_int,
        [ARGUMENT_TEXT] = say_text,
        [ARGUMENT_TEXTS] = say_texts,
        [ARGUMENT_ENVIRONMENT] = say_environment,
        [ARGUMENT_BYTES] = say_bytes,
        [ARGUMENT_STRUCT] = say_structure,
        [ARGUMENT_VECTORS] = say_vectors,
        [ARGUMENT_ADDRESS] = say_address,
        [ARGUMENT_MESSAGE] = say_message,
        [ARGUMENT_DESCRIPTORS] = say_descriptors,
        [ARGUMENT_FUTEX_TIMEOUT] = say_futex_timeout,
        [ARGUMENT_PRCTL] = say_prctl,
        [ARGUMENT_TEXT_OUT] = say_text_out,
        [ARGUMENT_BYTES_OUT] = say_bytes_out,
        [ARGUMENT_STRUCT_OUT] = say_structure_out,
        [ARGUMENT_VECTORS_OUT] = say_vectors_out,
        [ARGUMENT_ADDRESS_OUT] = say_address_out,
        [ARGUMENT_SIZE_OUT] = say_size_out,
        [ARGUMENT_MESSAGE_OUT] = say_message_out,
        [ARGUMENT_BITS_OUT] = say_bits_out,
        [ARGUMENT_EVENTS_OUT] = say_events_out,
        [ARGUMENT_POLL] = say_poll,
};

/* Is it only known behind the call? */
static bool is_out(const struct explanation *call, struct argument argument)
{
	bool out = false;

	if (argument.kind == ARGUMENT_IOCTL)
		ioctl_structure(call->arguments[1], &out);
	return out || (argument.kind >= ARGUMENT_OUT && argument.kind != ARGUMENT_POLL);
}

static char *argument_text(const struct explanation *call, unsigned i, struct argument argument,
        const struct explained_memory *memory, bool pointer)
{
	char *text = NULL;
	size_t size;
	struct speech s = {open_memstream(&text, &size), call, memory, argument, call->arguments[i]};

	if (!s.out)
		return NULL;
	if (pointer)
		say_pointer(&s);
	else
		speakers[argument.kind](&s);
	return fclose(s.out) == 0 ? text : NULL;
}

/* ---- calls whose arguments depend on each other ---- */

static unsigned count_of_signature(const struct signature *signature)
{
	unsigned count = 0;

	while (count < SIGNATURE_ARGUMENTS && signature->arguments[count].kind != ARGUMENT_NONE)
		count++;
	return count;
}

static unsigned prctl_count(uint64_t option)
{
	switch (option) {
	case PR_GET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_GET_TIMERSLACK:
		return 1;
	case PR_SET_NAME:
	case PR_GET_NAME:
	case PR_SET_DUMPABLE:
	case PR_SET_KEEPCAPS:
	case PR_SET_PDEATHSIG:
	case PR_CAPBSET_READ:
	case PR_SET_TIMERSLACK:
	case PR_SET_PTRACER:
	case PR_SET_CHILD_SUBREAPER:
		return 2;
	default:
		return 5;
	}
}

static bool fcntl_has_argument(uint64_t command)
{
	return command != F_GETFD && command != F_GETFL && command != F_GETOWN && command != F_GETSIG &&
	       command != F_GETLEASE && command != F_GETPIPE_SZ && command != F_GET_SEALS;
}

/* Those that the call looks at. */
static unsigned visible(const struct explanation *call, unsigned count)
{
	const uint64_t *a = call->arguments;

	switch (call->number) {
	case SYS_open:
		return a[1] & O_CREAT || (a[1] & O_TMPFILE) == O_TMPFILE ? 3 : 2;
	case SYS_openat:
		return a[2] & O_CREAT || (a[2] & O_TMPFILE) == O_TMPFILE ? 4 : 3;
	case SYS_mremap:
		return a[3] & MREMAP_FIXED ? 5 : 4;
	case SYS_fcntl:
		return fcntl_has_argument((uint32_t)a[1]) ? 3 : 2;
	case SYS_prctl:
		return prctl_count((uint32_t)a[0]);
	default:
		return count;
	}
}

/* ---- forms of their own ---- */

/* clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, child_tidptr=0x7f0000000010): all of it is one text */
static void explain_clone(struct explanation *call)
{
	uint64_t flags = call->arguments[0], kind = flags & ~0xfful;
	char *text = NULL, name[NAME_TEXT_SIZE];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fprintf(out, call->arguments[1] ? "child_stack=%#" PRIx64 : "child_stack=NULL", call->arguments[1]);
	fputs(", flags=", out);
	if (kind || !flags)
		explain_flags(out, NAMES_CLONE, kind);
	if (flags & 0xff)
		fprintf(out, "%s%s", kind ? "|" : "", signal_name(flags & 0xff, name));
	if (flags & CLONE_PARENT_SETTID)
		fprintf(out, ", parent_tid=%#" PRIx64, call->arguments[2]);
	if (flags & CLONE_SETTLS)
		fprintf(out, ", tls=%#" PRIx64, call->arguments[4]);
	if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))
		fprintf(out, ", child_tidptr=%#" PRIx64, call->arguments[3]);
	if (fclose(out) == 0)
		call->texts[call->count++] = text;
}

/* Which arguments a futex operation has, in the order that strace shows them. */
static unsigned futex_arguments(uint64_t operation, uint8_t shown[SIGNATURE_ARGUMENTS])
{
	static const char *const orders[] = {
	        [0] = "0123",   /* WAIT */
	        [1] = "012",    /* WAKE */
	        [3] = "01234",  /* REQUEUE */
	        [4] = "012345", /* CMP_REQUEUE */
	        [5] = "012345", /* WAKE_OP */
	        [6] = "013",    /* LOCK_PI */
	        [7] = "01",     /* UNLOCK_PI */
	        [8] = "01",     /* TRYLOCK_PI */
	        [9] = "01235",  /* WAIT_BITSET */
	        [10] = "0125",  /* WAKE_BITSET */
	        [11] = "012345",
	        [12] = "012345",
	        [13] = "013",
	};
	unsigned command = operation & 0x7f;
	const char *order =
	        command < sizeof orders / sizeof *orders && orders[command] ? orders[command] : "012345";
	unsigned count = 0;

	for (; order[count]; count++)
		shown[count] = (uint8_t)(order[count] - '0');
	return count;
}

static void explain_futex(struct explanation *call, const struct explained_memory *memory)
{
	const struct signature *signature = signature_of(SYS_futex);
	uint8_t shown[SIGNATURE_ARGUMENTS];

	call->count = futex_arguments(call->arguments[1], shown);
	for (unsigned i = 0; i < call->count; i++) {
		if (shown[i] == 5 && (uint32_t)call->arguments[5] == UINT32_MAX)
			call->texts[i] = strdup("FUTEX_BITSET_MATCH_ANY");
		else
			call->texts[i] =
			        argument_text(call, shown[i], signature->arguments[shown[i]], memory, false);
	}
}

/* ---- what strace puts behind the result ---- */

static void note_poll(const struct explanation *call, FILE *out, const struct explained_memory *memory)
{
	uint64_t count = least((uint32_t)call->arguments[1], SIGNATURE_ELEMENTS);
	struct speech s = {out, call, memory, {0, 0}, call->arguments[0]};
	const char *separator = "";

	if (!memory->read)
		return;
	fputs(" ([", out);
	for (uint64_t i = 0; i < count; i++) {
		struct {
			int32_t fd;
			uint16_t events, revents;
		} entry = {0};
		if (!fetch(&s, s.value + i * sizeof entry, &entry, sizeof entry) || !entry.revents)
			continue;
		fprintf(out, "%s{fd=%d, revents=", separator, entry.fd);
		explain_flags(out, NAMES_POLL, entry.revents);
		fputc('}', out);
		separator = ", ";
	}
	fputs("])", out);
}

static void note_select(const struct explanation *call, FILE *out, const struct explained_memory *memory)
{
	static const char *const names[] = {"in ", "out ", "except "};
	const char *separator = " (";

	if (!memory->read)
		return;
	for (unsigned i = 0; i < 3; i++) {
		struct speech s = {out, call, memory, {ARGUMENT_DESCRIPTORS, 0}, call->arguments[i + 1]};
		if (!s.value)
			continue;
		fprintf(out, "%s%s", separator, names[i]);
		say_descriptors(&s);
		separator = ", ";
	}
	fputs(*separator == ',' ? ")" : "", out);
}

static bool waits_for_descriptors(uint64_t number)
{
	return number == SYS_poll || number == SYS_ppoll || number == SYS_select || number == SYS_pselect6;
}

static char *note_text(const struct explanation *call, const struct explained_memory *memory)
{
	char name[NAME_TEXT_SIZE], *text = NULL;
	size_t size;
	FILE *out = failed(call) ? NULL : open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (waits_for_descriptors(call->number) && call->result == 0)
		fputs(" (Timeout)", out);
	else if (call->number == SYS_poll || call->number == SYS_ppoll)
		note_poll(call, out, memory);
	else if (call->number == SYS_select || call->number == SYS_pselect6)
		note_select(call, out, memory);
	else if (call->number == SYS_rt_sigtimedwait)
		fprintf(out, " (%s)", signal_name((uint32_t)call->result, name));
	return fclose(out) == 0 ? text : NULL;
}

/* A number that is not printed as one. */
static bool say_result(const struct explanation *call, FILE *out)
{
	uint32_t command = (uint32_t)call->arguments[1];

	if (call->number == SYS_exit || call->number == SYS_exit_group) {
		fputc('?', out);
		return true;
	}
	if (failed(call))
		return false;
	if (call->number == SYS_umask) {
		fprintf(out, "0%02o", (unsigned)call->result);
		return true;
	}
	if (call->number != SYS_fcntl || (command != F_GETFL && command != F_GETFD))
		return false;
	fprintf(out, "%#" PRIx64, (uint64_t)call->result);
	if (command == F_GETFL || call->result) {
		fputs(" (flags ", out);
		explain_flags(
		        out, command == F_GETFL ? NAMES_OPEN : NAMES_DESCRIPTOR, (uint64_t)call->result);
		fputc(')', out);
	}
	return true;
}

char *explanation_result(const struct explanation *call)
{
	char number[NAME_TEXT_SIZE], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!say_result(call, out))
		fputs(syscall_result_text(call->number, call->result, number), out);
	if (call->note)
		fputs(call->note, out);
	return fclose(out) == 0 ? text : NULL;
}

/* ---- all of it ---- */

void explanation_begin(struct explanation *call, const struct event_registers *registers, int64_t result,
        const struct explained_memory *memory)
{
	const uint64_t *gpr = registers->gpr;
	const struct signature *signature = signature_of(gpr[0]);

	/* rdi, rsi, rdx, r10, r8, r9 */
	*call = (struct explanation){.number = gpr[0],
	        .result = result,
	        .arguments = {gpr[7], gpr[6], gpr[2], gpr[10], gpr[8], gpr[9]}};
	if (call->number == SYS_clone) {
		explain_clone(call);
		return;
	}
	if (call->number == SYS_futex) {
		explain_futex(call, memory);
		return;
	}
	call->count = signature ? visible(call, count_of_signature(signature)) : SIGNATURE_ARGUMENTS;
	for (unsigned i = 0; i < call->count; i++) {
		struct argument argument = signature ? signature->arguments[i] : (struct argument){0, 0};
		struct speech s = {NULL, call, memory, argument, call->arguments[i]};
		if (argument.kind == ARGUMENT_SIZE_OUT)
			fetch(&s, s.value, &call->size_given, sizeof call->size_given);
		if (!is_out(call, argument))
			call->texts[i] = argument_text(call, i, argument, memory, false);
	}
}

void explanation_end(struct explanation *call, const struct explained_memory *memory)
{
	const struct signature *signature = signature_of(call->number);

	for (unsigned i = 0; signature && i < call->count; i++) {
		struct argument argument = signature->arguments[i];
		if (call->number == SYS_clone || call->number == SYS_futex || !is_out(call, argument))
			continue;
		bool pointer = failed(call) && argument.kind != ARGUMENT_SIZE_OUT;
		call->texts[i] = argument_text(call, i, argument, memory, pointer);
	}
	call->note = note_text(call, memory);
}

void explanation_deinit(struct explanation *call)
{
	for (unsigned i = 0; i < SIGNATURE_ARGUMENTS; i++)
		free(call->texts[i]);
	free(call->note);
}
