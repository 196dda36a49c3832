/* Names and numbers for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "recording/amount.h"
#include "recording/names.h"

static char text[NAME_TEXT_SIZE];

static void system_calls(void **state)
{
	(void)state;
	assert_string_equal(syscall_name(0, text), "read");
	assert_string_equal(syscall_name(SYS_openat, text), "openat");
	assert_string_equal(syscall_name(SYS_exit_group, text), "exit_group");
	assert_string_equal(syscall_name(9999, text), "syscall_9999");
	assert_string_equal(syscall_name(UINT64_MAX, text), "syscall_18446744073709551615");
}

static void results(void **state)
{
	(void)state;
	assert_string_equal(syscall_result_text(SYS_read, 17, text), "17");
	assert_string_equal(syscall_result_text(SYS_read, 0, text), "0");
	assert_string_equal(
	        syscall_result_text(SYS_openat, -2, text), "-1 ENOENT (No such file or directory)");
	assert_string_equal(syscall_result_text(SYS_mmap, -12, text), "-1 ENOMEM (Cannot allocate memory)");
	assert_string_equal(syscall_result_text(SYS_mmap, 0x7f0000001000, text), "0x7f0000001000");
	assert_string_equal(syscall_result_text(SYS_brk, 0x5000, text), "0x5000");
	assert_string_equal(syscall_result_text(SYS_lseek, -4096, text), "-4096");
	assert_string_equal(syscall_result_text(SYS_read, -4095, text), "-1 (errno 4095)");
}

static void signals(void **state)
{
	(void)state;
	assert_string_equal(signal_name(SIGSEGV, text), "SIGSEGV");
	assert_string_equal(signal_name(SIGSYS, text), "SIGSYS");
	assert_string_equal(signal_name(32, text), "SIGRTMIN");
	assert_string_equal(signal_name(35, text), "SIGRT_3");
	assert_string_equal(signal_name(64, text), "SIGRT_32");
	assert_string_equal(signal_name(99, text), "SIG99");
	assert_string_equal(signal_name(0, text), "SIG0");
	assert_string_equal(signal_name(UINT32_MAX, text), "SIG4294967295");
}

static void expect_info(uint32_t signal, int32_t code, uint64_t address, uint64_t value, const char *expected)
{
	const uint64_t details[4] = {address, value, 7, 8};
	char info[SIGNAL_INFO_TEXT_SIZE];

	assert_string_equal(signal_info_text(signal, code, details, info), expected);
}

static void signal_infos(void **state)
{
	const uint64_t sender = UINT64_C(1000) << 32 | 4711; /* user and process */

	(void)state;
	expect_info(SIGSEGV, SEGV_MAPERR, 0, 0, "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL}");
	expect_info(SIGSEGV, SEGV_ACCERR, 0x7f0012345678, 0,
	        "{si_signo=SIGSEGV, si_code=SEGV_ACCERR, si_addr=0x7f0012345678}");
	expect_info(
	        SIGSEGV, SI_USER, sender, 0, "{si_signo=SIGSEGV, si_code=SI_USER, si_pid=4711, si_uid=1000}");
	expect_info(
	        SIGFPE, FPE_INTDIV, 0x401000, 0, "{si_signo=SIGFPE, si_code=FPE_INTDIV, si_addr=0x401000}");
	expect_info(SIGCHLD, CLD_EXITED, sender, 3,
	        "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=4711, si_uid=1000, si_status=3, si_utime=7, "
	        "si_stime=8}");
	expect_info(SIGCHLD, CLD_KILLED, sender, 9,
	        "{si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=4711, si_uid=1000, si_status=SIGKILL, "
	        "si_utime=7, "
	        "si_stime=8}");
	expect_info(SIGALRM, SI_KERNEL, 0, 0, "{si_signo=SIGALRM, si_code=SI_KERNEL}");
	expect_info(SIGUSR1, SI_TKILL, sender, 0,
	        "{si_signo=SIGUSR1, si_code=SI_TKILL, si_pid=4711, si_uid=1000}");
	expect_info(SIGUSR1, SI_QUEUE, sender, 0x20,
	        "{si_signo=SIGUSR1, si_code=SI_QUEUE, si_pid=4711, si_uid=1000, si_value={sival_int=32, "
	        "sival_ptr=0x20}}");
	expect_info(SIGUSR1, SI_TIMER, 5, 0x20,
	        "{si_signo=SIGUSR1, si_code=SI_TIMER, si_timerid=5, si_overrun=0, si_value={sival_int=32, "
	        "sival_ptr=0x20}}");
	expect_info(SIGSYS, 1, 0, 0, "{si_signo=SIGSYS, si_code=SYS_SECCOMP}");
	expect_info(99, 12345, 0, 0, "{si_signo=SIG99, si_code=12345}");
}

static void amounts(void **state)
{
	(void)state;
	assert_string_equal(amount_text(0, text), "0");
	assert_string_equal(amount_text(999999, text), "999999");
	assert_string_equal(amount_text(1000000, text), "1.00 million");
	assert_string_equal(amount_text(12345678, text), "12.3 million");
	assert_string_equal(amount_text(123456789012, text), "123 billion");
	assert_string_equal(size_text(0, text), "0 bytes");
	assert_string_equal(size_text(1023, text), "1023 bytes");
	assert_string_equal(size_text(1536, text), "1.50 KB");
	assert_string_equal(size_text(UINT64_MAX, text), "16777216 TB");
	assert_string_equal(duration_text(999, text), "999 ns");
	assert_string_equal(duration_text(2500000000, text), "2.50 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(system_calls),
	        cmocka_unit_test(results),
	        cmocka_unit_test(signals),
	        cmocka_unit_test(signal_infos),
	        cmocka_unit_test(amounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
