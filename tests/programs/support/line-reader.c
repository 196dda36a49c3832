/*
 * Memory that the kernel has filled, one word of a line read after the other: `through` from its start to its
 * end, `back` from its end to its start, `apart` every second line. Exits with 0 when all of it was there.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define LINE  64
#define LINES 16384

static uint64_t read_line(const volatile uint8_t *memory, unsigned line)
{
	return *(const volatile uint64_t *)(memory + LINE * line);
}

int main(int argc, char **argv)
{
	uint8_t *memory = mmap(NULL, LINE * LINES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned step = argc > 1 && strcmp(argv[1], "apart") == 0 ? 2 : 1, filled = 0;
	uint64_t sum = 0;

	if (argc < 2 || memory == MAP_FAILED)
		return 2;
	for (size_t at = 0; at < LINE * LINES; at += 4096) {
		if (getrandom(memory + at, 4096, 0) != 4096)
			return 2;
	}
	for (unsigned i = 0; i < LINES; i += step) {
		uint64_t word = read_line(memory, strcmp(argv[1], "back") == 0 ? LINES - 1 - i : i);
		filled += word != 0;
		sum += word;
	}
	return filled == LINES / step && sum ? 0 : 1;
}
