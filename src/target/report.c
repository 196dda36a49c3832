/*
 * The stub's last words, and the few library functions that the compiler needs.
 */
#include "target/stub.h"

static void put(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	syscall3(__NR_write, 2, text, n);
}

static void put_number(const char *before, uint64_t value)
{
	char digits[20];
	int n = 19;

	digits[n] = 0;
	do {
		digits[--n] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	put(before);
	put(" 0x");
	put(digits + n);
}

static _Noreturn void die(void)
{
	struct signal_action action = {.handler = K_SIG_DFL};
	uint64_t none = 0;

	put("; this is a bug in bugnet, please report it\n");
	syscall4(__NR_rt_sigaction, K_SIGABRT, &action, 0, 8);
	syscall4(__NR_rt_sigprocmask, K_SIG_SETMASK, &none, 0, 8);
	syscall3(__NR_tgkill, syscall0(__NR_getpid), syscall0(__NR_gettid), K_SIGABRT);
	for (;;)
		syscall1(__NR_exit_group, 134);
}

_Noreturn void stub_panic(const char *what, uint64_t value)
{
	put("bugnet: internal error: ");
	put_number(what, value);
	die();
}

/* What is on top of the stack is the caller where it was memcpy or memset, and a hint elsewhere. */
_Noreturn void panic_at_fault(const struct kernel_sigcontext *context, uint64_t address)
{
	uint64_t base = (uint64_t)stub_base();

	put("bugnet: internal error: ");
	put_number("fault in the stub at offset", context->rip - base);
	put_number(", address", address);
	put_number(", stack", *(const uint64_t *)context->rsp - base);
	die();
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *start = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
	return start;
}

void *memset(void *to, int value, size_t size)
{
	void *start = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
	return start;
}
