/* build: -O1 -g0 -fno-optimize-sibling-calls */
/*
 * 24000 places that functions return to, so that returns are spread over several tables while the program runs;
 * the functions lie apart, so that each has a table of its own. They are called directly, by pointers, by jumps
 * from other functions, and by threads while that happens; and by a forked child with code of its own.
 */
#include "check.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

typedef uint64_t (*function)(uint64_t);

#define APART __attribute__((noinline, aligned(1 << 18)))
static APART uint64_t a(uint64_t x)
{
	return x * 3 + 1;
}
static APART uint64_t b(uint64_t x)
{
	return x ^ x >> 3;
}
static APART uint64_t c(uint64_t x)
{
	return x * 5 + (x >> 11);
}
/* jumps to another one, whose return then looks in a table where nobody expects it */
static APART __attribute__((optimize("optimize-sibling-calls"))) uint64_t d(uint64_t x)
{
	return b(x + 1);
}
static volatile function pointers[4] = {a, b, c, a};

#define C1     x = a(x), x = b(x), x = c(x), x = d(x);
#define C4     C1 C1 C1 x = pointers[x & 3](x); C1
#define C16    C4 C4 C4 C4
#define C64    C16 C16 C16 C16
#define F(n)                                                                                                 \
	static __attribute__((noinline)) uint64_t n(uint64_t x)                                              \
	{                                                                                                    \
		C64 C64 C64 C64 return x;                                                                    \
	}
F(f0) F(f1) F(f2) F(f3) F(f4) F(f5) F(f6) F(f7) F(f8) F(f9) F(f10) F(f11) F(f12) F(f13) F(f14) F(f15)
F(f16) F(f17) F(f18) F(f19) F(f20) F(f21) F(f22) F(f23)
static const function functions[24] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16,
        f17, f18, f19, f20, f21, f22, f23};

static void *run(void *argument)
{
	uint64_t x = *(uint64_t *)argument;

	for (int round = 0; round < 4; round++)
		for (unsigned i = 0; i < 24; i++)
			x = functions[i](x);
	*(uint64_t *)argument = x;
	return NULL;
}

/* Code of its own makes the child leave its parent's code cache. */
static int child(void)
{
	static const uint8_t increment[] = {0x48, 0x8d, 0x47, 0x01, 0xc3}; /* lea rax, [rdi+1] ; ret */
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t x = 9;

	memcpy(page, increment, sizeof increment);
	pointers[3] = (function)page;
	run(&x);
	printf("child %lx\n", x);
	return fflush(stdout);
}

int main(void)
{
	uint64_t x = 1, values[3] = {2, 3, 4};
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, &values[i]);
	run(&x);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%lx %lx %lx %lx\n", x, values[0], values[1], values[2]);
	fflush(stdout);

	pid_t pid = fork();
	if (pid == 0)
		_exit(child());
	int status;
	waitpid(pid, &status, 0);
	run(&x);
	printf("%lx, child's status %d\n", x, status);
	return 0;
}
