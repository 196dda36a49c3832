/*
 * The memory that the arguments of system calls lead to. Replay executes no system call, so what
 * a program only hands to the kernel, or only gets from it, would be lost. What a listing of
 * system calls shows of it (recording/signatures.h) is loaded here as if the program did: before
 * the call what the kernel reads, behind it what the kernel wrote.
 *
 * Addresses may be bad, and sizes and counts anything.
 */
#include "recording/signatures.h"
#include "target/stub.h"

#define SOCKET_ADDRESS_BYTES 128
#define BIT_SET_BYTES        128

struct io_vector {
	uint64_t base, size;
};

struct message {
	uint64_t name, name_size, vectors, count, control, control_size, flags;
};

/* One call, and when its memory is loaded: at its position, or at the next one. */
struct loading {
	struct thread *thread;
	uint64_t here;
	uint64_t arguments[SIGNATURE_ARGUMENTS];
	uint64_t result;
	bool failed;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Can a bad address be found out? Not where its signal is blocked and the kernel may not be asked. */
static bool may_try(const struct thread *thread)
{
	return !process()->seccomp || !(thread->mask & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS)));
}

/* An address that is no good must not be asked a shadow for. */
static bool load(const struct loading *l, uint64_t address, uint64_t size)
{
	char byte;

	if (!address || !size || !may_try(l->thread) || read_program(&byte, address, 1) < 0)
		return false;
	return shadow_check_at(l->thread, l->here, address, size);
}

static bool load_to(const struct loading *l, void *to, uint64_t address, uint64_t size)
{
	if (!load(l, address, size))
		return false;
	memcpy(to, shadow_of(l->thread, address), size);
	return true;
}

static void load_text(const struct loading *l, uint64_t address)
{
	char part[64];

	for (uint64_t at = address, end = address + SIGNATURE_PATH; at < end;) {
		uint64_t size = sizeof part - at % sizeof part;
		if (!load_to(l, part, at, size))
			return;
		for (uint64_t i = 0; i < size; i++) {
			if (!part[i])
				return;
		}
		at += size;
	}
}

static void load_texts(const struct loading *l, uint64_t address, uint64_t most, bool texts)
{
	for (uint64_t i = 0, text; i < most && load_to(l, &text, address + 8 * i, 8) && text; i++) {
		if (texts)
			load_text(l, text);
	}
}

/* `left`: so many bytes are in the buffers, all in all. */
static void load_vectors(const struct loading *l, uint64_t address, uint64_t count, uint64_t left)
{
	struct io_vector vector;

	for (uint64_t i = 0; i < least(count, SIGNATURE_ELEMENTS); i++) {
		if (!load_to(l, &vector, address + i * sizeof vector, sizeof vector))
			return;
		uint64_t size = least(vector.size, left);
		load(l, vector.base, least(size, SIGNATURE_BYTES));
		left -= size;
	}
}

static void load_message(const struct loading *l, uint64_t address, uint64_t left)
{
	struct message message;

	if (!load_to(l, &message, address, sizeof message))
		return;
	load(l, message.name, least((uint32_t)message.name_size, SOCKET_ADDRESS_BYTES));
	load_vectors(l, message.vectors, message.count, left);
}

static void load_signal_set(const struct loading *l, uint64_t address)
{
	struct io_vector set;

	if (load_to(l, &set, address, sizeof set))
		load(l, set.base, structure_sizes[STRUCTURE_SIGSET]);
}

static void load_ioctl(const struct loading *l, uint64_t address, bool behind)
{
	bool out;
	enum structure structure = ioctl_structure(l->arguments[1], &out);

	if (out == behind && !l->failed)
		load(l, address, structure_sizes[structure]);
}

