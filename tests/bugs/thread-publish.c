/* expect: signal 11 */
/* cause: an object is published before it is filled in */
/* symptom: another thread follows its null pointer */
#include "bug.h"

struct config {
	const char *volatile path;
};

static struct config *volatile config;
static volatile int seen;

static void *reader(void *argument)
{
	(void)argument;
	while (!config)
		usleep(50);
	const char *path = config->path;
	seen = 1;
	bug_work(1200);
	return path[0] == '/' ? NULL : (void *)config;
}

int main(void)
{
	static struct config made;
	pthread_t thread;
	void *wrong;

	pthread_create(&thread, NULL, reader, NULL);
#ifdef FIXED
	made.path = "/etc";
	config = &made;
#else
	ROOT_CAUSE();
	config = &made;
	while (!seen)
		usleep(50);
	made.path = "/etc";
#endif
	pthread_join(thread, &wrong);
	return wrong != NULL;
}
