/*
 * For the ring suite: a program that does what it is told, in an order that anybody can follow.
 *
 *	flight busy SECONDS THREADS    threads that load and store a lot, one that sleeps, one that ends and begins anew
 *	flight turns COUNT THREADS     the same threads, with so much to do each, and the one that sleeps
 *	flight set KILOBYTES ROUNDS    loads so much memory over and over, which nothing predicts
 *	flight store MEGABYTES SECONDS stores to so much memory over and over
 *	flight grow                    takes more and more memory
 *	flight jit COUNT               code that is rewritten all the time, with a thread that sleeps meanwhile
 *	flight fresh COUNT             code in memory that is mapped for it and unmapped again, always somewhere else
 *	flight reload COUNT            a library that is loaded and unloaded again, always somewhere else
 *	flight say LINE...             writes the lines to descriptor 2, one by one
 *	flight spell PART...           writes the parts of one line to descriptor 2, one by one
 *	flight check NUMBER            asks to be saved if the sum up to NUMBER is not what it should be
 *	flight locked                  two threads that wait for each other for ever
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../../include/bugnet/bugnet.h"

static volatile int stop;
static long turns = -1; /* or how many there are to do */
static volatile unsigned long sum;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Reads what it did not write: a new part of the log every time. */
static void *load(void *argument)
{
	unsigned long state = (unsigned long)argument * 77 + 1;
	FILE *source = fopen("/dev/urandom", "r");
	static __thread char block[16384];

	for (long turn = 0; !stop && turn != turns; turn++) {
		if (fread(block, 1, sizeof block, source) != sizeof block)
			abort();
		for (size_t i = 0; i < sizeof block; i++)
			state = state * 31 + (unsigned char)block[i];
		for (int i = 0; i < 200000; i++)
			state = state * 6364136223846793005ul + 1;
		sum += state;
	}
	fclose(source);
	return NULL;
}

static void load_again(size_t kilobytes, long rounds)
{
	size_t count = kilobytes * 1024 / sizeof(unsigned long);
	unsigned long *words = malloc(count * sizeof *words), state = 1;

	for (size_t i = 0; i < count; i++)
		words[i] = state = state * 6364136223846793005ul + 1442695040888963407ul;
	for (long round = 0; round < rounds; round++) {
		for (size_t i = 0; i < count; i += 8)
			sum += words[i];
	}
	free(words);
}

static void *sleeper(void *argument)
{
	(void)argument;
	for (int i = 0; i < 1000; i++)
		sum += (unsigned long)i;
	pause();
	return NULL;
}

static void *short_lived(void *argument)
{
	sum += (unsigned long)argument;
	return NULL;
}

