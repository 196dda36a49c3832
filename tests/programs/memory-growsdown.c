/*
 * MAP_GROWSDOWN memory and the main stack grow by touching below them, up to the limit and the guard gap;
 * then SIGSEGV comes on the alternate stack. Guard pages of threads are where pthread says.
 */
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE 4096ul

static sigjmp_buf back;
static volatile uint64_t fault_address;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	fault_address = (uint64_t)info->si_addr;
	siglongjmp(back, info->si_code);
}

static void *thread(void *arg)
{
	pthread_attr_t attr;
	void *stack;
	size_t size, guard;
	char *alternate = arg;
	stack_t alternate_stack = {.ss_sp = alternate, .ss_size = 65536};

	CHECK(!sigaltstack(&alternate_stack, NULL));
	CHECK(!pthread_getattr_np(pthread_self(), &attr));
	CHECK(!pthread_attr_getstack(&attr, &stack, &size));
	CHECK(!pthread_attr_getguardsize(&attr, &guard));
	CHECK_EQ(size, 1 << 20);
	CHECK_EQ(guard, 8 * PAGE);
	CHECK(!pthread_attr_destroy(&attr));
	char local;
	CHECK(&local > (char *)stack && &local < (char *)stack + size);
	/* what getstack reports includes the guard in some versions: find the edge by faulting downwards */
	for (volatile char *page = (char *)((uint64_t)&local & ~(PAGE - 1));; page -= PAGE) {
		int code = sigsetjmp(back, 1);
		if (code) {
			CHECK_EQ(code, SEGV_ACCERR);
			CHECK_EQ(fault_address, page);
			CHECK(page >= (char *)stack - 8 * PAGE && page < (char *)stack + 8 * PAGE);
			break;
		}
		*page = 1;
	}
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	static char alternate[2][65536];
	stack_t stack = {.ss_sp = alternate[0], .ss_size = 65536};
	CHECK(!sigaltstack(&stack, NULL));
	CHECK(!sigaction(SIGSEGV, &action, NULL));

	/* Room below, then a growing mapping at the top of it. */
	size_t room = 64ul << 20;
	char *area = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(area != MAP_FAILED);
	CHECK(!munmap(area, room));
	char *top = mmap(area + room - 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	CHECK_EQ(top, area + room - 4 * PAGE);
	volatile int grown = 0;
	for (volatile char *page = top; page > area + (8ul << 20) && grown < 1000; page -= PAGE) {
		int code = sigsetjmp(back, 1);
		if (code)
			fail("did not grow after %d pages", grown);
		*page = 1;
		grown++;
	}
	CHECK_EQ(grown, 1000);
	CHECK(!munmap(top - 1000 * PAGE, 1004 * PAGE));

	/* The main stack: 6 of its 8 MB by touching pages downwards in order. */
	struct rlimit limit;
	CHECK(!getrlimit(RLIMIT_STACK, &limit));
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 64ul << 20) {
		limit.rlim_cur = 8ul << 20;
		CHECK(!setrlimit(RLIMIT_STACK, &limit));
	}
	char here;
	volatile unsigned long touched = 0;
	for (volatile char *page = &here;; page -= PAGE) {
		int code = sigsetjmp(back, 1);
		if (code) {
			CHECK_EQ(code, SEGV_MAPERR);
			CHECK_EQ(fault_address, page);
			break;
		}
		*page = 1;
		touched++;
	}
	CHECK(touched * PAGE > limit.rlim_cur / 2 && touched * PAGE <= limit.rlim_cur);

	pthread_attr_t attr;
	pthread_t id;
	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 1 << 20));
	CHECK(!pthread_attr_setguardsize(&attr, 8 * PAGE));
	CHECK(!pthread_create(&id, &attr, thread, alternate[1]));
	CHECK(!pthread_join(id, NULL));
	return done();
}
