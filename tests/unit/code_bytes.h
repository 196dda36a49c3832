/* A program that is a few bytes at PC, for tests of the translator: what translate_request.read wants. */
#ifndef BUGNET_TESTS_UNIT_CODE_BYTES_H
#define BUGNET_TESTS_UNIT_CODE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PC 0x400000ull

struct program {
	const uint8_t *bytes;
	size_t size;
};

static inline size_t program_read(void *context, uint64_t pc, uint8_t *bytes, size_t size)
{
	const struct program *program = context;

	if (pc < PC || pc >= PC + program->size)
		return 0;
	if (size > PC + program->size - pc)
		size = PC + program->size - pc;
	memcpy(bytes, program->bytes + (pc - PC), size);
	return size;
}

#endif
