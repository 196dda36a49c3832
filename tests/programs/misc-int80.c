/* int $0x80 in a 64-bit program: the 32-bit system calls where the kernel has them, SIGSEGV where not; as
 * natively. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;

static void handler(int sig)
{
	siglongjmp(back, sig);
}

int main(void)
{
	signal(SIGSEGV, handler);
	int sig = sigsetjmp(back, 1);
	if (sig) {
		printf("signal %d\n", sig);
		return done();
	}
	for (int i = 0; i < 100; i++) {
		uint64_t rax = 20, rbx = 0x1234; /* getpid */
		register uint64_t r12 asm("r12") = 0x1122334455667788;
		asm volatile("int $0x80"
		             : "+a"(rax), "+b"(rbx), "+r"(r12)
		             :
		             : "memory", "r8", "r9", "r10", "r11");
		CHECK_EQ(rax, getpid());
		CHECK_EQ(rbx, 0x1234);
		CHECK_EQ(r12, 0x1122334455667788);
		rax = 6; /* close */
		rbx = 0xffffffff;
		asm volatile("int $0x80" : "+a"(rax), "+b"(rbx) : : "memory", "r8", "r9", "r10", "r11");
		CHECK_EQ((int)rax, -EBADF);
	}
	puts("works");
	return done();
}
