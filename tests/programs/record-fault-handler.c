/*
 * Faults that the program handles: the handler makes the page accessible and the instruction is done again. Plain
 * loads and stores, across two pages, read and written at once, with vectors, and string instructions
 * that fault in their middle.
 */
#include "check.h"
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>

#define PAGE  4096
#define PAGES 16

static char *area;
static volatile unsigned faults;

static void handler(int sig, siginfo_t *info, void *context)
{
	char *page = (char *)((uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1));
	(void)sig;
	(void)context;
	CHECK(page >= area && page < area + PAGES * PAGE);
	/* Read access first, write access with the second fault. */
	static char allowed[PAGES];
	unsigned number = (unsigned)((page - area) / PAGE);
	if (info->si_code == SEGV_MAPERR)
		fail("not mapped");
	allowed[number] ^= 1;
	faults++;
	CHECK(!mprotect(page, PAGE, allowed[number] ? PROT_READ : PROT_READ | PROT_WRITE));
}

/* All pages closed again; what they hold stays. */
static void lock(void)
{
	CHECK(!mprotect(area, PAGES * PAGE, PROT_NONE));
}

static void report(const char *what, uint64_t value)
{
	printf("%s: %016llx, %u faults\n", what, (unsigned long long)value, faults);
	faults = 0;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	uint64_t sum = 0, value, state = 3;
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	for (unsigned i = 0; i < PAGES * PAGE / 8; i++)
		((uint64_t *)area)[i] = next_random(&state);

	for (unsigned round = 0; round < 20; round++) {
		/* Each page of the first eight: a read, then a write, so that each ends open. */
		lock();
		for (unsigned page = 0; page < 8; page++) {
			volatile uint64_t *word = (volatile uint64_t *)(area + page * PAGE + 8 * round);
			sum = mix(sum, *word);
			*word = sum;
		}
	}
	report("load and store", sum);

	lock();
	volatile uint64_t *crossing = (volatile uint64_t *)(area + PAGE - 3);
	sum = *crossing;
	*crossing = ~sum;
	report("across pages", *crossing);

	lock();
	crossing = (volatile uint64_t *)(area + 3 * PAGE - 5);
	__asm__ volatile("addq %1, %0" : "+m"(*crossing) : "r"(sum) : "cc");
	report("add across pages", *crossing);

	lock();
	value = 5;
	__asm__ volatile("lock xaddq %0, %1" : "+r"(value), "+m"(*(uint64_t *)(area + 5 * PAGE + 64)) : : "cc");
	report("xadd", value);

	lock();
	__m128i vector = _mm_loadu_si128((__m128i *)(area + 7 * PAGE - 9));
	_mm_storeu_si128((__m128i *)(area + 7 * PAGE - 9), _mm_add_epi8(vector, vector));
	memcpy(&value, area + 7 * PAGE - 8, 8);
	report("vector across pages", value);

	lock();
	void *from = area + 100, *to = area + 8 * PAGE + 51;
	size_t count = 5 * PAGE;
	__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
	CHECK_EQ(count, 0);
	memcpy(&value, area + 12 * PAGE, 8);
	report("rep movsb", value);

	lock();
	to = area + 2 * PAGE + 8;
	count = 3 * PAGE / 8;
	__asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(sum) : "memory");
	memcpy(&value, area + 4 * PAGE, 8);
	report("rep stosq", value);

	CHECK(!mprotect(area, PAGES * PAGE, PROT_READ | PROT_WRITE));
	memcpy(area + 13 * PAGE, area + 9 * PAGE, 2 * PAGE - 70);
	lock();
	from = area + 9 * PAGE;
	to = area + 13 * PAGE;
	count = 2 * PAGE;
	__asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
	report("repe cmpsb", count);
	return done();
}
