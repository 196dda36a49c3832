/* Far calls, jumps and returns to segments that do not exist fault, and the handler runs on the program's stack. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf before;
static char *main_stack;
static int seen;

static void handler(int number, siginfo_t *info, void *context)
{
	char here;

	(void)context;
	CHECK_EQ(number, SIGSEGV);
	printf("code %d\n", info->si_code); /* some selectors are as good as the right one: then the target faults */
	CHECK(main_stack - &here > 0 && main_stack - &here < 65536);
	seen++;
	siglongjmp(before, 1);
}

static void far_call(uint16_t selector)
{
	struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = {0x1000, selector};

	if (!sigsetjmp(before, 1))
		__asm__ volatile("lcall *%0" : : "m"(target) : "memory");
}

static void far_jump(uint16_t selector)
{
	struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = {0x1000, selector};

	if (!sigsetjmp(before, 1))
		__asm__ volatile("ljmp *%0" : : "m"(target) : "memory");
}

static void far_return(uint64_t selector)
{
	if (!sigsetjmp(before, 1))
		__asm__ volatile("push %0; push $0x1000; lretq" : : "r"(selector) : "memory");
}

int main(void)
{
	static const uint16_t selectors[] = {0x5a58, 0x08, 0x2b, 0x30, 0x3b, 0};
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	char here;
	int expected = 0;

	main_stack = &here;
	CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	for (unsigned i = 0; i < sizeof selectors / sizeof *selectors; i++) {
		far_call(selectors[i]);
		far_jump(selectors[i]);
		far_return(selectors[i]);
		expected += 3;
		CHECK_EQ(seen, expected);
	}
	return done();
}
