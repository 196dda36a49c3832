/*
 * Numbers as bytes: fixed ones in the machine's own order, which is little-endian, and
 * variable ones of seven bits a byte, lowest first (LEB128).
 *
 * Writers return the new end. Freestanding: the stub writes with these.
 */
#ifndef BUGNET_RECORDING_NUMBERS_H
#define BUGNET_RECORDING_NUMBERS_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fixed numbers are copied as they are");

#define VARINT_MAXIMUM 10 /* bytes of a 64-bit number */

static inline uint8_t *put_u8(uint8_t *at, uint8_t value)
{
	*at = value;
	return at + 1;
}

static inline uint8_t *put_u16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof value);
	return at + sizeof value;
}

static inline uint8_t *put_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof value);
	return at + sizeof value;
}

static inline uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof value);
	return at + sizeof value;
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ...: numbers near zero are short whatever their sign. */
static inline uint64_t zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)((value >> 1) ^ -(value & 1));
}

#endif
