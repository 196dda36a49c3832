/* rep: partial progress at a fault, both directions, count 0, overlap, comparison, interruption by signals.
 */
#include "instruction.h"
#include <sys/time.h>

SNIPPET(rep_movsb, "mov %rdx, %rcx; rep movsb; ret");
SNIPPET(rep_movsq, "mov %rdx, %rcx; rep movsq; ret");
SNIPPET(rep_movsw_down, "mov %rdx, %rcx; std; rep movsw; cld; ret");
SNIPPET(rep_stosb, "mov %rdx, %rcx; mov $0x5a, %eax; rep stosb; mov %rdi, %rax; ret");
SNIPPET(rep_stosd_down, "mov %rdx, %rcx; mov $0x01020304, %eax; std; rep stosl; cld; mov %rdi, %rax; ret");
SNIPPET(rep_lodsw, "mov %rdx, %rcx; xor %eax, %eax; rep lodsw; ret");
SNIPPET(repe_cmpsb, "mov %rdx, %rcx; cmp %rax, %rax; repe cmpsb; mov %rcx, %rax; ret");
SNIPPET(repne_scasb, "mov %rdx, %rcx; mov %esi, %eax; repne scasb; mov %rcx, %rax; ret");
SNIPPET(repe_scasq_flags,
        "mov %rdx, %rcx; mov %rsi, %rax; stc; repe scasq; pushfq; pop %rax; and $0x8d5, %eax; ret");
SNIPPET(rep_32, "mov %rdx, %rcx; mov $0x77, %al; addr32 rep stosb; mov %rcx, %rax; ret");
SNIPPET(movsb_once, "movsb; mov %rdi, %rax; ret");
SNIPPET(lods_fs, "mov %fs:0, %rdx; xor %esi, %esi; lodsq %fs:(%rsi); sub %rdx, %rax; ret");

static unsigned char *memory, *end;

static void show_progress(const char *name)
{
	show_fault(name);
	printf("%s: rcx %lld rsi %s rdi %s DF %lld\n", name, caught.registers[REG_RCX],
	        where((uint64_t)caught.registers[REG_RSI]), where((uint64_t)caught.registers[REG_RDI]),
	        caught.registers[REG_EFL] >> 10 & 1);
}

static void faulting(void)
{
	NAME_SNIPPET(rep_movsb);
	NAME_SNIPPET(rep_movsq);
	NAME_SNIPPET(rep_movsw_down);
	NAME_SNIPPET(rep_stosb);
	NAME_SNIPPET(rep_stosd_down);
	NAME_SNIPPET(rep_lodsw);
	NAME_SNIPPET(repe_cmpsb);
	NAME_SNIPPET(repne_scasb);
	memset(memory, 0, 4 * PAGE);
	for (unsigned n = 0; n < 100; n++)
		memory[n] = (unsigned char)(n + 1);
	CHECK(faults(rep_movsb, ADDRESS(end - 30), ADDRESS(memory), 100, 0));
	show_progress("rep movsb into a guard page");
	CHECK_EQ(caught.registers[REG_RCX], 70);
	CHECK_EQ(caught.registers[REG_RSI], ADDRESS(memory + 30));
	CHECK_EQ(caught.registers[REG_RDI], ADDRESS(end));
	CHECK_EQ(caught.pc, ADDRESS(rep_movsb + 3));
	CHECK_EQ(end[-1], 30);
	CHECK(faults(rep_movsq, ADDRESS(memory), ADDRESS(end - 20), 5, 0)); /* the third element is cut */
	show_progress("rep movsq from a guard page");
	CHECK_EQ(caught.registers[REG_RCX], 3);
	CHECK_EQ(caught.address, ADDRESS(end));
	CHECK(faults(rep_movsw_down, ADDRESS(memory + 6), ADDRESS(memory + 100), 10, 0));
	show_progress("rep movsw downwards");
	CHECK_EQ(caught.registers[REG_RCX], 6);
	CHECK_EQ(caught.registers[REG_RDI], ADDRESS(memory - 2));
	CHECK(faults(rep_stosb, ADDRESS(memory), 0, ~0ull, 0)); /* as many as there is memory */
	show_progress("rep stosb without end");
	CHECK_EQ(caught.registers[REG_RCX], ~0ull - 4 * PAGE);
	CHECK_EQ(end[-1], 0x5a);
	CHECK(faults(rep_stosd_down, ADDRESS(memory + 40), 0, 100, 0));
	show_progress("rep stosd downwards");
	CHECK_EQ(caught.registers[REG_RCX], 100 - 11);
	CHECK(faults(rep_lodsw, 0, ADDRESS(end - 7), 100, 0));
	show_progress("rep lodsw");
	CHECK_EQ(caught.registers[REG_RCX], 97);
	memset(memory, 3, 4 * PAGE);
	CHECK(faults(repe_cmpsb, ADDRESS(memory), ADDRESS(end - 10), 100, 0));
	show_progress("repe cmpsb");
	CHECK_EQ(caught.registers[REG_RCX], 90);
	CHECK(faults(repne_scasb, ADDRESS(end - 10), 7, 100, 0));
	show_progress("repne scasb");
	CHECK_EQ(caught.registers[REG_RDI], ADDRESS(end));
}

