/* record: | --children */
/* run: | --cache 256K | --children */
/*
 * Forks while other threads rewrite and run code, each on a page of its own: the process leaves the code cache it
 * shares with its children again and again, under threads that run in it.
 */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define THREADS 4
#define FORKS   20

static volatile int stop;

static void *rewrite(void *argument)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argument;
	CHECK(code != MAP_FAILED);
	for (int i = 0; !stop; i++) {
		memcpy(code, "\xb8\0\0\0\0\xc3", 6); /* mov $i, %eax; ret */
		memcpy(code + 1, &i, 4);
		CHECK_EQ(((int (*)(void))code)(), i);
	}
	return NULL;
}

/* Code that is written once and never again, mapped anew each time. */
static void *map_anew(void *argument)
{
	(void)argument;
	for (int i = 0; !stop; i++) {
		unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(code != MAP_FAILED);
		memcpy(code, "\xb8\0\0\0\0\xc3", 6);
		memcpy(code + 1, &i, 4);
		CHECK_EQ(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
		CHECK_EQ(((int (*)(void))code)(), i);
		CHECK_EQ(munmap(code, 4096), 0);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, i % 2 ? map_anew : rewrite, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit((int)compute(5, 100) & 63);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, ((int)compute(5, 100) & 63) << 8);
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	return done();
}