static void busy(double seconds, int count)
{
	pthread_t threads[16], other;
	double end = now() + seconds;

	pthread_create(&other, NULL, sleeper, NULL);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (long i = 0; now() < end; i++) {
		pthread_create(&other, NULL, short_lived, (void *)i);
		pthread_join(other, NULL);
		usleep(5000);
	}
	stop = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void work(int count)
{
	pthread_t threads[16], other;

	pthread_create(&other, NULL, sleeper, NULL);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Stores are not logged, but what was stored is remembered. */
static void store(size_t megabytes, double seconds)
{
	size_t words = megabytes << 17;
	unsigned long *memory = malloc(words * sizeof *memory);
	double end = now() + seconds;

	for (unsigned long i = 1; now() < end; i++) {
		for (size_t k = 0; k < words; k += 8)
			memory[k] = i;
	}
	sum += memory[words / 2];
	free(memory);
}

/* Until somebody ends it. */
static void grow(void)
{
	for (unsigned long i = 1;; i++) {
		unsigned long *block = malloc(1 << 20);
		if (!block)
			abort();
		for (size_t k = 0; k < (1 << 20) / sizeof *block; k += 64)
			block[k] = i;
		sum += block[64];
	}
}

/* mov eax, NUMBER; ret -- at places that come again and again */
static void jit(unsigned count)
{
	pthread_t other;
	unsigned char *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pthread_create(&other, NULL, sleeper, NULL);
	for (unsigned i = 0; i < count; i++) {
		unsigned char *at = code + i * 64 % 4096;
		at[0] = 0xb8;
		memcpy(at + 1, &i, 4);
		at[5] = 0xc3;
		if (((unsigned (*)(void))(void *)at)() != i)
			abort();
	}
}

/* So that what was before is dropped. */
static void something_to_log(void)
{
	static FILE *source;
	unsigned char block[1024];

	if (!source)
		source = fopen("/dev/urandom", "r");
	if (!source || fread(block, 1, sizeof block, source) != sizeof block)
		abort();
	for (size_t k = 0; k < sizeof block; k++)
		sum += block[k];
}

/* The same, never at the same place again. */
static void fresh(unsigned count)
{
	unsigned char *place = mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (place == MAP_FAILED)
		abort();
	munmap(place, 1ul << 40);
	for (unsigned i = 0; i < count; i++) {
		unsigned char *page = place + i * 16384ul;
		if (mmap(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
			abort();
		something_to_log();
		for (unsigned k = 0; k < 8; k++) {
			unsigned char *at = page + k * 1024;
			unsigned number = i * 8 + k;
			at[0] = 0xb8;
			memcpy(at + 1, &number, 4);
			at[5] = 0xc3;
			if (((unsigned (*)(void))(void *)at)() != number)
				abort();
		}
		munmap(page, 8192);
	}
}

/* How far a file's image reaches from where it is loaded, in whole pages. */
static size_t span_of(const char *image)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image;
	const ElfW(Phdr) *part = (const ElfW(Phdr) *)(image + header->e_phoff);
	size_t span = 0;

	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (part[i].p_type == PT_LOAD && part[i].p_vaddr + part[i].p_memsz > span)
			span = part[i].p_vaddr + part[i].p_memsz;
	}
	return (span + 4095) & -4096ul;
}

/* Where it was, nothing else comes; all these places are one mapping. */
static void reload(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
		double (*function)(double) = library ? (double (*)(double))dlsym(library, "floor") : NULL;
		struct link_map *map;

		if (!function || function(27.5) != 27 || dlinfo(library, RTLD_DI_LINKMAP, &map))
			abort();
		char *place = (char *)map->l_addr;
		size_t span = span_of(place);
		dlclose(library);
		if (mmap(place, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != place)
			abort();
		something_to_log();
	}
}

static void check(unsigned long number)
{
	unsigned long total = 0;

	for (unsigned long i = 1; i <= number; i++)
		total += i;
	if (total == number * (number + 1) / 2)
		total++; /* the mistake */
	if (total != number * (number + 1) / 2)
		printf("saved %d\n", bugnet_save("the sum is wrong"));
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *lock_both(void *argument)
{
	pthread_mutex_t *one = argument ? &first : &second, *other = argument ? &second : &first;

	pthread_mutex_lock(one);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(other);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "busy")) {
		busy(atof(argv[2]), atoi(argv[3]));
	} else if (!strcmp(what, "turns")) {
		turns = atol(argv[2]);
		work(atoi(argv[3]));
	} else if (!strcmp(what, "set")) {
		load_again((size_t)atol(argv[2]), atol(argv[3]));
	} else if (!strcmp(what, "store")) {
		store((size_t)atol(argv[2]), atof(argv[3]));
	} else if (!strcmp(what, "grow")) {
		grow();
	} else if (!strcmp(what, "jit")) {
		jit((unsigned)atoi(argv[2]));
	} else if (!strcmp(what, "fresh")) {
		fresh((unsigned)atoi(argv[2]));
	} else if (!strcmp(what, "reload")) {
		reload((unsigned)atoi(argv[2]));
	} else if (!strcmp(what, "say")) {
		for (int i = 2; i < argc; i++)
			dprintf(2, "%s\n", argv[i]);
	} else if (!strcmp(what, "spell")) {
		for (int i = 2; i < argc; i++)
			dprintf(2, "%s", argv[i]);
		dprintf(2, "\n");
	} else if (!strcmp(what, "check")) {
		check(strtoul(argv[2], NULL, 10));
	} else if (!strcmp(what, "locked")) {
		pthread_t thread;
		pthread_barrier_init(&both, NULL, 2);
		pthread_create(&thread, NULL, lock_both, NULL);
		lock_both(&both);
	} else {
		return 2;
	}
	puts("done");
	return 0;
}
