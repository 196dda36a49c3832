/*
 * A program under a seccomp filter that is attached to while it runs, for tests/attach.sh: filtered FILTER [HOW...]
 *
 *	list      as containers have it: a list of calls, all others fail
 *	tight     what its threads call and no more; all others kill
 *	several   tight, each thread its own filter, and two have none
 *	signals   tight, and rt_sigreturn is not permitted either
 *	strict    read, write, exit and rt_sigreturn, by the kernel's own list
 *
 * Its threads compute, lock, wait, fault, and make others, and check what they get. It ends when its standard input does: with
 * status 5; HOW makes it end by a fault (segv), by abort() (abort), or has it make no threads meanwhile (still).
 */
#include "../seccomp.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static atomic_bool stop;
static bool still, returns, handles;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t locked_sum, expected_sum;
static pthread_barrier_t ready;
static volatile uintptr_t nowhere = 8;

/* ---- filters ---- */

/* What the threads call; and main, at the end. */
static const int calls[] = {SYS_read, SYS_write, SYS_futex, SYS_exit, SYS_exit_group, SYS_clock_nanosleep, SYS_poll,
        SYS_rt_sigreturn};
static const int making[] = {SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_mmap, SYS_munmap, SYS_mprotect,
        SYS_madvise, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_restart_syscall, SYS_tgkill, SYS_gettid, SYS_getpid};

static void install(struct sock_filter *filter, unsigned count, unsigned flags)
{
	struct sock_fprog program = {(unsigned short)count, filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
		exit(SKIP_STATUS);
}

static unsigned begin_filter(struct sock_filter *filter)
{
	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	filter[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	filter[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[3] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	return 4;
}

static unsigned add(struct sock_filter *filter, unsigned at, const int *numbers, unsigned count, unsigned what)
{
	for (unsigned i = 0; i < count; i++) {
		filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
		filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
	}
	return at;
}

/* All that an ordinary program calls passes; the rest fails. */
static void restrict_as_container(void)
{
	static const int refused[] = {SYS_ptrace, SYS_mount, SYS_reboot, SYS_kexec_load, SYS_bpf, SYS_keyctl, SYS_swapon};
	struct sock_filter filter[64];
	unsigned at = add(filter, begin_filter(filter), refused, sizeof refused / sizeof *refused, SECCOMP_RET_ERRNO | EPERM);

	/* nothing that was not there yet when the list was made */
	filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_futex_waitv, 0, 1);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	install(filter, at, SECCOMP_FILTER_FLAG_TSYNC);
}

/* The calling thread and those it makes, or with SECCOMP_FILTER_FLAG_TSYNC all. */
static void restrict_tightly(unsigned flags)
{
	struct sock_filter filter[64];
	unsigned at = add(
	        filter, begin_filter(filter), calls, sizeof calls / sizeof *calls - !returns, SECCOMP_RET_ALLOW);

	if (!still)
		at = add(filter, at, making, sizeof making / sizeof *making, SECCOMP_RET_ALLOW);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	install(filter, at, flags);
}

/* ---- threads ---- */

static uint64_t mix_once(uint64_t x)
{
	return x * 6364136223846793005u + 1442695040888963407u;
}

static void *compute_twice(void *restricts)
{
	if (restricts)
		restrict_tightly(0);
	pthread_barrier_wait(&ready);
	while (!stop) {
		uint64_t a = 1, b = 1;
		for (unsigned i = 0; i < 5000; i++)
			a = mix_once(a);
		for (unsigned i = 0; i < 5000; i += 2)
			b = mix_once(mix_once(b));
		CHECK_EQ(a, b);
	}
	return NULL;
}

static void *lock_and_add(void *restricts)
{
	if (restricts)
		restrict_tightly(0);
	pthread_barrier_wait(&ready);
	for (uint64_t i = 0; !stop; i++) {
		pthread_mutex_lock(&mutex);
		locked_sum += i;
		expected_sum += i;
		CHECK_EQ(locked_sum, expected_sum);
		pthread_mutex_unlock(&mutex);
		if (i % 1000 == 0)
			CHECK_EQ(nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL), 0);
	}
	return NULL;
}

static void *wait_long(void *restricts)
{
	struct pollfd none = {.fd = -1};

	if (restricts)
		restrict_tightly(0);
	pthread_barrier_wait(&ready);
	while (!stop) {
		CHECK_EQ(nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL), 0);
		CHECK_EQ(poll(&none, 1, 20), 0);
	}
	return NULL;
}

