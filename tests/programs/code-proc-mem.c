/*
 * Code that has run is changed through /proc/self/mem, which writes to pages the program itself may not
 * write: the way some tools patch themselves. On a page of its own, and on a function of the executable.
 */
#include "emit.h"
#include <fcntl.h>
#include <sys/mman.h>

#define PAGE 4096ul

static int __attribute__((noinline, noclone, aligned(64))) victim(int value)
{
	asm volatile("" : "+r"(value));
	return value + 1;
}

int main(void)
{
	uint8_t buffer[16];
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (mem < 0)
		skip("/proc/self/mem cannot be opened");
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	memset(buffer, 0xcc, sizeof buffer);
	emit_constant(page, -1);
	CHECK(!mprotect(page, PAGE, PROT_READ | PROT_EXEC));
	CHECK_EQ(call(page, 0), -1);
	emit_constant(buffer, 0);
	if (pwrite(mem, buffer, sizeof buffer, (off_t)page) != sizeof buffer)
		skip("/proc/self/mem cannot be written");
	for (int i = 0; i < 200; i++) {
		emit_constant(buffer, i);
		CHECK_EQ(pwrite(mem, buffer, sizeof buffer, (off_t)page), sizeof buffer);
		CHECK_EQ(call(page, 9), i);
	}
	CHECK_EQ(call((void *)victim, 5), 6);
	emit_multiply(buffer, 100);
	CHECK_EQ(pwrite(mem, buffer, 7, (off_t)victim), 7);
	CHECK_EQ(call((void *)victim, 5), 500);
	return done();
}
