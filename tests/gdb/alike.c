/*
 * Memory at addresses that are alike in their low 32 bits: a few of them, beside the stack's and the program's own,
 * then very many.
 *
 * gdb: see tests/gdb.sh.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WINDOW (1ul << 32)
#define FEW    4
#define MANY   1200

static long *pages[MANY], global = 6;

/* A page whose address is like that one in the low bits; or the next such that is free. */
static long *map(uintptr_t address)
{
	void *page;

	do {
		address -= WINDOW;
		page = mmap((void *)(address & -4096ul), 4096, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	} while (page == MAP_FAILED && address > 1ul << 44);
	if (page == MAP_FAILED)
		abort();
	return page;
}

__attribute__((noinline)) static void they_are_there(void)
{
	__asm__ volatile("");
}

static void few(long argument)
{
	long local = argument + 1;

	for (long i = 0; i < FEW; i++) {
		pages[i] = map((uintptr_t)(i % 2 ? &local : &global) - (uintptr_t)i * WINDOW);
		pages[i][i] = local + i;
	}
	global += local;
	they_are_there();
}

int main(void)
{
	few(10);
	char *all = mmap(NULL, MANY * WINDOW, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		abort();
	for (uintptr_t at = 0; at < MANY * WINDOW; at += WINDOW / 4) /* without gaps: that is easier to record */
		all[at] = 1;
	for (long i = FEW; i < MANY; i++) {
		pages[i] = (long *)(all + (uintptr_t)i * WINDOW);
		pages[i][i % 512] = 11 + i;
	}
	they_are_there();
	abort();
}
