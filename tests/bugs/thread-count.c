/* expect: signal 6 */
/* cause: two threads add to a count without a lock, and one addition is lost */
/* symptom: the count is wrong at the end, an assertion fails */
#include "bug.h"
#include <assert.h>

static volatile int count, loaded, stored;

static void *adder(void *argument)
{
	(void)argument;
#ifdef FIXED
	__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
#else
	int before = count;
	loaded = 1;
	while (!stored)
		usleep(50);
	ROOT_CAUSE();
	count = before + 1;
#endif
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, adder, NULL);
#ifdef FIXED
	__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
#else
	while (!loaded)
		usleep(50);
	count = count + 1;
	stored = 1;
#endif
	pthread_join(thread, NULL);
	bug_work(7000);
	assert(count == 2);
	return 0;
}