static void load_before(const struct loading *l, struct argument argument, uint64_t value)
{
	uint64_t size = l->arguments[argument.detail < SIGNATURE_ARGUMENTS ? argument.detail : 0];

	switch (argument.kind) {
	case ARGUMENT_TEXT:
		load_text(l, value);
		break;
	case ARGUMENT_TEXTS:
		load_texts(l, value, SIGNATURE_ELEMENTS, true);
		break;
	case ARGUMENT_ENVIRONMENT:
		load_texts(l, value, SIGNATURE_PATH, false);
		break;
	case ARGUMENT_BYTES:
		load(l, value, least(size, SIGNATURE_BYTES));
		break;
	case ARGUMENT_STRUCT:
		if (argument.detail == STRUCTURE_SIGSET_SIZED)
			load_signal_set(l, value);
		else
			load(l, value, structure_sizes[argument.detail]);
		break;
	case ARGUMENT_VECTORS:
		load_vectors(l, value, size, -1ul);
		break;
	case ARGUMENT_ADDRESS:
		load(l, value, least((uint32_t)size, SOCKET_ADDRESS_BYTES));
		break;
	case ARGUMENT_MESSAGE:
		load_message(l, value, -1ul);
		break;
	case ARGUMENT_DESCRIPTORS:
		load(l, value, least((uint32_t)(l->arguments[0] + 7) / 8, BIT_SET_BYTES));
		break;
	case ARGUMENT_POLL:
		load(l, value, least((uint32_t)size, SIGNATURE_ELEMENTS) * structure_sizes[STRUCTURE_POLLFD]);
		break;
	case ARGUMENT_FUTEX_TIMEOUT:
		if (futex_has_timeout(l->arguments[1]))
			load(l, value, structure_sizes[STRUCTURE_TIMESPEC]);
		break;
	case ARGUMENT_PRCTL:
		if (prctl_has_text(l->arguments[0]))
			load_text(l, value);
		break;
	case ARGUMENT_FCNTL:
		if (fcntl_has_lock(l->arguments[1]))
			load(l, value, structure_sizes[STRUCTURE_FLOCK]);
		break;
	case ARGUMENT_IOCTL:
		load_ioctl(l, value, false);
		break;
	case ARGUMENT_SIZE_OUT:
		load(l, value, structure_sizes[STRUCTURE_INT]);
		break;
	default:
		break;
	}
}

static void load_socket_address(const struct loading *l, uint64_t address, uint64_t size_at)
{
	uint32_t size;

	if (load_to(l, &size, size_at, sizeof size))
		load(l, address, least(size, SOCKET_ADDRESS_BYTES));
}

static void load_behind(const struct loading *l, struct argument argument, uint64_t value)
{
	uint64_t size = l->arguments[argument.detail < SIGNATURE_ARGUMENTS ? argument.detail : 0];

	switch (argument.kind) {
	case ARGUMENT_BITS_OUT:
		load(l, value, least(l->result, BIT_SET_BYTES));
		break;
	case ARGUMENT_TEXT_OUT:
		load(l, value, least(l->result, SIGNATURE_PATH));
		break;
	case ARGUMENT_BYTES_OUT:
		load(l, value, least(least(l->result, size), SIGNATURE_BYTES));
		break;
	case ARGUMENT_STRUCT_OUT:
		load(l, value, structure_sizes[argument.detail]);
		break;
	case ARGUMENT_VECTORS_OUT:
		load_vectors(l, value, size, l->result);
		break;
	case ARGUMENT_ADDRESS_OUT:
		load_socket_address(l, value, size);
		break;
	case ARGUMENT_MESSAGE_OUT:
		load_message(l, value, l->result);
		break;
	case ARGUMENT_EVENTS_OUT:
		load(l, value, least(l->result, SIGNATURE_ELEMENTS) * structure_sizes[STRUCTURE_EPOLL_EVENT]);
		break;
	case ARGUMENT_IOCTL:
		load_ioctl(l, value, true);
		break;
	case ARGUMENT_FCNTL:
	case ARGUMENT_POLL:
	case ARGUMENT_DESCRIPTORS:
		load_before(l, argument, value);
		break;
	default:
		break;
	}
}

static void load_each(const struct loading *l, uint64_t number,
        void (*function)(const struct loading *, struct argument, uint64_t))
{
	const struct signature *signature = signature_of(number);

	for (unsigned i = 0; signature && i < SIGNATURE_ARGUMENTS; i++)
		function(l, signature->arguments[i], l->arguments[i]);
}

static struct loading loading_of(struct thread *thread, const struct registers *call)
{
	const uint64_t *gpr = call->gpr;

	return (struct loading){
	        .thread = thread, .arguments = {gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]}};
}

void record_arguments(struct thread *thread, const struct registers *call, uint64_t here)
{
	struct loading l = loading_of(thread, call);

	l.here = here;
	if (thread->log)
		load_each(&l, call->gpr[RAX], load_before);
}

void record_results(struct thread *thread, const struct registers *call, uint64_t here)
{
	struct loading l = loading_of(thread, call);

	l.here = here;
	l.result = thread->regs.gpr[RAX];
	l.failed = is_error(l.result);
	if (thread->log && !l.failed)
		load_each(&l, call->gpr[RAX], load_behind);
}
