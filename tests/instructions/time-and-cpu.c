/* Instructions whose results differ from run to run: they must be plausible and consistent with each other.
 */
#include "instruction.h"
#include <cpuid.h>
#include <sched.h>
#include <time.h>
#include <sys/auxv.h>
#include <sys/wait.h>

SNIPPET(rdtsc_, "rdtsc; shl $32, %rdx; or %rdx, %rax; ret");
SNIPPET(rdtscp_, "rdtscp; mov %ecx, (%rdi); shl $32, %rdx; or %rdx, %rax; ret");
SNIPPET(rdpid_, ".byte 0xf3, 0x0f, 0xc7, 0xf8; ret"); /* rdpid rax */
SNIPPET(rdrand_64, "rdrand %rax; setc %cl; mov %cl, (%rdi); ret");
SNIPPET(rdrand_16, "mov %rsi, %rax; rdrand %ax; setc %cl; mov %cl, (%rdi); ret");
SNIPPET(rdseed_64, "rdseed %rax; setc %cl; mov %cl, (%rdi); ret");
SNIPPET(upper_halves,
        "mov $-1, %rax; mov $-1, %rdx; rdtsc; shr $32, %rax; shr $32, %rdx; or %rdx, %rax; ret");
SNIPPET(cpuid_registers,
        "push %rbx; mov $-1, %rbx; mov $-1, %rdx; xor %eax, %eax; mov $0xffffffff00000000, %rcx; cpuid\n"
        "shr $32, %rax; shr $32, %rbx; shr $32, %rcx; shr $32, %rdx; or %rbx, %rax; or %rcx, %rax; or %rdx, "
        "%rax\n"
        "pop %rbx; ret");
SNIPPET(flags_kept, "push %rbx; pushq $0xad7; popfq; mov $0, %eax; mov $0, %ecx; cpuid; rdtsc; pushfq; pop "
                    "%rax; and $0x8d5, %eax; "
                    "cld; pop %rbx; ret");
SNIPPET(xgetbv_, "mov %edi, %ecx; xgetbv; shl $32, %rdx; or %rdx, %rax; ret");
SNIPPET(pause_, "pause; lfence; mfence; sfence; ret");

static void time_stamps(void)
{
	uint64_t last = call(rdtsc_, 0, 0, 0, 0), first = last;
	unsigned cpu;
	for (unsigned n = 0; n < 20000; n++) {
		uint64_t now = n & 1 ? call(rdtsc_, 0, 0, 0, 0) : call(rdtscp_, ADDRESS(&cpu), 0, 0, 0);
		CHECK(now >= last && now - last < 1ull << 40);
		last = now;
	}
	CHECK(last > first);
	CHECK_EQ(call(upper_halves, 0, 0, 0, 0), 0);
	/* It goes on while sleeping, at a rate of some hundred MHz to some GHz. */
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	first = call(rdtsc_, 0, 0, 0, 0);
	usleep(50000);
	last = call(rdtsc_, 0, 0, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	double rate = (double)(last - first) / seconds;
	CHECK(rate > 1e8 && rate < 1e10);
	printf("rdtsc, rdtscp: plausible\n");
}

static void cpu_number(void)
{
	unsigned eax, ebx, ecx, edx;
	__cpuid_count(7, 0, eax, ebx, ecx, edx);
	bool has_rdpid = ecx & 1 << 22;
	cpu_set_t all, one;
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
		unsigned aux = ~0u;
		call(rdtscp_, ADDRESS(&aux), 0, 0, 0);
		CHECK_EQ(aux & 0xfff, cpu);
		if (has_rdpid)
			CHECK_EQ(call(rdpid_, 0, 0, 0, 0), aux);
		CHECK_EQ(sched_getcpu(), cpu);
	}
	CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
	printf("rdtscp, rdpid: the right CPU\n");
}

static void random_numbers(void)
{
	unsigned eax, ebx, ecx, edx;
	__cpuid(1, eax, ebx, ecx, edx);
	if (ecx & bit_RDRND) {
		uint64_t seen[64];
		unsigned got = 0;
		char valid;
		for (unsigned n = 0; n < 10000 && got < 64; n++) {
			seen[got] = call(rdrand_64, ADDRESS(&valid), 0, 0, 0);
			got += valid == 1;
		}
		CHECK_EQ(got, 64);
		for (unsigned n = 1; n < 64; n++)
			CHECK(seen[n] != seen[n - 1]);
		CHECK_EQ(call(rdrand_16, ADDRESS(&valid), 0x123456789abc0000, 0, 0) >> 16, 0x123456789abc);
	}
	__cpuid_count(7, 0, eax, ebx, ecx, edx);
	if (ebx & bit_RDSEED) {
		unsigned got = 0;
		char valid;
		for (unsigned n = 0; n < 100000 && got < 8; n++) {
			call(rdseed_64, ADDRESS(&valid), 0, 0, 0);
			got += valid == 1;
		}
		CHECK(got > 0);
	}
	printf("rdrand, rdseed: work\n");
}

static void features(void)
{
	unsigned eax, ebx, ecx, edx, b7, c7, d7, highest = __get_cpuid_max(0, NULL);
	CHECK(highest >= 7);
	CHECK_EQ(call(cpuid_registers, 0, 0, 0, 0), 0);
	CHECK_EQ(call(flags_kept, 0, 0, 0, 0), 0x8d5);
	__cpuid(1, eax, ebx, ecx, edx);
	__cpuid_count(7, 0, eax, b7, c7, d7);
	if (ecx & bit_OSXSAVE) {
		uint64_t enabled = call(xgetbv_, 0, 0, 0, 0);
		CHECK((enabled & 3) == 3);
		CHECK(!(ecx & bit_AVX) || (enabled & 7) == 7);
		bool avx512 = b7 & bit_AVX512F, amx = d7 & 1u << 24;
		CHECK(!avx512 || (enabled & 0xe0) == 0xe0); /* shown only if it can be used */
		CHECK(!amx || (enabled & 0x60000) == 0x60000);
		unsigned size, most, a13, d13;
		__cpuid_count(13, 0, a13, size, most, d13);
		CHECK_EQ(enabled & ~((uint64_t)d13 << 32 | a13), 0);
		CHECK(size <= most);
		CHECK(getauxval(AT_MINSIGSTKSZ) >= size);
	}
	if (!__builtin_cpu_supports("avx512f"))
		CHECK(!(b7 & 0xdc230000)); /* none of its parts without it */
	printf("cpuid: consistent; avx512 hidden or absent\n");
}

/* Same numbers in a child. */
static void child(void)
{
	unsigned a[4], b[4];
	__cpuid(1, a[0], a[1], a[2], a[3]);
	pid_t pid = fork();
	if (pid == 0) {
		__cpuid(1, b[0], b[1], b[2], b[3]);
		_exit(a[0] != b[0] || a[2] != b[2] || a[3] != b[3]);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	__builtin_cpu_init();
	call(pause_, 0, 0, 0, 0);
	time_stamps();
	cpu_number();
	random_numbers();
	features();
	child();
	return 0;
}
