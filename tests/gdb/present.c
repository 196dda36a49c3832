/*
 * What is debugged while it runs: present MODE FILE. What it has to say goes to FILE, since standard output
 * is gdb's as well.
 *
 * gdb: see tests/gdb.sh.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
#define TURNS   400

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t over;
static volatile unsigned long turns;
/* Alone on what a watchpoint looks at. */
static struct {
	char before[512];
	long value;
	char after[512];
} watched;

__attribute__((noinline)) static double visit(int number, double sum)
{
	sum = sum * 1.5 + number;
	fprintf(out, "visit %d: %g\n", number, sum);
	fflush(out);
	return sum;
}

static int visits(void)
{
	double sum = 0.25;

	for (int i = 0; i < 6; i++)
		sum = visit(i, sum);
	return (int)sum;
}

static long total, of[THREADS];

__attribute__((noinline)) static void add(int thread)
{
	pthread_mutex_lock(&lock);
	of[thread]++;
	total++;
	pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
	for (int i = 0; i < TURNS; i++)
		add((int)(intptr_t)argument);
	return NULL;
}

static int threads(void)
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fprintf(out, "total %ld\n", total);
	return 4;
}

/* Called from gdb only; nothing else is on its line. */
static struct {
	char before[512];
	int value;
	char after[512];
} untouched;
__attribute__((noinline, used)) static int take(int number)
{
	untouched.value += number;
	return untouched.value;
}

__attribute__((noinline, used)) static long total_here(void)
{
	return total;
}

static char filled[64];
__attribute__((noinline, used)) static int length_here(void)
{
	return (int)strlen(filled);
}

__attribute__((noinline)) static void stand(void)
{
	__asm__ volatile("");
}

static int calls(void)
{
	int ends[2], length;

	strcpy(filled, "old");
	length = length_here();
	stand();
	if (pipe(ends) || write(ends[1], "filled", 7) != 7 || read(ends[0], filled, 7) != 7)
		return 1;
	stand();
	fprintf(out, "lengths %d and %d, %d\n", length, length_here(), (int)sizeof untouched);
	return 5;
}

static long *slots[4];
static long zero;

__attribute__((noinline)) static void forget_slot(int number)
{
	slots[number] = NULL;
}

static int crash(void)
{
	for (int i = 0; i < 4; i++)
		slots[i] = &zero;
	forget_slot(2);
	for (int i = 0; i < 4; i++) {
		fprintf(out, "slot %d\n", i);
		fflush(out);
		*slots[i] += i;
	}
	return 0;
}

static void end_loop(int number)
{
	over = number;
}

static int loop(void)
{
	signal(SIGUSR1, end_loop);
	fprintf(out, "looping\n");
	fflush(out);
	while (!over)
		turns++;
	fprintf(out, "over by %d\n", over == SIGUSR1);
	return 0;
}

__attribute__((noinline)) static void change(long value)
{
	watched.value = value;
}

static int watch(void)
{
	for (long i = 1; i <= 3; i++) {
		for (turns = 0; turns < 300000; turns++)
			;
		change(i * 11);
	}
	fprintf(out, "watched %ld\n", watched.value);
	return 2;
}

static int lines(void)
{
	char line[128];

	while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
		printf("got %s", line);
		fflush(stdout);
	}
	return 3;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*function)(void);
	} modes[] = {{"visits", visits}, {"threads", threads}, {"crash", crash}, {"loop", loop},
	        {"watch", watch}, {"lines", lines}, {"calls", calls}};
	int status = 1;

	out = argc > 2 ? fopen(argv[2], "w") : NULL;
	for (unsigned i = 0; out && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name) == 0)
			status = modes[i].function();
	}
	return !out || fclose(out) ? 1 : status;
}
