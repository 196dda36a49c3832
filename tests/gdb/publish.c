/*
 * A thread loads what another one stores; by stamps, that may be much later.
 *
 * gdb: see tests/gdb.sh.
 */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static volatile int ready, published, looked;
static volatile int value = 1;

__attribute__((noinline)) static int look(void)
{
	return value;
}

__attribute__((noinline)) static void tell(int found)
{
	looked = found;
}

static void *reader(void *argument)
{
	ready = 1;
	while (!published)
		;
	tell(look());
	return argument;
}

__attribute__((noinline)) static void publish(void)
{
	value = 2;
	value = 3;
	published = 1;
}

int main(void)
{
	pthread_t thread;

	value = 1;
	pthread_create(&thread, NULL, reader, NULL);
	while (!ready)
		;
	getppid(); /* stamped: what comes behind it may come behind all that the reader does */
	publish();
	while (!looked)
		;
	pthread_join(thread, NULL);
	return 0;
}
