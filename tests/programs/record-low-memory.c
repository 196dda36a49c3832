/*
 * Memory below 4 GB in a program that has none otherwise, filled by the kernel, and first touched by an
 * instruction that is not done in place while recording: a string instruction, a locked one, popf, a stack
 * switched to there. Each in a process of its own kind: whoever comes first makes the memory known.
 */
/* cases: movs scas cmps stos xadd popf stack */
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>

#define SIZE 8192

static uint8_t *low_memory(void)
{
	uint8_t *low = mmap(
	        NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(low != MAP_FAILED && fd >= 0);
	CHECK_EQ(syscall(SYS_read, fd, low, SIZE), SIZE);
	close(fd);
	return low;
}

static uint64_t first_touch(const char *how, uint8_t *low)
{
	static uint8_t copy[SIZE];
	uint8_t *to = copy, *from = low;
	uint64_t count = 5000, value = 1, stack;

	if (!strcmp(how, "movs"))
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	else if (!strcmp(how, "scas"))
		__asm__ volatile("repne scasb" : "+D"(from), "+c"(count) : "a"(0xff) : "memory", "cc");
	else if (!strcmp(how, "cmps"))
		__asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory", "cc");
	else if (!strcmp(how, "stos"))
		__asm__ volatile("rep stosb" : "+D"(from), "+c"(count) : "a"(7) : "memory");
	else if (!strcmp(how, "xadd"))
		__asm__ volatile("lock xaddq %0, %1" : "+r"(value), "+m"(*(uint64_t *)(low + 104)) : : "memory", "cc");
	else if (!strcmp(how, "popf"))
		__asm__ volatile("mov %%rsp, %0; mov %1, %%rsp; popfq; mov %0, %%rsp"
		                 : "=&r"(stack)
		                 : "r"(low + SIZE)
		                 : "memory", "cc");
	else if (!strcmp(how, "stack"))
		__asm__ volatile("mov %%rsp, %0; mov %2, %%rsp; pushq $5; pushfq; pop %1; pop %1; mov %0, %%rsp"
		                 : "=&r"(stack), "=&r"(value)
		                 : "r"(low + SIZE)
		                 : "memory", "cc");
	for (int i = 0; i < SIZE; i++)
		value = value * 31 + copy[i] + low[i];
	return value * 31 + count;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	printf("%s %016llx\n", argv[1], (unsigned long long)first_touch(argv[1], low_memory()));
	return done();
}
