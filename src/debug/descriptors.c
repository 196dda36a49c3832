#include "debug/descriptors.h"

#include <fcntl.h>
#include <sys/syscall.h>

#define DESCRIPTOR_MOST (1u << 20)

void descriptors_deinit(struct descriptors *descriptors)
{
	vector_free(&descriptors->channels);
}

uint32_t descriptors_channel(const struct descriptors *descriptors, uint64_t descriptor)
{
	return descriptor < descriptors->channels.count ? descriptors->channels.items[descriptor]
	                                                : DESCRIPTOR_OTHER;
}

static void set(struct descriptors *descriptors, uint64_t descriptor, uint32_t channel)
{
	if (descriptor >= DESCRIPTOR_MOST)
		return;
	while (descriptor >= descriptors->channels.count)
		vector_push(&descriptors->channels, DESCRIPTOR_OTHER);
	descriptors->channels.items[descriptor] = channel;
}

void descriptors_follow(struct descriptors *descriptors, const struct step *step)
{
	const uint64_t *arguments = step->arguments;
	uint64_t result = step->before;

	if ((int64_t)result < 0)
		return;
	switch (step->address) {
	case SYS_pipe:
	case SYS_pipe2:
	case SYS_socketpair:
		if (!step->pair)
			return;
		descriptors->count++;
		set(descriptors, arguments[2], descriptors->count);
		set(descriptors, arguments[3], descriptors->count);
		break;
	case SYS_eventfd:
	case SYS_eventfd2:
		set(descriptors, result, ++descriptors->count);
		break;
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
		set(descriptors, result, descriptors_channel(descriptors, arguments[0]));
		break;
	case SYS_fcntl:
		if (arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC)
			set(descriptors, result, descriptors_channel(descriptors, arguments[0]));
		break;
	case SYS_close:
		set(descriptors, arguments[0], DESCRIPTOR_OTHER);
		break;
	default:
		break;
	}
}
