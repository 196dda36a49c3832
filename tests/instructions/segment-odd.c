/*
 * What needs the real GS base: 32-bit addresses with gs: in string instructions and gathers, lgs, loads of the
 * selector from gs: memory, x87 operands with gs:. Also with all signals blocked, and under a storm of signals.
 */
#include "instruction.h"
#include <sys/time.h>

/* rsi has bits above 32, which do not count; the base is added to esi. */
SNIPPET(movs_32, "mov %rdi, %r8; wrgsbase %rdx; mov $5, %ecx; mov %rsi, %rdi\n"
                 "mov $0xabc00000010, %rsi; addr32 rep movsb %gs:(%esi), (%edi)\n"
                 "mov %rsi, %rax; add %rcx, %rax; ret");
SNIPPET(lods_32, "wrgsbase %rdx; mov $0x700000008, %rsi; xor %eax, %eax; lodsl %gs:(%esi); ret");
SNIPPET(xlat_32, "wrgsbase %rdx; mov $0x700000000, %rbx; mov $9, %eax; .byte 0x65, 0x67, 0xd7; ret");
SNIPPET(lgs_null, "push $0; push $0x1234; movw $0, 4(%rsp); mov $-1, %rax; lgs (%rsp), %eax; add $16, %rsp; ret");
SNIPPET(lgs_bad, "push $0; push $0x1234; movw $0x7777, 4(%rsp); lgs (%rsp), %eax; add $16, %rsp; ret");
SNIPPET(mov_gs_gs, "wrgsbase %rdx; mov %gs:(%rdi), %gs; mov %gs, %eax; ret");
SNIPPET(fild_gs, "wrgsbase %rdx; fildl %gs:4; fistpl -8(%rsp); mov -8(%rsp), %eax; ret");
SNIPPET(fault_32, "wrgsbase %rdx; mov $0x5fffffff0, %rsi; mov $7, %ecx; addr32 rep lodsb %gs:(%esi); ret");
SNIPPET(get_base, "rdgsbase %rax; ret");
SNIPPET(moffs_rex, "wrgsbase %rdx; mov $-1, %r8; mov $-1, %rax; .byte 0x65, 0x46, 0xa1; .quad 4; ret");

static volatile unsigned alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static unsigned char *low;

static void show(const char *name, uint64_t value)
{
	printf("%s: %#llx\n", name, (unsigned long long)value);
}

static void all(void)
{
	uint64_t base = ADDRESS(low);

	memset(low + 256, 0, 16);
	show("movs", call(movs_32, 0, base + 256, base, 0));
	show_bytes("moved", low + 256, 8);
	show("lods", call(lods_32, 0, 0, base, 0));
	show("xlat", call(xlat_32, 0, 0, base, 0));
	show("lgs", call(lgs_null, 0, 0, 0, 0));
	show("base after lgs", call(get_base, 0, 0, 0, 0));
	uint16_t *selector = (uint16_t *)(low + 512);
	*selector = 0;
	show("mov gs, gs:[m]", call(mov_gs_gs, 512, 0, base, 0));
	show("base after mov", call(get_base, 0, 0, 0, 0));
	show("fild", call(fild_gs, 0, 0, base, 0));
	show("moffs", call(moffs_rex, 0, 0, base, 0));
}

int main(void)
{
	catch_faults();
	NAME_SNIPPET(lgs_bad);
	NAME_SNIPPET(fault_32);
	low = mmap((void *)0x30000000, 8192, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(low == (void *)0x30000000);
	for (unsigned n = 0; n < 200; n++)
		low[n] = (unsigned char)(n * 3);
	all();
	CHECK(faults(lgs_bad, 0, 0, 0, 0));
	show_fault("lgs with a bad selector");
	/* It starts 4 bytes before the end of the pages: part of it is done. */
	CHECK(faults(fault_32, 0, 0, ADDRESS(low) + 8192 - 0xfffffff4, 0));
	show_fault("rep lods into nothing");

	sigset_t everything;
	sigfillset(&everything);
	sigprocmask(SIG_BLOCK, &everything, NULL);
	all();
	sigemptyset(&everything);
	sigprocmask(SIG_SETMASK, &everything, NULL);

	struct sigaction action = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned n = 0; n < 2000 || alarms < 20; n++) {
		CHECK_EQ(call(lods_32, 0, 0, ADDRESS(low), 0) & 0xff, 24);
		CHECK_EQ(call(fild_gs, 0, 0, ADDRESS(low), 0), 0x15120f0c);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	return 0;
}
