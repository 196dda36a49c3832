/* What sanitizers find, for tests/real/cases/sanitizers.sh: the argument says which. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;
static int global[8];

static void *churn(void *argument)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < 3000; i++) {
		char *block = malloc(i % 700 + 1);
		memset(block, (int)i, i % 700 + 1);
		sum = sum * 31 + (unsigned char)block[i % 700];
		free(block);
	}
	*(uint64_t *)argument = sum;
	return NULL;
}

__attribute__((noinline)) static void use_after_free(void)
{
	char *volatile block = malloc(100);

	free(block);
	sink = block[50];
}

__attribute__((noinline)) static void heap_overflow(void)
{
	char *volatile block = malloc(100);

	block[100] = 1;
	free(block);
}

__attribute__((noinline)) static void stack_overflow(unsigned at)
{
	volatile char array[16];

	array[at] = 1;
	sink = array[3];
}

/* In a thread, of whose stack nothing is left where a pointer might be found. */
static void *leak(void *unused)
{
	void *volatile block = malloc(1234);

	memset(block, 1, 1234);
	block = NULL;
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t threads[4], leaking;
	uint64_t results[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, &results[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%llx\n", (unsigned long long)(results[0] ^ results[1] + results[2] ^ results[3]));
	fflush(stdout);
	if (strcmp(what, "use-after-free") == 0)
		use_after_free();
	else if (strcmp(what, "heap-overflow") == 0)
		heap_overflow();
	else if (strcmp(what, "stack-overflow") == 0)
		stack_overflow(16);
	else if (strcmp(what, "global-overflow") == 0)
		sink = global[argc + 6];
	else if (strcmp(what, "leak") == 0)
		pthread_create(&leaking, NULL, leak, NULL), pthread_join(leaking, NULL);
	else if (strcmp(what, "undefined") == 0)
		sink = INT32_MAX - 1 + argc;
	return 0;
}
