/*
 * What descriptors of a recorded program lead to, as far as that tells who can hear whom: a pipe, a pair
 * of sockets or an eventfd is a channel of its own. All else (files, other sockets, what was there
 * before the recording) is one channel, DESCRIPTOR_OTHER, since its ends cannot be told apart.
 */
#ifndef BUGNET_DEBUG_DESCRIPTORS_H
#define BUGNET_DEBUG_DESCRIPTORS_H

#include "debug/accesses.h"

#define DESCRIPTOR_OTHER 0

/* All zero to begin with. */
struct descriptors {
	VECTOR(uint32_t) channels; /* by descriptor */
	uint32_t count;            /* of channels besides DESCRIPTOR_OTHER */
};

void descriptors_deinit(struct descriptors *descriptors);

uint32_t descriptors_channel(const struct descriptors *descriptors, uint64_t descriptor);
/* A system call has returned. */
void descriptors_follow(struct descriptors *descriptors, const struct step *step);

#endif
