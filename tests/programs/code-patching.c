/* run: | --cache 256K */
/*
 * Functions that lie across the edges of writable, executable pages, patched now here, now there, by their own
 * thread and by others, as the code cache of a Java machine is. What a call returns must be what was last
 * written, however the code before and behind the edge was watched, checked or found unchanged meanwhile.
 */
#include "emit.h"
#include <cpuid.h>
#include <pthread.h>
#include <sys/mman.h>

#define PAGES     8
#define FUNCTIONS (PAGES - 1)
#define PARTS     12 /* add $imm32, %eax: six or five bytes each */
#define ROUNDS    8000
#define THREADS   3

/* A function's code and what it should return: the sum of the numbers in it. */
struct function {
	uint8_t *start;
	uint8_t *numbers[PARTS];
	int32_t values[PARTS];
};

struct machine {
	uint8_t *memory;
	struct function functions[FUNCTIONS];
	uint64_t random;
};

static uint64_t next(struct machine *m)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	return m->random ^= m->random << 17;
}

/* The edge of the pages falls into the middle of it, in one function between instructions, in another inside. */
static void write_function(struct function *f, uint8_t *edge, unsigned shift)
{
	uint8_t *at = edge - 5 * PARTS / 2 - shift;

	f->start = at;
	*at++ = 0x31; /* xor %eax, %eax */
	*at++ = 0xc0;
	for (int i = 0; i < PARTS; i++) {
		*at++ = 0x05; /* add $imm32, %eax */
		f->numbers[i] = at;
		f->values[i] = i;
		memcpy(at, &f->values[i], 4);
		at += 4;
		if (i == PARTS / 3) { /* and a branch, so that there are blocks */
			*at++ = 0x75; /* jne +0 */
			*at++ = 0;
		}
	}
	*at = 0xc3;
}

static void set_up(struct machine *m, uint64_t seed)
{
	m->random = seed;
	m->memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m->memory != MAP_FAILED);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		write_function(&m->functions[i], m->memory + (i + 1) * 4096, i);
}

static void check_function(const struct function *f)
{
	int32_t sum = 0;

	for (int i = 0; i < PARTS; i++)
		sum += f->values[i];
	CHECK_EQ((uint32_t)((int (*)(void))f->start)(), (uint32_t)sum);
}

static void patch(struct machine *m, struct function *f)
{
	int part = (int)(next(m) % PARTS);

	/* Few values, so that old states come back. */
	f->values[part] = part + (int)(next(m) % 3);
	memcpy(f->numbers[part], &f->values[part], 4);
}

static void *alone(void *argument)
{
	struct machine m;

	set_up(&m, (uint64_t)argument);
	for (int i = 0; i < ROUNDS; i++) {
		struct function *f = &m.functions[next(&m) % FUNCTIONS];
		uint64_t what = next(&m) % 16;
		if (what < 6)
			patch(&m, f);
		else if (what == 6)
			f->start[-64] = (uint8_t)i; /* data beside the code */
		else if (what == 7 && i % 64 == 0)
			CHECK_EQ(mprotect(m.memory + next(&m) % PAGES * 4096, 4096,
			                 PROT_READ | PROT_WRITE | PROT_EXEC), 0);
		else
			check_function(f);
	}
	munmap(m.memory, PAGES * 4096);
	return NULL;
}

/* One set of functions for all: whoever has the lock patches some and calls some. */
static struct machine shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *together(void *argument)
{
	unsigned a, b, c, d;

	(void)argument;
	for (int i = 0; i < ROUNDS / 20; i++) {
		pthread_mutex_lock(&mutex);
		__cpuid(0, a, b, c, d); /* serialise, as the manuals ask */
		for (int k = 0; k < 4; k++)
			check_function(&shared.functions[next(&shared) % FUNCTIONS]);
		patch(&shared, &shared.functions[next(&shared) % FUNCTIONS]);
		patch(&shared, &shared.functions[next(&shared) % FUNCTIONS]);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void run_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (uint64_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, function, (void *)(i * 77 + 5)), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
	alone((void *)1);
	run_threads(alone);
	set_up(&shared, 99);
	run_threads(together);
	return done();
}
