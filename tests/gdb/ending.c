/*
 * What a debugger has to get right where a program ends: a variable that is only stored to, in other intervals than the last;
 * a counter of several threads, who are gone; a thread that runs and comes to no system call; and a fault
 * whose handler aborts.
 *
 * gdb: recorded with short intervals, and debugged by tests/gdb/ending.py.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS  30

volatile int flag __attribute__((aligned(4096)));
volatile unsigned long work_done __attribute__((aligned(4096)));
volatile unsigned long spinning __attribute__((aligned(4096)));
int counter __attribute__((aligned(4096)));
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void work(long rounds)
{
	for (long i = 0; i < rounds; i++)
		work_done = work_done * 3 + (unsigned long)i;
}

static void *count(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static void *spin(void *argument)
{
	for (;;)
		spinning++;
	return argument;
}

static void handle(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (number == SIGSEGV)
		abort();
}

static void set_flag(int value)
{
	flag = value;
}

static void fault(long *where)
{
	*where = 1;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
	pthread_t threads[THREADS], spinner;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 1; i <= 3; i++) {
		work(100000);
		set_flag(i);
	}
	work(300000);
	int before = counter; /* main has seen it, and looks no more */
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_create(&spinner, NULL, spin, NULL);
	while (spinning < 10000)
		usleep(1000);
	fault((long *)(long)before);
	return 0;
}
