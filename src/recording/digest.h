/* A digest of a thread's registers, by which replay proves that it is where recording was. Freestanding. */
#ifndef BUGNET_RECORDING_DIGEST_H
#define BUGNET_RECORDING_DIGEST_H

#include "recording/event.h"

/* Status flags and DF: the others are the system's. */
#define DIGEST_FLAGS 0xcd5u

static inline uint64_t registers_digest(const struct event_registers *registers)
{
	uint64_t digest = 0x9e3779b97f4a7c15u;

	for (unsigned i = 0; i < 16; i++)
		digest = ((digest ^ registers->gpr[i]) * 0xff51afd7ed558ccdu) ^ (digest >> 29);
	digest = ((digest ^ registers->pc) * 0xff51afd7ed558ccdu) ^ (digest >> 29);
	digest = ((digest ^ (registers->flags & DIGEST_FLAGS)) * 0xc4ceb9fe1a85ec53u) ^ (digest >> 29);
	return digest ^ digest >> 32;
}

#endif
