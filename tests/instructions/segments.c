/* fs and gs: bases set by arch_prctl and by instruction, selectors, and operands that use them. */
#include "instruction.h"
#include <pthread.h>
#include <asm/prctl.h>
#include <sys/auxv.h>

SNIPPET(rdgsbase_, "rdgsbase %rax; ret");
SNIPPET(rdfsbase_, "rdfsbase %rax; ret");
SNIPPET(rdgsbase_32, "mov $-1, %rax; rdgsbase %eax; ret");
SNIPPET(wrgsbase_, "wrgsbase %rdi; ret");
SNIPPET(wrgsbase_32, "wrgsbase %edi; ret");
SNIPPET(load_gs, "mov %gs:(%rdi), %rax; ret");
SNIPPET(load_gs_index, "mov $2, %ecx; mov %gs:8(%rdi,%rcx,8), %rax; ret");
SNIPPET(load_gs_absolute, "mov %gs:16, %rax; ret");
SNIPPET(load_gs_32, "mov %gs:(%edi), %rax; ret"); /* the 32-bit offset is added to the base */
SNIPPET(store_gs, "mov %rsi, %gs:(%rdi); ret");
SNIPPET(rmw_gs, "lock xadd %rsi, %gs:(%rdi); mov %rsi, %rax; ret");
SNIPPET(push_gs_memory, "pushq %gs:(%rdi); pop %rax; ret");
SNIPPET(string_gs, "mov %rdi, %rsi; lodsq %gs:(%rsi); sub %rsi, %rdi; shl $32, %rdi; add %rdi, %rax; ret");
SNIPPET(vector_gs, "movups %gs:(%rdi), %xmm0; movq %xmm0, %rax; ret");
SNIPPET(call_gs, "call *%gs:(%rdi); ret");
SNIPPET(lea_gs, ".byte 0x65; lea 5(%rdi), %rax; ret"); /* no base in lea */
SNIPPET(swap_fs, "rdfsbase %rdx; wrfsbase %rdi; mov %fs:8, %rax; mov %rax, %fs:16; rdfsbase %rcx; wrfsbase "
                 "%rdx; sub %rdi, %rcx; add "
                 "%rcx, %rax; ret");
SNIPPET(load_fs_self, "mov %fs:0, %rax; ret");
SNIPPET(get_gs, "mov %gs, %eax; ret");
SNIPPET(set_gs, "mov %edi, %gs; ret");
SNIPPET(set_gs_32, "mov %edi, %gs; mov %gs, %eax; ret");
SNIPPET(pop_gs, "push %rdi; pop %gs; ret");
SNIPPET(push_gs, "push %gs; pop %rax; ret");
SNIPPET(set_ds_es, "mov %edi, %ds; mov %edi, %es; mov %ds, %eax; mov %es, %ecx; shl $16, %ecx; add %ecx, "
                   "%eax; xor %ecx, %ecx; mov "
                   "%ecx, %ds; mov %ecx, %es; ret");
SNIPPET(set_ss, "mov %ss, %eax; mov %eax, %ss; mov %ss, %eax; ret");
SNIPPET(bad_selector, "mov %edi, %gs; ret");
SNIPPET(not_canonical_base, "wrgsbase %rdi; ret");

static uint64_t data[8] = {100, 101, 102, 103, 104, 105, 106, 107}, other[8] = {200, 201, 202, 203};

static uint64_t forty_two(void)
{
	return 42;
}

static void *in_thread(void *argument)
{
	(void)argument;
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), 0);
	call(wrgsbase_, ADDRESS(other), 0, 0, 0);
	for (unsigned n = 0; n < 1000; n++) {
		CHECK_EQ(call(load_gs, 8, 0, 0, 0), 201);
		if (n % 100 == 0)
			usleep(10);
	}
	CHECK_EQ(call(load_fs_self, 0, 0, 0, 0), call(rdfsbase_, 0, 0, 0, 0));
	return NULL;
}

static volatile uint64_t base_in_handler;

static void on_signal(int signal)
{
	(void)signal;
	base_in_handler = call(rdgsbase_, 0, 0, 0, 0);
	call(wrgsbase_, ADDRESS(other), 0, 0, 0); /* stays: signal frames do not hold it */
}

