/* cases: hundreds thousand many limited */
/*
 * Hundreds or a thousand threads at a time, with stacks of the usual size, or several thousands with small
 * ones: all live until the last one is there, and each works on its stack, on memory of its own and on memory
 * that all share. They wait for each other by pipes, so that a thousand do not fight for one lock. `limited`
 * is run where there is no room for the shadows of most.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HUNDREDS 200
#define THOUSAND 1000
#define MANY     3000
#define LIMITED  100
#define WORDS    64

static int arrived[2], open_now[2], wanted, passed;
static uint64_t shared[MANY];

static uint64_t mix(uint64_t *words, uint64_t seed)
{
	uint64_t sum = seed;

	for (int i = 0; i < WORDS; i++) {
		words[i] = sum * 0x9e3779b97f4a7c15 + (uint64_t)i;
		sum ^= words[i] >> 7;
	}
	for (int i = 0; i < WORDS; i++)
		sum = sum * 31 + words[i];
	return sum;
}

/* What the thread left before all were there must be there after it. */
static void *work(void *argument)
{
	uint64_t number = (uintptr_t)argument, on_stack[WORDS], *own = malloc(sizeof on_stack);

	shared[number] = mix(on_stack, number);
	mix(own, number + 1);
	char byte = 0;
	if (write(arrived[1], &byte, 1) != 1 || read(open_now[0], &byte, 1) != 1)
		return NULL;

	uint64_t again[WORDS], neighbour = (number + 1) % (uint64_t)wanted;
	int good = mix(again, number) == shared[number] && memcmp(again, on_stack, sizeof again) == 0;
	mix(again, number + 1);
	good &= memcmp(again, own, sizeof again) == 0 && mix(again, neighbour) == shared[neighbour];
	free(own);
	__atomic_fetch_add(&passed, good, __ATOMIC_RELAXED);
	return NULL;
}

/* One byte for each thread. */
static int transfer(int in, int out)
{
	char byte = 0;

	for (int i = 0; i < wanted; i++) {
		if ((in >= 0 ? read(in, &byte, 1) : write(out, &byte, 1)) != 1)
			return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "thousand";
	int many = strcmp(how, "many") == 0, limited = strcmp(how, "limited") == 0;
	static pthread_t threads[MANY];
	pthread_attr_t attributes;
	int made = 0, error = 0;

	wanted = many ? MANY : limited ? LIMITED : strcmp(how, "hundreds") == 0 ? HUNDREDS : THOUSAND;
	if (pipe(arrived) || pipe(open_now))
		return 1;
	pthread_attr_init(&attributes);
	if (many || limited)
		pthread_attr_setstacksize(&attributes, 64 << 10);
	while (made < wanted && !error) {
		error = pthread_create(&threads[made], &attributes, work, (void *)(uintptr_t)made);
		made += !error;
	}
	if (error || !transfer(arrived[0], -1) || !transfer(-1, open_now[1])) {
		printf("%d made, error %d\n", made, error);
		return 1;
	}
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	printf("%d made, %d passed\n", made, passed);
	return passed != made;
}