/* Faults that the program handles, on a stack of its own. */
static volatile uint64_t faults;
static char *signal_stack;
#define STACK (1 << 16)

static void on_fault(int number, siginfo_t *info, void *context)
{
	char here;

	CHECK_EQ(number, SIGSEGV);
	CHECK(info->si_addr == (void *)16);
	CHECK(&here > signal_stack && &here < signal_stack + STACK);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3; /* mov (%rax), %rax */
	faults++;
}

static void *fault(void *restricts)
{
	signal_stack = malloc(STACK);
	CHECK_EQ(sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = STACK}, NULL), 0);
	if (restricts)
		restrict_tightly(0);
	pthread_barrier_wait(&ready);
	while (!stop) {
		uint64_t before = faults;
		if (handles) {
			asm volatile("movq (%%rax), %%rax" : : "a"(16) : "memory");
			CHECK_EQ(faults, before + 1);
		}
		CHECK_EQ(nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL), 0);
	}
	return NULL;
}

static void *short_lived(void *argument)
{
	return (void *)((uintptr_t)argument + 1);
}

static void *make_threads(void *restricts)
{
	if (restricts)
		restrict_tightly(0);
	pthread_barrier_wait(&ready);
	for (uintptr_t i = 0; !stop; i++) {
		pthread_t thread;
		void *result;
		CHECK_EQ(nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL), 0);
		if (still)
			continue;
		CHECK_EQ(pthread_create(&thread, NULL, short_lived, (void *)i), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK_EQ((uintptr_t)result, i + 1);
	}
	return NULL;
}

/* ---- the end ---- */

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], word) == 0)
			return true;
	}
	return false;
}

static void say(const char *text)
{
	CHECK_EQ(write(1, text, strlen(text)), (ssize_t)strlen(text));
}

int main(int argc, char **argv)
{
	void *(*const functions[])(void *) = {compute_twice, lock_and_add, lock_and_add, wait_long, fault, make_threads};
	enum { COUNT = sizeof functions / sizeof functions[0] };
	const char *filter = argc > 1 ? argv[1] : "list";
	bool several = !strcmp(filter, "several"), strict = !strcmp(filter, "strict");
	pthread_t threads[COUNT];
	char byte;

	still = has(argc, argv, "still");
	returns = strcmp(filter, "signals") != 0;
	handles = returns && !has(argc, argv, "segv");
	CHECK_EQ(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}), 0);
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	if (handles)
		CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	pthread_barrier_init(&ready, NULL, COUNT + 1);
	for (unsigned i = 0; i < COUNT && !strict; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, functions[i], several && i ? &ready : NULL), 0);
	if (!strict)
		pthread_barrier_wait(&ready);
	if (!strcmp(filter, "list"))
		restrict_as_container();
	if (!strcmp(filter, "tight") || !returns)
		restrict_tightly(SECCOMP_FILTER_FLAG_TSYNC);
	if (strict && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return SKIP_STATUS;
	say("ready\n");
	while (read(0, &byte, 1) > 0)
		;
	if (strict)
		syscall(SYS_exit, 5);
	stop = !still; /* the end of a thread takes more calls */
	for (unsigned i = 0; i < COUNT && stop; i++)
		pthread_join(threads[i], NULL);
	if (has(argc, argv, "segv"))
		*(volatile char *)nowhere = 1;
	if (has(argc, argv, "abort"))
		abort();
	say("done\n");
	syscall(SYS_exit_group, 5);
}
