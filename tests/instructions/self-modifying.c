/* Code that changes: its own next instruction, in a loop, on a page with data, through a second mapping, by
 * the kernel. */
#include "instruction.h"
#include <pthread.h>

/* mov eax, imm32; ret */
static void write_function(unsigned char *at, uint32_t value)
{
	at[0] = 0xb8;
	memcpy(at + 1, &value, 4);
	at[5] = 0xc3;
}

static void in_place(unsigned char *code)
{
	for (uint32_t n = 0; n < 3000; n++) {
		write_function(code + 100, n * 7);
		CHECK_EQ(call(code + 100, 0, 0, 0, 0), n * 7);
	}
	/* Only the immediate, unaligned and in parts. */
	for (uint32_t n = 0; n < 1000; n++) {
		code[101 + n % 4] = (unsigned char)n;
		uint32_t value;
		memcpy(&value, code + 101, 4);
		CHECK_EQ(call(code + 100, 0, 0, 0, 0), value);
	}
	/* Data beside code changes all the time; the code stays. */
	uint64_t *data = (uint64_t *)(code + 2048);
	for (uint32_t n = 0; n < 3000; n++) {
		*data += n;
		CHECK(call(code + 100, 0, 0, 0, 0) < 1ull << 32);
	}
	printf("in place: right\n");
}

static void next_instruction(unsigned char *code)
{
	/* mov dword [rip + 1], 0x12345678; mov eax, 0; ret */
	static const unsigned char ahead[] = {
	        0xc7, 0x05, 1, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0xb8, 0, 0, 0, 0, 0xc3};
	for (unsigned n = 0; n < 100; n++) {
		memcpy(code + 300, ahead, sizeof ahead);
		CHECK_EQ(call(code + 300, 0, 0, 0, 0), 0x12345678);
		CHECK_EQ(call(code + 300, 0, 0, 0, 0), 0x12345678);
	}
	/* xor eax, eax; mov ecx, 10; l: add eax, 1; inc byte [l + 2]; loop l; ret: adds 1 + 2 + ... + 10 */
	static const unsigned char changing_loop[] = {0x31, 0xc0, 0xb9, 10, 0, 0, 0, 0x83, 0xc0, 1, 0xfe,
	        0x05, 0xf9, 0xff, 0xff, 0xff, 0xe2, 0xf5, 0xc3};
	for (unsigned n = 0; n < 100; n++) {
		memcpy(code + 400, changing_loop, sizeof changing_loop);
		CHECK_EQ(call(code + 400, 0, 0, 0, 0), 55);
	}
	printf("next instruction: right\n");
}

