/*
 * A rep instruction that faults in the middle: the context shows how far it came, the handler makes the page
 * accessible, and the instruction goes on from there. Both directions, all sizes, overlapping moves, count
 * zero. One that cannot be handled because the signal is blocked: how far it came.
 */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#define PAGE 4096u

static uint8_t *area;
static int faults;
static uint64_t seen_rcx, seen_rsi, seen_rdi, seen_address;

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	(void)sig;
	if (faults++ == 0) {
		seen_rcx = (uint64_t)m->gregs[REG_RCX];
		seen_rsi = (uint64_t)m->gregs[REG_RSI];
		seen_rdi = (uint64_t)m->gregs[REG_RDI];
		seen_address = (uint64_t)info->si_addr;
	}
	CHECK(faults < 5);
	void *page = (void *)((uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1));
	CHECK(!mprotect(page, PAGE, PROT_READ | PROT_WRITE));
}

#define RUN(instruction)                                                                                     \
	asm volatile(instruction : "+c"(rcx), "+S"(rsi), "+D"(rdi), "+a"(rax)::"memory", "cc")

/* Page 1 of four is the one that faults (page 0 and 1 going down). */
static void start(void)
{
	CHECK(!mprotect(area, 8 * PAGE, PROT_READ | PROT_WRITE));
	for (unsigned i = 0; i < 8 * PAGE; i++)
		area[i] = (uint8_t)(i * 7 + i % (4 * PAGE) / 256);
	faults = 0;
	seen_rcx = seen_rsi = seen_rdi = seen_address = ~0ull;
}

static void show(const char *name, uint64_t rcx, uint64_t rsi, uint64_t rdi)
{
	uint64_t sum = 0;
	int count = faults;
	CHECK(!mprotect(area, 8 * PAGE, PROT_READ | PROT_WRITE));
	for (unsigned i = 0; i < 8 * PAGE; i++)
		sum = mix(sum, area[i]);
	printf("%s: %d faults", name, count);
	if (count)
		printf(", first at %llu with rcx %llu rsi %lld rdi %lld",
		        (long long)(seen_address - (uint64_t)area), (long long)seen_rcx,
		        (long long)(seen_rsi - (uint64_t)area), (long long)(seen_rdi - (uint64_t)area));
	printf("; after: rcx %llu rsi %lld rdi %lld, sum %llx\n", (long long)rcx,
	        (long long)(rsi - (uint64_t)area), (long long)(rdi - (uint64_t)area), (long long)sum);
}

#define CASE(name, protect, protection, instruction, count, source, destination, accumulator)                \
	do {                                                                                                 \
		start();                                                                                     \
		CHECK(!mprotect(area + (protect)*PAGE, PAGE, protection));                                   \
		uint64_t rcx = count, rsi = (uint64_t)area + (source), rdi = (uint64_t)area + (destination), \
		         rax = accumulator;                                                                  \
		RUN(instruction);                                                                            \
		show(name, rcx, rsi, rdi);                                                                   \
	} while (0)

/* Page 1 of the source, or of the destination, is not there. */
static void die_blocked(const char *name, unsigned missing, int down)
{
	uint8_t *shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	for (unsigned i = 0; i < 4 * PAGE; i++)
		shared[i] = (uint8_t)(i * 5 + i / 256);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sigset_t all;
		sigfillset(&all);
		CHECK(!sigprocmask(SIG_BLOCK, &all, NULL));
		CHECK(!munmap(shared + missing * PAGE, PAGE));
		uint64_t rcx = 3 * PAGE, rsi = (uint64_t)shared + 300, rdi = (uint64_t)shared + 4 * PAGE + 77,
		         rax = 0;
		if (down) {
			rsi += rcx - 1;
			rdi += rcx - 1;
			RUN("std; rep movsb; cld");
		} else {
			RUN("rep movsb");
		}
		_exit(3);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	uint64_t sum = 0, copied = 0;
	for (unsigned i = 4 * PAGE; i < 8 * PAGE; i++) {
		sum = mix(sum, shared[i]);
		copied += shared[i] != 0;
	}
	printf("%s: signal %d, %llu bytes, sum %llx\n", name, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	        (long long)copied, (long long)sum);
	CHECK(!munmap(shared, 8 * PAGE));
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	area = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);

	CASE("stosb", 5, PROT_READ, "rep stosb", 2 * PAGE, 0, 4 * PAGE + 100, 0x5a);
	CASE("stosq", 5, PROT_NONE, "rep stosq", 800, 0, 4 * PAGE + 64, 0x1122334455667788);
	CASE("stosq crossing", 5, PROT_NONE, "rep stosq", 800, 0, 4 * PAGE + 61, 0x1122334455667788);
	CASE("stosl down", 4, PROT_READ, "std; rep stosl; cld", 1500, 0, 5 * PAGE + 2000, 0xabcdef01);
	CASE("movsb read", 1, PROT_NONE, "rep movsb", 5000, 200, 4 * PAGE + 10, 0);
	CASE("movsb write", 5, PROT_READ, "rep movsb", 5000, 200, 4 * PAGE + 10, 0);
	CASE("movsq read", 1, PROT_NONE, "rep movsq", 900, 24, 4 * PAGE + 48, 0);
	CASE("movsw down", 1, PROT_NONE, "std; rep movsw; cld", 3000, 2 * PAGE + 1000, 6 * PAGE + 1000, 0);
	CASE("movsb overlap forward", 1, PROT_READ, "rep movsb", 5000, 100, 103, 0);
	CASE("movsq overlap down", 1, PROT_READ, "std; rep movsq; cld", 800, 2 * PAGE - 8, 2 * PAGE, 0);
	CASE("lodsb", 1, PROT_NONE, "rep lodsb", 5000, 7, 0, 0);
	CASE("scasb", 1, PROT_NONE, "repne scasb", 3, 0, PAGE - 1, 0x1ff);
	CASE("cmpsb", 5, PROT_NONE, "repe cmpsb", 5000, 100, 4 * PAGE + 100, 0);
	CASE("count zero", 1, PROT_NONE, "rep movsb", 0, PAGE, PAGE, 0);
	CASE("count zero stos", 1, PROT_NONE, "rep stosq", 0, PAGE, PAGE, 0);

	fflush(stdout);
	die_blocked("blocked, source", 1, 0);
	die_blocked("blocked, source, down", 1, 1);
	die_blocked("blocked, destination", 5, 0);

	/* A large one, interrupted by page faults of the kernel's own (fresh memory). */
	size_t size = 64 << 20;
	uint8_t *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(fresh != MAP_FAILED);
	uint64_t rcx = size / 8, rdi = (uint64_t)fresh, rsi = 0, rax = 0x0101010101010101u;
	RUN("rep stosq");
	CHECK_EQ(rdi, fresh + size);
	for (size_t i = 0; i < size; i += 4093)
		CHECK_EQ(fresh[i], 1);
	return done();
}
