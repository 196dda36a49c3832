/* expect: signal 11 */
/* cause: a pointer is set to null between another thread's check and its use */
/* symptom: that thread follows a null pointer */
#include "bug.h"

static const char *volatile message = "hello";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int checked, cleared;

static void *speaker(void *argument)
{
	(void)argument;
#ifdef FIXED
	pthread_mutex_lock(&lock);
#endif
	if (message) {
		checked = 1;
#ifndef FIXED
		while (!cleared)
			usleep(50);
#endif
		bug_work(1000);
		bug_sink = (unsigned char)message[0];
	}
#ifdef FIXED
	pthread_mutex_unlock(&lock);
#endif
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, speaker, NULL);
	while (!checked)
		usleep(50);
#ifdef FIXED
	pthread_mutex_lock(&lock);
#else
	ROOT_CAUSE();
#endif
	message = NULL;
	cleared = 1;
#ifdef FIXED
	pthread_mutex_unlock(&lock);
#endif
	pthread_join(thread, NULL);
	return 0;
}