int main(void)
{
	unsigned long base;
	catch_faults();
	if (!(getauxval(AT_HWCAP2) & 2))
		skip("no fsgsbase");
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), 0);
	CHECK_EQ(call(rdfsbase_, 0, 0, 0, 0), call(load_fs_self, 0, 0, 0, 0));
	CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &base) == 0 && base == call(rdfsbase_, 0, 0, 0, 0));

	CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, data) == 0);
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), ADDRESS(data));
	CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == ADDRESS(data));
	CHECK_EQ(call(load_gs, 8, 0, 0, 0), 101);
	CHECK_EQ(call(load_gs, -8ull + 16, 0, 0, 0), 101);
	CHECK_EQ(call(load_gs_index, 0, 0, 0, 0), 103);
	CHECK_EQ(call(load_gs_absolute, 0, 0, 0, 0), 102);
	CHECK_EQ(call(load_gs_32, 0xf00000008, 0, 0, 0), 101);
	call(store_gs, 24, 333, 0, 0);
	CHECK_EQ(data[3], 333);
	CHECK_EQ(call(rmw_gs, 24, 1, 0, 0), 333);
	CHECK_EQ(data[3], 334);
	CHECK_EQ(call(push_gs_memory, 32, 0, 0, 0), 104);
	CHECK_EQ(call(string_gs, 40, 0, 0, 0), (-8ull << 32) + 105);
	CHECK_EQ(call(vector_gs, 48, 0, 0, 0), 106);
	CHECK_EQ(call(lea_gs, 37, 0, 0, 0), 42);
	data[7] = ADDRESS(forty_two);
	CHECK_EQ(call(call_gs, 56, 0, 0, 0), 42);

	call(wrgsbase_, ADDRESS(other), 0, 0, 0);
	CHECK_EQ(call(load_gs, 8, 0, 0, 0), 201);
	CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == ADDRESS(other));
	call(wrgsbase_32, 0xfff12345678, 0, 0, 0);
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), 0x12345678);
	call(wrgsbase_, 0x7fff12345678, 0, 0, 0);
	CHECK_EQ(call(rdgsbase_32, 0, 0, 0, 0), 0x12345678);
	call(wrgsbase_, 0xffff888812345678, 0, 0, 0); /* any canonical address */
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), 0xffff888812345678);

	/* Signals and threads. */
	call(wrgsbase_, ADDRESS(data), 0, 0, 0);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	CHECK_EQ(base_in_handler, ADDRESS(data));
	CHECK_EQ(call(rdgsbase_, 0, 0, 0, 0), ADDRESS(other));
	call(wrgsbase_, 0, 0, 0, 0);
	pthread_t threads[4];
	for (unsigned n = 0; n < 4; n++)
		CHECK(pthread_create(&threads[n], NULL, in_thread, NULL) == 0);
	call(wrgsbase_, ADDRESS(data), 0, 0, 0);
	for (unsigned n = 0; n < 4; n++)
		pthread_join(threads[n], NULL);
	CHECK_EQ(call(load_gs, 8, 0, 0, 0), 101);

	CHECK_EQ(call(swap_fs, ADDRESS(data), 0, 0, 0), 101);
	CHECK_EQ(data[2], 101);
	CHECK_EQ(call(rdfsbase_, 0, 0, 0, 0), call(load_fs_self, 0, 0, 0, 0));

	/* Selectors. The base follows the selector; which of the null selectors clear it differs between
	 * CPUs. */
	CHECK_EQ(call(get_gs, 0, 0, 0, 0), 0);
	call(set_gs, 0x2b, 0, 0, 0);
	CHECK_EQ(call(get_gs, 0, 0, 0, 0), 0x2b);
	CHECK_EQ(call(push_gs, 0, 0, 0, 0), 0x2b);
	printf("base after mov gs, 0x2b: %s\n", where(call(rdgsbase_, 0, 0, 0, 0)));
	call(wrgsbase_, ADDRESS(data), 0, 0, 0);
	call(pop_gs, 0, 0, 0, 0);
	CHECK_EQ(call(get_gs, 0, 0, 0, 0), 0);
	printf("base after a null selector: %s\n", call(rdgsbase_, 0, 0, 0, 0) ? "kept" : "cleared");
	CHECK_EQ(call(set_ds_es, 0x2b, 0, 0, 0), 0x2b002b);
	CHECK_EQ(call(set_ss, 0, 0, 0, 0), 0x2b);
	NAME_SNIPPET(bad_selector);
	NAME_SNIPPET(not_canonical_base);
	NAME_SNIPPET(load_gs);
	expect_fault("a selector that does not exist", bad_selector, SIGSEGV, 0, 0x1234, 0);
	expect_fault("a base that is not canonical", not_canonical_base, SIGSEGV, 0, 0x0000900000000000, 0);
	call(wrgsbase_, 0, 0, 0, 0);
	expect_fault("gs:[0] without a base", load_gs, SIGSEGV, 0, 0, 0);
	return 0;
}
