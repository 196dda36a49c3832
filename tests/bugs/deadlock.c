/* expect: asked 2 */
/* cause: two threads take two locks in different orders */
/* symptom: both wait for ever */
#include "bug.h"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static volatile int arrived;

static void take_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	ROOT_CAUSE();
	pthread_mutex_lock(first);
#ifndef FIXED
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	while (arrived < 2)
		usleep(100);
	(void)!write(1, "holds one\n", 10);
#endif
	pthread_mutex_lock(second);
	bug_work(100);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *other(void *argument)
{
	(void)argument;
#ifdef FIXED
	take_both(&one, &two);
#else
	take_both(&two, &one);
#endif
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, other, NULL);
	take_both(&one, &two);
	pthread_join(thread, NULL);
	return 0;
}