/* add rdi, first; nop; nop; lea eax, [rdi+second]; ret */
static void write_sum(unsigned char *code, unsigned char first, unsigned char second)
{
	const unsigned char sum[] = {0x48, 0x83, 0xc7, first, 0x90, 0x90, 0x8d, 0x47, second, 0xc3};

	CHECK(mprotect(code, PAGE, PROT_READ | PROT_WRITE) == 0);
	memcpy(code, sum, sizeof sum);
	CHECK(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
}

/* The second half is entered by itself, is another for a while, and is then entered from another first half. */
static void comes_back(unsigned char *code)
{
	for (unsigned char n = 0; n < 30; n++) {
		write_sum(code, 5, 7);
		CHECK_EQ(call(code + 6, 1, 0, 0, 0), 8);
		write_sum(code, n, 40 + n);
		CHECK_EQ(call(code, 1, 0, 0, 0), 41u + 2 * n);
		write_sum(code, 50 + n, 7);
		CHECK_EQ(call(code, 1, 0, 0, 0), 58u + n);
	}
	printf("comes back: right\n");
}

/*
 * rep movsb overwrites itself with what is no instruction and goes on, until its source ends: the fault is that of
 * the instruction that is no longer there.
 */
static void over_itself(unsigned char *code, unsigned char *to, unsigned at)
{
	static const unsigned char copy[] = {0x48, 0x89, 0xd1, 0xf3, 0xa4, 0xc3}; /* mov rcx, rdx; rep movsb; ret */
	unsigned char *source = guarded("source", 2), *end = source + 2 * PAGE;
	unsigned size = (unsigned)(code + at + 200 - to);

	for (unsigned n = 0; n < 3; n++) {
		memcpy(code + at, copy, sizeof copy);
		memset(end - size, n == 0 ? 0x06 : n == 1 ? 0x90 : 0xc3, size); /* no instruction, nop, ret */
		CHECK(faults(code + at, ADDRESS(to), ADDRESS(end - size), size + 50, 0));
		show_fault("over itself");
		CHECK_EQ(caught.signal, SIGSEGV);
		CHECK_EQ(caught.pc, ADDRESS(code + at + 3));
		CHECK_EQ(caught.registers[REG_RCX], 50);
		CHECK_EQ(caught.registers[REG_RSI], ADDRESS(end));
		CHECK_EQ(caught.registers[REG_RDI], ADDRESS(to) + size);
		CHECK(memcmp(to, end - size, size) == 0);
	}
}

static void protections(unsigned char *code)
{
	for (uint32_t n = 0; n < 300; n++) {
		CHECK(mprotect(code, PAGE, PROT_READ | PROT_WRITE) == 0);
		write_function(code, n);
		CHECK(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
		CHECK_EQ(call(code, 0, 0, 0, 0), n);
	}
	/* The same address with other memory. */
	for (uint32_t n = 0; n < 100; n++) {
		CHECK(mmap(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == code);
		write_function(code, n + 5000);
		CHECK_EQ(call(code, 0, 0, 0, 0), n + 5000);
	}
	printf("protections: right\n");
}

static void two_views(void)
{
	int fd = memfd_create("code", 0);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)PAGE) == 0);
	unsigned char *write_view = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char *run_view = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(write_view != MAP_FAILED && run_view != MAP_FAILED);
	for (uint32_t n = 0; n < 300; n++) {
		write_function(write_view + 64, n);
		CHECK_EQ(call(run_view + 64, 0, 0, 0, 0), n);
	}
	/* By the kernel, through the file. */
	for (uint32_t n = 0; n < 300; n++) {
		unsigned char function[6];
		write_function(function, n + 1000);
		CHECK(pwrite(fd, function, 6, 64) == 6);
		CHECK_EQ(call(run_view + 64, 0, 0, 0, 0), n + 1000);
	}
	printf("two views: right\n");
}

static void by_the_kernel(unsigned char *code)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	for (uint32_t n = 0; n < 300; n++) {
		unsigned char function[6];
		write_function(function, n + 2000);
		CHECK(write(pipes[1], function, 6) == 6);
		CHECK(read(pipes[0], code + 700, 6) == 6);
		CHECK_EQ(call(code + 700, 0, 0, 0, 0), n + 2000);
	}
	printf("by read: right\n");
}

static unsigned char *shared_code;
static volatile uint32_t wanted, answered;

static void *other_thread(void *argument)
{
	(void)argument;
	for (uint32_t n = 1; n <= 200; n++) {
		write_function(shared_code + 900, n * 3);
		__atomic_store_n(&wanted, n, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&answered, __ATOMIC_SEQ_CST) != n)
			sched_yield();
	}
	return NULL;
}

static void by_another_thread(unsigned char *code)
{
	pthread_t thread;
	shared_code = code;
	CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	for (uint32_t n = 1; n <= 200; n++) {
		while (__atomic_load_n(&wanted, __ATOMIC_SEQ_CST) != n)
			sched_yield();
		unsigned a, b, c, d; /* a serialising instruction, as the manual asks for */
		__asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0) : "memory");
		CHECK_EQ(call(code + 900, 0, 0, 0, 0), n * 3);
		__atomic_store_n(&answered, n, __ATOMIC_SEQ_CST);
	}
	pthread_join(thread, NULL);
	printf("by another thread: right\n");
}

int main(void)
{
	unsigned char *code =
	        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(code != MAP_FAILED);
	catch_faults();
	name_range("code", code, 2 * PAGE);
	in_place(code);
	next_instruction(code);
	by_the_kernel(code);
	by_another_thread(code);
	two_views();
	protections(code + PAGE);
	comes_back(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	over_itself(code, code + 1000, 1200);
	over_itself(code + PAGE, code + PAGE - 100, 1200); /* from another page on */
	printf("over itself: right\n");
	/* The program reads its own code as it wrote it. */
	CHECK(memcmp(code + 400, "\x31\xc0\xb9\x0a", 4) == 0);
	return 0;
}
