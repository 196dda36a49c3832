/*
 * The heap is made smaller when the thread that uses it has ended by chance.
 *
 * race: reader() shrink()
 * call: brk reader() shrink()
 */
#include "race.h"

#define SIZE 65536

static volatile long *memory;
static _Atomic pid_t tid;

static NOINLINE void *reader(void *unused)
{
	long sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += memory[i];
	return sum == 1 ? NULL : unused;
}

static void *begin(void *unused)
{
	tid = gettid();
	return reader(unused);
}

static NOINLINE void shrink(void)
{
	if (syscall(SYS_brk, memory) < 0)
		exit(1);
	__asm__ volatile("");
}

int main(void)
{
	pthread_t thread;

	char *end = (char *)((syscall(SYS_brk, 0) + 4095) & -4096l);
	if (syscall(SYS_brk, end + SIZE) < 0)
		return 1;
	memory = (void *)end;
	pthread_create(&thread, NULL, begin, NULL);
	while (!tid)
		sched_yield();
	IF_FIXED(pthread_join(thread, NULL);)
	IF_RACING(outlive(tid);)
	shrink();
	IF_RACING(pthread_join(thread, NULL);)
	puts("done");
	return 0;
}