static void plain(void)
{
	/* Count 0 touches nothing. */
	CHECK_EQ(call(rep_stosb, 8, 0, 0, 0), 8);
	call(rep_movsb, 8, 16, 0, 0);
	CHECK_EQ(call(repe_cmpsb, 8, 16, 0, 0), 0);
	/* Forwards onto itself repeats a pattern, backwards moves. */
	memcpy(memory, "abcdefghij", 10);
	call(rep_movsb, ADDRESS(memory + 2), ADDRESS(memory), 8, 0);
	CHECK(memcmp(memory, "ababababab", 10) == 0);
	memcpy(memory, "abcdefghij", 10);
	call(rep_movsw_down, ADDRESS(memory + 8), ADDRESS(memory + 6), 4, 0);
	CHECK(memcmp(memory, "ababcdefgh", 10) == 0);
	for (unsigned distance = 1; distance < 70; distance++) {
		for (unsigned n = 0; n < 600; n++)
			memory[n] = (unsigned char)(n * 5);
		call(rep_movsb, ADDRESS(memory + distance), ADDRESS(memory), 500, 0);
		for (unsigned n = 0; n < 500; n++)
			CHECK_EQ(memory[n], (unsigned char)(n % distance * 5));
	}
	memset(memory, 'x', 300);
	memset(memory + 300, 'x', 300);
	memory[400] = 'y';
	CHECK_EQ(call(repe_cmpsb, ADDRESS(memory), ADDRESS(memory + 300), 300, 0), 199);
	CHECK_EQ(call(repne_scasb, ADDRESS(memory), 'y', 600, 0), 199);
	memset(memory, 0, 100);
	printf("repe scasq: flags %#llx, with count 0 %#llx\n",
	        (unsigned long long)call(repe_scasq_flags, ADDRESS(memory), 5, 4, 0),
	        (unsigned long long)call(repe_scasq_flags, ADDRESS(memory), 5, 0, 0) & 1);
	CHECK_EQ(call(movsb_once, ADDRESS(memory), ADDRESS(memory + 400), 0, 0), ADDRESS(memory + 1));
	CHECK_EQ(call(lods_fs, 0, 0, 0, 0), 0); /* the TLS block starts with its own address */
}

static void low_memory(void)
{
	unsigned char *low =
	        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(low != MAP_FAILED);
	/* Only ecx counts and edi points; what is above them goes. */
	CHECK_EQ(call(rep_32, ADDRESS(low) | 0x5500000000, 0, 0x700000010, 0), 0);
	CHECK(low[15] == 0x77 && low[16] == 0);
}

static volatile unsigned long ticks;

static void on_tick(int signal)
{
	(void)signal;
	ticks++;
}

/* Many signals in the middle of long copies change nothing. */
static void interrupted(void)
{
	const size_t size = 4 << 20;
	unsigned char *from = mmap(
	                      NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	              *to = from + size;
	CHECK(from != MAP_FAILED);
	for (size_t n = 0; n < size; n++)
		from[n] = (unsigned char)(n * 2654435761u >> 13);
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval timer = {{0, 500}, {0, 500}};
	setitimer(ITIMER_REAL, &timer, NULL);
	for (unsigned round = 0; round < 400 && (round < 10 || ticks < 20); round++) {
		memset(to, 0, size);
		call(rep_movsb, ADDRESS(to), ADDRESS(from), size, 0);
		CHECK(memcmp(from, to, size) == 0);
		call(rep_movsw_down, ADDRESS(to + size - 2), ADDRESS(from + size - 2), size / 2, 0);
		CHECK(memcmp(from, to, size) == 0);
		CHECK_EQ(call(repe_cmpsb, ADDRESS(to), ADDRESS(from), 100000, 0), 0);
		CHECK_EQ(call(rep_stosb, ADDRESS(to), 0, size, 0), ADDRESS(to + size));
		CHECK(to[0] == 0x5a && to[size - 1] == 0x5a && memcmp(to, to + 1, size - 1) == 0);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	CHECK(ticks > 0);
}

int main(void)
{
	memory = guarded("memory", 4);
	end = memory + 4 * PAGE;
	catch_faults();
	faulting();
	plain();
	low_memory();
	interrupted();
	printf("done\n");
	return 0;
}
