/*
 * Memory of which nobody in the recording can tell, beside memory that is known: what read() has filled, and nobody
 * has loaded.
 *
 * gdb: see tests/gdb.sh.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reading {
	int count;
	char kind;
	long total;
	double mean;
	char text[20];
	struct reading *next;
	long double exact;
	int values[20];
};

/* read() fills it; the first bytes of what it reads are logged for listings of calls. */
static struct input {
	char head[4096];
	struct reading reading;
	char buffer[16384];
	long table[2048];
} input;
static struct reading global, *filled = &input.reading, *fresh;

int main(void)
{
	int fd = open("/dev/urandom", O_RDONLY);

	fresh = malloc(sizeof *fresh);
	if (read(fd, &input, sizeof input) != sizeof input)
		return 1;
	filled->count = 5;
	filled->next = &global;
	filled->values[3] = 9;
	filled->values[4] = 0;
	strcpy(filled->text, "hi");
	fresh->total = 7;
	input.buffer[100] = 1;
	for (int i = 0; i < 4; i++)
		input.table[1000 + i * 20] = -2 - i;
	abort();
}
