/*
 * Code that is made at run time: functions of one page that add different numbers, one written over the other, with a call of the last one
 * through an address that is wrong.
 *
 * gdb: recorded, and debugged forwards and backwards by tests/gdb.sh.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 40

long total;

/* add qword [rdi], n ; mov rax, [rdi] ; ret */
static size_t write_code(uint8_t *code, int8_t n)
{
	const uint8_t bytes[] = {0x48, 0x83, 0x07, (uint8_t)n, 0x48, 0x8b, 0x07, 0xc3};

	memcpy(code, bytes, sizeof bytes);
	return sizeof bytes;
}

int main(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long result = 0, *where = &total;

	for (int i = 1; i <= ROUNDS; i++) {
		write_code(code, (int8_t)i);
		result += ((long (*)(long *))code)(where);
	}
	printf("%ld %ld\n", total, result);
	fflush(stdout);
	where = (long *)0x10;
	return (int)((long (*)(long *))code)(where);
}
