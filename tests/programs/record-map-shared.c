/*
 * A file that is mapped shared changes under the program: by write() on its descriptor, by a second mapping, by
 * ftruncate(), and by a child process, in its own time.
 */
#include "check.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096
#define SIZE (8 * PAGE)

static uint64_t sum_of(const volatile unsigned char *memory)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < SIZE; i += 3)
		sum = mix(sum, memory[i]);
	return sum;
}

int main(void)
{
	int fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600), status;
	CHECK(fd >= 0 && !ftruncate(fd, SIZE));
	volatile unsigned char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	volatile unsigned char *reader = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && reader != MAP_FAILED);
	uint64_t sum = sum_of(memory);

	for (unsigned round = 0; round < 50; round++) {
		char text[32];
		int size = snprintf(text, sizeof text, "round %u of write", round);
		off_t at = (off_t)(round * 647 % (SIZE - 32));
		CHECK_EQ(pwrite(fd, text, (size_t)size, at), size);
		CHECK(!memcmp((const char *)memory + at, text, (size_t)size));
		memory[at + 1] = (unsigned char)('A' + round % 26);
		CHECK_EQ(reader[at + 1], 'A' + round % 26);
		sum = mix(sum, sum_of(reader));
	}
	printf("write: %016llx\n", (unsigned long long)sum);

	/* Cut off and long again: zeros. */
	CHECK(!ftruncate(fd, 2 * PAGE) && !ftruncate(fd, SIZE));
	CHECK_EQ(memory[3 * PAGE], 0);
	printf("truncate: %016llx\n", (unsigned long long)sum_of(memory));

	/* The child writes a page and then says so at its start. */
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		for (unsigned page = 1; page < 8; page++) {
			for (unsigned i = 1; i < PAGE; i++)
				memory[page * PAGE + i] = (unsigned char)(i * page >> 3);
			__atomic_store_n(&memory[page * PAGE], 1, __ATOMIC_RELEASE);
		}
		_exit(0);
	}
	sum = 0;
	for (unsigned page = 1; page < 8; page++) {
		while (!__atomic_load_n(&reader[page * PAGE], __ATOMIC_ACQUIRE))
			sched_yield();
		for (unsigned i = 1; i < PAGE; i++)
			sum = mix(sum, reader[page * PAGE + i]);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	printf("child: %016llx\n", (unsigned long long)sum);
	return done();
}
