// A program that uses a little of everything a C library and a kernel offer, and prints what it found.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread int thread_value = 5;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long shared, atomic;
static volatile sig_atomic_t signals;
static sigjmp_buf escape;

static void *count(void *argument)
{
	thread_value += (int)(long)argument;
	for (int i = 0; i < 5000; i++) {
		pthread_mutex_lock(&mutex);
		shared += thread_value;
		pthread_mutex_unlock(&mutex);
		__atomic_fetch_add(&atomic, i & 3, __ATOMIC_SEQ_CST);
	}
	return (void *)(long)thread_value;
}

static void threads(void)
{
	pthread_t thread[4];
	long total = 0;
	void *result;

	for (long i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, count, (void *)i);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &result);
		total += (long)result;
	}
	printf("threads %ld %ld %ld %d\n", shared, atomic, total, thread_value);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	signals++;
	siglongjmp(escape, info->si_addr == (void *)16 ? signal : -1);
}

static void on_signal(int signal)
{
	(void)signal;
	signals++;
}

static void faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct sigaction plain = {.sa_handler = on_signal};
	int caught = 0;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGUSR1, &plain, NULL);
	for (int i = 0; i < 100; i++) {
		int signal = sigsetjmp(escape, 1);

		if (signal) {
			caught += signal == SIGSEGV;
			continue;
		}
		*(volatile int *)16 = i;
	}
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	printf("faults %d, signals %d\n", caught, (int)signals);
	signal(SIGSEGV, SIG_DFL);
}

// mov eax, imm32; ret: written, run and rewritten on the same page
static void generated_code(void)
{
	unsigned char *code =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;

	if (code == MAP_FAILED) {
		printf("generated code: %s\n", strerror(errno));
		return;
	}
	code[0] = 0xb8;
	code[5] = 0xc3;
	for (int i = 0; i < 1000; i++) {
		memcpy(code + 1, &i, sizeof(i));
		sum += ((int (*)(void))code)();
	}
	munmap(code, 4096);
	printf("generated code %ld\n", sum);
}

static void processes(char **arguments)
{
	char answer[64] = "";
	int pipe_end[2], status;
	pid_t child;

	fflush(stdout);
	if (pipe(pipe_end) != 0 || (child = fork()) < 0)
		exit(1);
	if (child == 0) {
		if (write(pipe_end[1], "from the child", 14) != 14)
			_exit(1);
		abort();
	}
	if (read(pipe_end[0], answer, sizeof(answer) - 1) < 0)
		exit(1);
	waitpid(child, &status, 0);
	printf("child: %s, signal %d\n", answer, WTERMSIG(status));
	if ((child = vfork()) == 0) {
		execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	printf("exec: %d\n", WEXITSTATUS(status));
	for (int i = 1; arguments[i]; i++)
		printf("argument %d: %s\n", i, arguments[i]);
}

static double mean(int n, ...)
{
	double sum = 0;
	va_list list;

	va_start(list, n);
	for (int i = 0; i < n; i++)
		sum += va_arg(list, double);
	va_end(list);
	return sum / n;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void arithmetic(void)
{
	static int numbers[3000];
	double sum = 0;
	long double precise = 1;
	unsigned hash = 2166136261u;
	char text[100];

	for (int i = 0; i < 3000; i++)
		numbers[i] = i * 7919 % 3001;
	qsort(numbers, 3000, sizeof(*numbers), by_value);
	for (int i = 1; i < 3000; i++) {
		hash = (hash ^ numbers[i]) * 16777619;
		sum += sin(i) * exp(-i / 1000.0) + sqrt(i) + fma(i, 0.5, 1) + pow(i, 0.3) + atan2(i, 7);
		precise *= 1 + 1.0L / (i * (long double)i);
	}
	snprintf(text, sizeof(text), "%08x %.10g %.15Lg %a", hash, sum, precise, 1 / 3.0);
	printf("%s %zu %g %s\n", text, strlen(text), mean(3, 1.0, 2.0, 4.5), strstr(text, "0x"));
	printf("%lld %s\n", llround(sum), strtod("1e-310", NULL) > 0 ? "denormal" : "flushed");
}

int main(int argc, char **argv)
{
	struct timespec before, after;
	struct timespec pause = {0, 2000000};

	(void)argc;
	clock_gettime(CLOCK_MONOTONIC, &before);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_MONOTONIC, &after);
	if (after.tv_sec == before.tv_sec && after.tv_nsec - before.tv_nsec < pause.tv_nsec)
		printf("the clock goes wrong\n");
	arithmetic();
	threads();
	faults();
	generated_code();
	processes(argv);
	return 33;
}
