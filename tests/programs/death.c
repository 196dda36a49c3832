/* cases: segv segv-core store-readonly jump fpe ill trap bus abort abort-core assert term kill usr1 */
/* cases: rt hup-thread segv-thread exit-3 exit-thread stack-overflow segv-blocked kill-blocked-segv */
/* cases: hlt double-fault uncaught-pipe cpu-limit file-limit alarm quick-exit */
/* expect: any */
/*
 * The program itself dies, in many ways: the status bugnet passes on is the program's own, core flag
 * included. The cases ending in -core raise RLIMIT_CORE.
 */
#include "check.h"
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void segv(void)
{
	volatile int *volatile bad = (volatile int *)8;
	*bad = 1;
}

static void jump(void)
{
	void (*volatile bad)(void) = (void (*)(void))0x1000;
	bad();
}

static unsigned long __attribute__((noinline)) recurse(unsigned long n)
{
	volatile char frame[5000];
	frame[n % sizeof frame] = (char)n;
	return recurse(n + 1) + (unsigned char)frame[n % sizeof frame];
}

static void *thread_segv(void *arg)
{
	(void)arg;
	segv();
	return NULL;
}

static void *thread_exit(void *arg)
{
	(void)arg;
	exit(5);
}

static void *thread_hup(void *arg)
{
	(void)arg;
	raise(SIGHUP);
	return NULL;
}

static void again(int sig)
{
	(void)sig;
	jump();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	printf("about to die: %s\n", how);
	fflush(stdout);
	if (strstr(how, "-core")) {
		struct rlimit core;
		CHECK(!getrlimit(RLIMIT_CORE, &core));
		core.rlim_cur = core.rlim_max;
		CHECK(!setrlimit(RLIMIT_CORE, &core));
	}
	if (!strcmp(how, "segv") || !strcmp(how, "segv-core"))
		segv();
	else if (!strcmp(how, "store-readonly"))
		*(volatile char *)(uintptr_t) "literal" = 1;
	else if (!strcmp(how, "jump"))
		jump();
	else if (!strcmp(how, "fpe"))
		asm volatile("xorl %%ecx, %%ecx; divl %%ecx" : : : "eax", "ecx", "edx", "cc");
	else if (!strcmp(how, "ill"))
		asm volatile("ud2");
	else if (!strcmp(how, "trap"))
		asm volatile("int3");
	else if (!strcmp(how, "hlt"))
		asm volatile("hlt");
	else if (!strcmp(how, "bus")) {
		int fd = open("empty", O_CREAT | O_RDWR, 0600);
		volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		CHECK(page != MAP_FAILED);
		printf("%d\n", page[10]);
	} else if (!strcmp(how, "abort") || !strcmp(how, "abort-core"))
		abort();
	else if (!strcmp(how, "assert")) {
		volatile int false_value = 0;
		assert(false_value);
	} else if (!strcmp(how, "term"))
		kill(getpid(), SIGTERM);
	else if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	else if (!strcmp(how, "usr1"))
		raise(SIGUSR1);
	else if (!strcmp(how, "rt"))
		raise(SIGRTMAX);
	else if (!strcmp(how, "hup-thread")) {
		CHECK(!pthread_create(&thread, NULL, thread_hup, NULL));
		for (;;)
			pause();
	} else if (!strcmp(how, "segv-thread")) {
		CHECK(!pthread_create(&thread, NULL, thread_segv, NULL));
		for (;;)
			compute(1, 1000);
	} else if (!strcmp(how, "exit-3"))
		return 3;
	else if (!strcmp(how, "exit-thread")) {
		CHECK(!pthread_create(&thread, NULL, thread_exit, NULL));
		for (;;)
			compute(1, 1000);
	} else if (!strcmp(how, "stack-overflow"))
		recurse(1);
	else if (!strcmp(how, "segv-blocked")) {
		sigset_t set;
		sigfillset(&set);
		sigprocmask(SIG_SETMASK, &set, NULL);
		segv();
	} else if (!strcmp(how, "kill-blocked-segv")) {
		sigset_t set, old;
		sigfillset(&set);
		sigprocmask(SIG_SETMASK, &set, &old);
		kill(getpid(), SIGSEGV);
		puts("still there");
		fflush(stdout);
		sigprocmask(SIG_SETMASK, &old, NULL);
	} else if (!strcmp(how, "double-fault")) {
		signal(SIGSEGV, again);
		segv();
	} else if (!strcmp(how, "uncaught-pipe")) {
		int fds[2];
		CHECK(!pipe(fds));
		close(fds[0]);
		if (write(fds[1], "x", 1) < 0)
			puts("no SIGPIPE");
	} else if (!strcmp(how, "cpu-limit")) {
		struct rlimit limit = {1, 1};
		CHECK(!setrlimit(RLIMIT_CPU, &limit));
		for (;;)
			compute(1, 1000);
	} else if (!strcmp(how, "file-limit")) {
		struct rlimit limit = {100, 100};
		CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
		int fd = open("file", O_CREAT | O_RDWR, 0600);
		static char block[1000];
		for (int i = 0; i < 10; i++)
			if (write(fd, block, sizeof block) < 0)
				break;
	} else if (!strcmp(how, "alarm")) {
		alarm(1);
		for (;;)
			compute(1, 1000);
	} else if (!strcmp(how, "quick-exit"))
		quick_exit(9);
	fail("alive after %s", how);
}
