/*
 * A program that is attached to while it runs, for tests/attach.sh. It has threads in every kind of place and checks
 * all the time that nothing of what it does is lost or changed. It ends when its standard input does, or with the signal
 * that the argument says. With the argument "plain" none of its threads writes code.
 */
#include "../check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

static atomic_bool stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t locked_sum, expected_sum;
static _Thread_local uint64_t own;

static uint64_t mix_once(uint64_t x)
{
	return x * 6364136223846793005u + 1442695040888963407u;
}

/* Computes the same thing twice, in different ways. */
static void *compute_twice(void *unused)
{
	while (!stop) {
		uint64_t a = 1, b = 1;
		for (unsigned i = 0; i < 5000; i++)
			a = mix_once(a);
		for (unsigned i = 0; i < 5000; i += 2)
			b = mix_once(mix_once(b));
		CHECK_EQ(a, b);
		CHECK_EQ(own, 0);
	}
	return unused;
}

static void *lock_and_add(void *unused)
{
	for (uint64_t i = 0; !stop; i++) {
		pthread_mutex_lock(&mutex);
		locked_sum += i;
		expected_sum += i;
		CHECK_EQ(locked_sum, expected_sum);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

/* A byte goes round and round: none gets lost. */
static int pair[2];

static void *echo(void *unused)
{
	char byte;

	while (read(pair[1], &byte, 1) == 1) {
		byte++;
		CHECK_EQ(write(pair[1], &byte, 1), 1);
	}
	return unused;
}

static void *ask(void *unused)
{
	char byte, answer;

	for (unsigned i = 0; !stop; i++) {
		byte = (char)i;
		CHECK_EQ(write(pair[0], &byte, 1), 1);
		CHECK_EQ(read(pair[0], &answer, 1), 1);
		CHECK_EQ((char)(byte + 1), answer);
	}
	shutdown(pair[0], SHUT_RDWR);
	return unused;
}

/* Waits that end by themselves only. */
static void *wait_long(void *unused)
{
	struct pollfd none = {.fd = -1};

	while (!stop) {
		struct timespec pause = {0, 20000000};
		CHECK_EQ(nanosleep(&pause, NULL), 0);
		CHECK_EQ(poll(&none, 1, 20), 0);
	}
	return unused;
}

/* Queued signals come one by one, each with its number, on a stack of their own. */
static volatile uint32_t signals_seen;
static char *signal_stack;

static void on_signal(int number, siginfo_t *info, void *unused)
{
	char here;

	CHECK_EQ(number, SIGRTMIN + 1);
	CHECK_EQ((uint32_t)info->si_value.sival_int, signals_seen);
	CHECK(&here > signal_stack && &here < signal_stack + (1 << 16));
	signals_seen++;
	(void)unused;
}

static void *signal_self(void *unused)
{
	sigset_t set;

	signal_stack = malloc(1 << 16);
	CHECK_EQ(sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = 1 << 16}, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	while (!stop) {
		uint32_t before = signals_seen;
		CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 1, (union sigval){.sival_int = (int)before}), 0);
		CHECK_EQ(signals_seen, before + 1);
		sched_yield();
	}
	return unused;
}

/* Faults that the program handles. */
static volatile uint64_t faults;
static char *guarded;

static void on_fault(int number, siginfo_t *info, void *unused)
{
	CHECK_EQ(number, SIGSEGV);
	CHECK(info->si_addr == guarded);
	faults++;
	mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
	(void)unused;
}

static void *fault(void *unused)
{
	while (!stop) {
		uint64_t before = faults;
		CHECK_EQ(mprotect(guarded, 4096, PROT_NONE), 0);
		*(volatile char *)guarded = 1;
		CHECK_EQ(faults, before + 1);
		usleep(1000);
	}
	return unused;
}

/* Code that is written, called and written again. */
static void *write_code(void *unused)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(code != MAP_FAILED);
	for (uint32_t i = 0; !stop; i++) {
		code[0] = 0xb8; /* mov eax, i; ret */
		memcpy(code + 1, &i, 4);
		code[5] = 0xc3;
		CHECK_EQ(((uint32_t(*)(void))(void *)code)(), i);
		if (i % 64 == 0)
			usleep(500);
	}
	return unused;
}

/* Threads come and go. */
static void *short_lived(void *argument)
{
	own = (uintptr_t)argument;
	return (void *)(own + 1);
}

static void *make_threads(void *unused)
{
	for (uintptr_t i = 0; !stop; i++) {
		pthread_t thread;
		void *result;
		CHECK_EQ(pthread_create(&thread, NULL, short_lived, (void *)i), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK_EQ((uintptr_t)result, i + 1);
		usleep(2000);
	}
	return unused;
}

static bool all_did_something(void)
{
	pthread_mutex_lock(&mutex);
	bool added = expected_sum > 0;
	pthread_mutex_unlock(&mutex);
	return signals_seen > 0 && faults > 0 && added;
}

int main(int argc, char **argv)
{
	void *(*const functions[])(void *) = {compute_twice, lock_and_add, lock_and_add, echo, ask, wait_long, signal_self,
	        fault, write_code, make_threads};
	enum { COUNT = sizeof functions / sizeof functions[0] };
	pthread_t threads[COUNT];
	bool plain = argc > 1 && strcmp(argv[1], "plain") == 0;
	sigset_t set;
	char byte;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	CHECK_EQ(sigaction(SIGRTMIN + 1, &action, NULL), 0);
	action = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	guarded = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(guarded != MAP_FAILED);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL,
		                 plain && functions[i] == write_code ? compute_twice : functions[i], NULL),
		        0);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	while (!all_did_something()) /* however early the end is told */
		usleep(1000);
	stop = true;
	for (unsigned i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	fflush(stdout);
	if (argc > 1 && !plain)
		raise(atoi(argv[1]));
	return 5;
}
