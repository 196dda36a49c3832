/* run: | --cache 256K */
/* timeout: 120 */
/*
 * A small JIT: random expressions compiled to machine code with calls between them, run, thrown away and
 * replaced; functions patched while others call them; a megabyte and a half of code in all, so that caches must be flushed and
 * addresses reused.
 */
#include "emit.h"
#include <sys/mman.h>

#define AREA (1u << 20)

static uint8_t *area, *at;
static uint64_t random_state = 20;

static void byte(int value)
{
	*at++ = (uint8_t)value;
}

static void dword(int32_t value)
{
	memcpy(at, &value, 4);
	at += 4;
}

/* Emits code for a random function of edi and returns, by interpretation, what it gives for `argument`. */
static int32_t expression(int depth, int32_t argument)
{
	int32_t value = argument;
	byte(0x89), byte(0xf8); /* mov %edi, %eax */
	for (int i = 0; i < depth; i++) {
		int32_t constant = (int32_t)next_random(&random_state);
		switch (next_random(&random_state) % 7) {
		case 0:
			byte(0x05), dword(constant); /* add $constant, %eax */
			value = (int32_t)((uint32_t)value + (uint32_t)constant);
			break;
		case 1:
			byte(0x69), byte(0xc0), dword(constant); /* imul */
			value = (int32_t)((uint32_t)value * (uint32_t)constant);
			break;
		case 2:
			byte(0x35), dword(constant); /* xor */
			value ^= constant;
			break;
		case 3:
			byte(0xc1), byte(0xc0), byte(constant & 31); /* rol */
			if (constant & 31)
				value = (int32_t)((uint32_t)value << (constant & 31) |
				                  (uint32_t)value >> (32 - (constant & 31)));
			break;
		case 4:
			byte(0x3d), dword(constant); /* cmp $constant, %eax; jl +5; add $1, %eax */
			byte(0x7c), byte(5);
			byte(0x05), dword(1);
			if (value >= constant)
				value = (int32_t)((uint32_t)value + 1);
			break;
		case 5:
			byte(0xe8), dword(2); /* call over a jump: call +2; jmp +3; not %eax; ret */
			byte(0xeb), byte(3);
			byte(0xf7), byte(0xd0), byte(0xc3);
			value = ~value;
			break;
		case 6: /* push and pop through a jump */
			byte(0x50), byte(0xeb), byte(1), byte(0xcc), byte(0x58), byte(0xf7), byte(0xd8);
			value = (int32_t)(0 - (uint32_t)value);
			break;
		}
	}
	byte(0xc3);
	return value;
}

int main(void)
{
	uint64_t sum = 0, bytes = 0;
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	at = area;
	while (bytes < 3u << 19) {
		if (at + 65536 > area + AREA) {
			at = area + next_random(&random_state) % 64; /* from the start, other alignment */
			memset(area, 0xcc, 64);
		}
		uint8_t *start = at;
		int depth = 200 + (int)(next_random(&random_state) % 1500);
		int32_t argument = (int32_t)next_random(&random_state);
		int32_t expected = expression(depth, argument);
		for (int i = 0; i < 3; i++)
			CHECK_EQ((uint32_t)call(start, argument), (uint32_t)expected);
		bytes += (uint64_t)(at - start);
		sum = mix(sum, (uint32_t)expected);
	}
	printf("sum %llx\n", (long long)sum);

	/* Patched calls, as inline caches are: call rel32 to one of several targets, changed in place. */
	uint8_t *site = area + AREA / 2 - 2, *target[4];
	for (int i = 0; i < 4; i++) {
		target[i] = area + AREA / 2 + 4096 * (i + 1);
		emit_add(target[i], i * 1000);
	}
	at = site - 64;
	byte(0xeb), byte(62); /* jmp to the site */
	site[5] = 0xc3;
	for (int i = 0; i < 2000; i++) {
		int32_t offset = (int32_t)(target[i % 4] - (site + 5));
		site[0] = 0xe8;
		memcpy(site + 1, &offset, 4);
		CHECK_EQ(call(site - 64, 1), i % 4 * 1000 + 1);
	}
	return done();
}
