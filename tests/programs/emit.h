/* Small machine code functions for the programs about code that changes. */
#ifndef EMIT_H
#define EMIT_H

#include "check.h"
#include <sys/mman.h>

typedef int (*function)(int);

/* mov $value, %eax; ret */
static inline void emit_constant(void *at, int value)
{
	uint8_t code[6] = {0xb8, 0, 0, 0, 0, 0xc3};
	memcpy(code + 1, &value, 4);
	memcpy(at, code, sizeof code);
}

/* lea value(%rdi), %eax; ret */
static inline void emit_add(void *at, int value)
{
	uint8_t code[7] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};
	memcpy(code + 2, &value, 4);
	memcpy(at, code, sizeof code);
}

/* imul $value, %edi, %eax; ret */
static inline void emit_multiply(void *at, int value)
{
	uint8_t code[7] = {0x69, 0xc7, 0, 0, 0, 0, 0xc3};
	memcpy(code + 2, &value, 4);
	memcpy(at, code, sizeof code);
}

/* xor %eax, %eax; 1: add %edi, %eax; dec %edi; jnz 1b; add $value, %eax; ret */
static inline void emit_loop(void *at, int value)
{
	uint8_t code[14] = {0x31, 0xc0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0x05, 0, 0, 0, 0, 0xc3};
	memcpy(code + 9, &value, 4);
	memcpy(at, code, sizeof code);
}

/* Calls what the compiler must not see through. */
static inline int call(const void *code, int argument)
{
	function f;
	memcpy(&f, &code, sizeof f);
	asm volatile("" : "+r"(f) : : "memory");
	return f(argument);
}

/* Many of them, one behind the other: more code than there is room for in a small cache. */
static inline void make_and_call_loops(uint8_t *area, unsigned size, int round)
{
	CHECK(mprotect(area, size, PROT_READ | PROT_WRITE) == 0);
	for (unsigned at = 0; at < size; at += 256)
		emit_loop(area + at, round + (int)at);
	CHECK(mprotect(area, size, PROT_READ | PROT_EXEC) == 0);
	for (unsigned at = 0; at < size; at += 256)
		CHECK_EQ(call(area + at, 3), 6 + round + (int)at);
}

#endif
