/* compare: stdout status */
/*
 * String instructions over memory that another thread changes all the time: overlapping copies up and down, compares
 * and searches that end where the other thread decides, across lines and pages. What they found goes into
 * system calls, so that a replay that finds something else is not exact; and what a copy left is looked at twice.
 * The second half of it with all signals blocked.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (3 * 4096)

static unsigned char *shared, *own;
static volatile int over;

static void *writer(void *argument)
{
	uint64_t state = 5;
	(void)argument;
	while (!over) {
		uint64_t n = next_random(&state);
		shared[n % BYTES] = (unsigned char)(n >> 32 & 1);
		if ((n & 7) == 0)
			memset(shared + n / 8 % (BYTES - 200), (int)(n >> 40 & 1), 200);
	}
	return NULL;
}

static void copy(void *to, const void *from, size_t count, int down, unsigned width)
{
	if (down) {
		to = (char *)to + (count - 1) * width;
		from = (const char *)from + (count - 1) * width;
		__asm__ volatile("std");
	}
	if (width == 1)
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	else
		__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	__asm__ volatile("cld");
}

static size_t find(const void *at, size_t count, int wanted)
{
	__asm__ volatile("repne scasb" : "+D"(at), "+c"(count) : "a"(wanted) : "memory", "cc");
	return count;
}

static size_t differ(const void *a, const void *b, size_t count)
{
	__asm__ volatile("repe cmpsb" : "+D"(a), "+S"(b), "+c"(count) : : "memory", "cc");
	return count;
}

static uint64_t digest(const unsigned char *bytes, size_t size)
{
	uint64_t sum = size;
	for (size_t i = 0; i < size; i++)
		sum = mix(sum, bytes[i]);
	return sum;
}

/* The registers at a system call are compared by replay. */
static void tell(uint64_t number)
{
	syscall(-1, number);
}

int main(void)
{
	uint64_t state = 9;
	pthread_t thread;
	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && own != MAP_FAILED);
	CHECK(!pthread_create(&thread, NULL, writer, NULL));
	for (unsigned n = 0; n < 15000; n++) {
		sigset_t all;
		sigfillset(&all);
		if (n == 15000)
			CHECK(!pthread_sigmask(SIG_BLOCK, &all, NULL));
		uint64_t r = next_random(&state);
		size_t size = 8 + r % 5000, from = r / 5000 % (BYTES - 5200), to = r / 99999 % (BYTES - 5200);
		unsigned width = r >> 50 & 1 ? 8 : 1;
		size -= size % 8;
		switch (r >> 60) {
		case 0 ... 3: /* out of it, and twice the same afterwards */
			copy(own + to, shared + from, size / width, r >> 51 & 1, width);
			tell(digest(own + to, size));
			CHECK_EQ(digest(own + to, size), digest(own + to, size));
			break;
		case 4 ... 7: /* within it, a little apart: what was written is read again */
			to = from + r % 9;
			copy(shared + to, shared + from, size / width, r >> 51 & 1, width);
			tell(digest(shared + to, size));
			break;
		case 8 ... 11:
			tell(find(shared + from, size, (int)(r >> 52 & 1)));
			break;
		default:
			tell(differ(shared + from, shared + to, size));
		}
	}
	over = 1;
	CHECK(!pthread_join(thread, NULL));
	return done();
}
