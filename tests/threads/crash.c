/* A crash that needs a race: one thread checks a pointer and uses it, another one takes it away in between. Runs until
 * it happens. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

static int number = 7;
static int *volatile pointer = &number;

static void *take_away(void *unused)
{
	for (;;) {
		pointer = NULL;
		pointer = &number;
	}
	return unused;
}

int main(void)
{
	pthread_t thread;
	long sum = 0;

	prctl(PR_SET_DUMPABLE, 0);
	pthread_create(&thread, NULL, take_away, NULL);
	for (long i = 0; i < 2000000000; i++) {
		if (pointer)
			sum += *pointer;
	}
	printf("%ld\n", sum);
	return 0;
}
