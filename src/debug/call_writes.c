#include "debug/call_writes.h"

#include "debug/chronicle.h"
#include "recording/signatures.h"

#define ANYWHERE   (1ul << 20) /* behind an argument of which nothing is known, or which leads on to others */
#define UNFOLLOWED 512         /* behind a pointer to a structure that nobody decodes */
#define ADDRESS    128         /* of a socket */
#define BITS       128         /* a set of descriptors */

/* Those that only name memory. */
static bool writes_nothing(int64_t number)
{
	switch (number) {
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_msync:
	case SYS_mlock:
	case SYS_munlock:
	case SYS_brk:
	case SYS_set_robust_list:
	case SYS_shmdt:
		return true;
	default:
		return false;
	}
}

/* How much behind its value the argument can have made the kernel write. */
static uint64_t extent(const struct happening *call, const struct signature *signature, unsigned i)
{
	struct argument argument = signature->arguments[i];
	uint64_t result = call->result > 0 ? (uint64_t)call->result : 0;

	switch (argument.kind) {
	case ARGUMENT_TEXT_OUT:
	case ARGUMENT_BYTES_OUT:
	case ARGUMENT_BITS_OUT:
		return result;
	case ARGUMENT_STRUCT_OUT:
		return structure_sizes[argument.detail];
	case ARGUMENT_EVENTS_OUT:
		return result * structure_sizes[STRUCTURE_EPOLL_EVENT];
	case ARGUMENT_POLL:
		return call->arguments[argument.detail] * structure_sizes[STRUCTURE_POLLFD];
	case ARGUMENT_ADDRESS_OUT:
		return ADDRESS;
	case ARGUMENT_SIZE_OUT:
		return sizeof(uint32_t);
	case ARGUMENT_DESCRIPTORS:
		return call->arguments[0] / 8 < BITS ? BITS : call->arguments[0] / 8 + 8;
	case ARGUMENT_STRUCT: /* what is left of a timeout, the arguments of clone3 */
		return structure_sizes[argument.detail];
	case ARGUMENT_POINTER:
		return i + 1 < SIGNATURE_ARGUMENTS && signature->arguments[i + 1].kind == ARGUMENT_SIZE
		               ? call->arguments[i + 1]
		               : UNFOLLOWED;
	case ARGUMENT_FCNTL:
	case ARGUMENT_IOCTL:
	case ARGUMENT_PRCTL:
	case ARGUMENT_HEX:
		return UNFOLLOWED;
	case ARGUMENT_VECTORS_OUT:
	case ARGUMENT_MESSAGE_OUT:
		return ANYWHERE;
	default:
		return 0;
	}
}

/* Those that write more than their arguments tell, or where these lead on to. */
static bool leads_on(const struct happening *call)
{
	bool out;

	switch (call->number) {
	case SYS_ioctl:
		return ioctl_structure(call->arguments[1], &out) == STRUCTURE_NONE;
	case SYS_ptrace:
	case SYS_mincore:
	case SYS_getgroups:
		return true;
	default:
		return false;
	}
}

bool call_range_overlaps(const struct call_range *range, uint64_t address, uint64_t size)
{
	return range->address < address ? address - range->address < range->size
	                                : range->address - address < size && range->size;
}

unsigned call_ranges(const struct happening *call, struct call_range ranges[CALL_RANGES], bool *elsewhere)
{
	const struct signature *signature = signature_of((uint64_t)call->number);
	unsigned count = 0;

	*elsewhere = !signature || leads_on(call);
	if (writes_nothing(call->number))
		return 0;
	if (call->number == SYS_mmap && call->result > 0) {
		ranges[0] = (struct call_range){(uint64_t)call->result, call->arguments[1]};
		return 1;
	}
	for (unsigned i = 0; i < CALL_RANGES; i++) {
		uint64_t size = signature ? extent(call, signature, i) : ANYWHERE;
		if (size && call->arguments[i])
			ranges[count++] = (struct call_range){call->arguments[i], size};
		*elsewhere |= size == ANYWHERE;
	}
	return count;
}

bool call_may_write(const struct happening *call, uint64_t address, uint64_t size)
{
	struct call_range ranges[CALL_RANGES];
	bool elsewhere;
	unsigned count = call_ranges(call, ranges, &elsewhere);

	for (unsigned i = 0; i < count; i++) {
		if (call_range_overlaps(&ranges[i], address, size))
			return true;
	}
	return false;
}
