/*
 * Execution where it is not allowed: pages without PROT_EXEC, pages that lose it after running, unmapped
 * pages, instructions that run off the end of the mapping or cross into a page that is not there; the fault
 * has the right address and code, and the program goes on once the page is there.
 */
#include "emit.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE 4096ul

static sigjmp_buf back;
static volatile uint64_t address, pc;
static uint8_t *volatile map_on_fault;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	address = (uint64_t)info->si_addr;
	pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (map_on_fault) {
		CHECK(!mprotect(map_on_fault, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
		map_on_fault = NULL;
		return;
	}
	siglongjmp(back, info->si_code);
}

static int code_of(uint8_t *at, int argument)
{
	int code = sigsetjmp(back, 1);
	if (!code)
		call(at, argument);
	return code;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	uint8_t *page = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	memset(page, 0x90, 4 * PAGE);
	emit_constant(page, 12);

	CHECK_EQ(code_of(page, 0), SEGV_ACCERR);
	CHECK_EQ(address, page);
	CHECK_EQ(pc, page);
	CHECK(!mprotect(page, PAGE, PROT_READ | PROT_EXEC));
	for (int i = 0; i < 100; i++)
		CHECK_EQ(call(page, 0), 12);
	CHECK(!mprotect(page, PAGE, PROT_READ));
	CHECK_EQ(code_of(page, 0), SEGV_ACCERR);
	CHECK_EQ(pc, page);
	CHECK(!mprotect(page, PAGE, PROT_NONE));
	CHECK_EQ(code_of(page, 0), SEGV_ACCERR);
	CHECK(!mprotect(page, PAGE, PROT_EXEC)); /* execute only */
	CHECK_EQ(call(page, 0), 12);
	CHECK(!mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	CHECK_EQ(call(page, 0), 12);
	puts("permissions");

	/* Runs off the end: nops up to the edge. */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(code_of(page + PAGE - 16, 0), SEGV_ACCERR);
		CHECK_EQ(address, page + PAGE);
		CHECK_EQ(pc, page + PAGE);
	}
	/* An instruction across the edge: pc at its start, address at the edge. */
	emit_constant(page + PAGE - 3, 99);
	CHECK_EQ(code_of(page + PAGE - 3, 0), SEGV_ACCERR);
	CHECK_EQ(address, page + PAGE);
	CHECK_EQ(pc, page + PAGE - 3);
	/* with nops before it in the same block */
	CHECK_EQ(code_of(page + PAGE - 20, 0), SEGV_ACCERR);
	CHECK_EQ(pc, page + PAGE - 3);
	map_on_fault = page + PAGE;
	CHECK_EQ(call(page + PAGE - 20, 0), 99);
	CHECK(map_on_fault == NULL);
	puts("the edge");

	/* A block whose second half is not there is only a fault when it gets there. */
	uint8_t *last = page + 2 * PAGE;
	CHECK(!mprotect(last, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	uint8_t test_and_return[] = {
	        0x85, 0xff, 0x75, 0x03, 0x31, 0xc0, 0xc3}; /* test edi; jnz +3; xor eax; ret */
	memcpy(last + PAGE - sizeof test_and_return, test_and_return, sizeof test_and_return);
	CHECK(!mprotect(last + PAGE, PAGE, PROT_NONE));
	CHECK_EQ(call(last + PAGE - sizeof test_and_return, 0), 0);
	CHECK_EQ(code_of(last + PAGE - sizeof test_and_return, 1), SEGV_ACCERR);
	CHECK_EQ(pc, last + PAGE);
	CHECK_EQ(call(last + PAGE - sizeof test_and_return, 0), 0);

	CHECK(!munmap(page, PAGE));
	CHECK_EQ(code_of(page, 0), SEGV_MAPERR);
	CHECK_EQ(code_of(NULL, 0), SEGV_MAPERR);
	CHECK_EQ(pc, 0);
	puts("unmapped");
	return done();
}
