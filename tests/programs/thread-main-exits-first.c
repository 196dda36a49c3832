/* expect: exit 0 */
/* The main thread ends with pthread_exit; the others go on, and the last one's exit ends the process with
 * status 0. */
#include "check.h"
#include <pthread.h>

static pthread_t main_thread;

static void *second(void *arg)
{
	(void)arg;
	CHECK(!pthread_join(main_thread, NULL));
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", getpid());
	FILE *file = fopen(path, "re");
	CHECK(file && fgets(text, sizeof text, file));
	fclose(file);
	printf("main is %c, sum %llx\n", strrchr(text, ')')[2], (long long)compute(5, 100000));
	printf("%s", "last words\n");
	fflush(stdout);
	return NULL;
}

static void *first(void *arg)
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, second, arg));
	pthread_detach(pthread_self());
	return NULL;
}

static void at_exit(void)
{
	puts("exit handler");
}

int main(void)
{
	pthread_t thread;
	main_thread = pthread_self();
	atexit(at_exit);
	CHECK(!pthread_create(&thread, NULL, first, NULL));
	pthread_exit(NULL);
}
