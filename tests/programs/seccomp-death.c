/* cases: segv-kill segv-errno ill-kill fpe-errno general-kill handled-kill code-kill */
/* expect: any */
/*
 * The program forbids itself all system calls but a few, and then dies by a fault: the parent must see the signal,
 * not SIGSYS, and it must die at all where calls merely fail. Also code on a page that can be written to.
 */
#include "seccomp.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static volatile int zero;
static volatile uintptr_t nowhere = 8, nobody = 0x8000000000000000;

static void fault_again(int number)
{
	(void)number;
	*(volatile char *)nowhere = 1;
}

static void die_by(const char *how)
{
	if (!strncmp(how, "ill", 3))
		asm volatile("ud2");
	if (!strncmp(how, "fpe", 3))
		asm volatile("cltd; idivl %0" : : "m"(zero), "a"(1) : "rdx", "cc");
	if (!strncmp(how, "general", 7))
		*(volatile char *)nobody = 1;
	*(volatile char *)nowhere = 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "segv-kill";
	const int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn};
	struct rlimit no_core = {0, 0};
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(code != MAP_FAILED);
	CHECK(!setrlimit(RLIMIT_CORE, &no_core));
	if (!strncmp(how, "handled", 7))
		CHECK(signal(SIGSEGV, fault_again) != SIG_ERR);
	puts("dies");
	fflush(stdout);
	if (install_filter(allowed, 5, strstr(how, "errno") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS))
		syscall(SYS_exit, SKIP_STATUS);
	for (uint32_t i = 0; !strncmp(how, "code", 4) && i < 100; i++) {
		code[0] = 0xb8; /* mov eax, i; ret */
		memcpy(code + 1, &i, 4);
		code[5] = 0xc3;
		if (((uint32_t(*)(void))(void *)code)() != i)
			syscall(SYS_exit, 9);
	}
	die_by(how);
	syscall(SYS_exit, 8);
}
