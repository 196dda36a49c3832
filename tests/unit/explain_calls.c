/* System calls in words: arguments of every kind, from memory that a test makes up, and from none. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "explain/explanation.h"
#include "explain/quote.h"

#define HERE UINT64_C(0x10000)

static uint8_t memory_bytes[8192];

/* Only this much is there. */
static size_t read_test_memory(void *context, uint64_t address, void *to, size_t size)
{
	size_t there = 0;

	(void)context;
	memset(to, 0, size);
	for (size_t i = 0; i < size; i++) {
		uint64_t offset = address + i - HERE;
		if (offset < sizeof memory_bytes) {
			((uint8_t *)to)[i] = memory_bytes[offset];
			there++;
		}
	}
	return there;
}

static const struct explained_memory memory = {read_test_memory, NULL}, none = {NULL, NULL};

static uint64_t put(size_t offset, const void *bytes, size_t size)
{
	memcpy(memory_bytes + offset, bytes, size);
	return HERE + offset;
}

#define PUT_TEXT(offset, text) put(offset, text, sizeof text)
#define PUT(offset, type, ...) put(offset, &(type){__VA_ARGS__}, sizeof(type))
#define ARGUMENTS(...)         ((const uint64_t[6]){__VA_ARGS__})

static void expect_with(const struct explained_memory *with, uint64_t number, const uint64_t arguments[6],
        int64_t result, const char *expected)
{
	const struct event_registers registers = {.gpr = {[0] = number,
	                                                  [7] = arguments[0],
	                                                  [6] = arguments[1],
	                                                  [2] = arguments[2],
	                                                  [10] = arguments[3],
	                                                  [8] = arguments[4],
	                                                  [9] = arguments[5]}};
	struct explanation call;
	char text[16384], *result_text;
	size_t size = 0;

	explanation_begin(&call, &registers, result, with);
	explanation_end(&call, with);
	for (unsigned i = 0; i < call.count; i++) {
		assert_non_null(call.texts[i]);
		size += (size_t)snprintf(
		        text + size, sizeof text - size, "%s%s", i ? ", " : "", call.texts[i]);
	}
	result_text = explanation_result(&call);
	snprintf(text + size, sizeof text - size, " = %s", result_text);
	assert_string_equal(text, expected);
	free(result_text);
	explanation_deinit(&call);
}

static void expect(uint64_t number, const uint64_t arguments[6], int64_t result, const char *expected)
{
	expect_with(&memory, number, arguments, result, expected);
}

static int clear(void **state)
{
	(void)state;
	memset(memory_bytes, 0, sizeof memory_bytes);
	return 0;
}

static void quotes(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *expected;
	} cases[] = {{"plain", 5, "\"plain\""}, {"a\"\\\n\t\r\v\f", 8, "\"a\\\"\\\\\\n\\t\\r\\v\\f\""},
	        {"\0\0001\1778\377", 6, "\"\\0\\0001\\1778\\377\""}, {"", 0, "\"\""}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		explain_quoted(out, cases[i].bytes, cases[i].size, false);
		fclose(out);
		assert_string_equal(text, cases[i].expected);
		free(text);
	}
}

static void numbers_and_names(void **state)
{
	(void)state;
	expect(SYS_close, ARGUMENTS(UINT64_MAX), -EBADF, "-1 = -1 EBADF (Bad file descriptor)");
	expect(SYS_mmap, ARGUMENTS(0, 4096, 3, 0x22, UINT32_MAX, 0), 0x7f0000000000,
	        "NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0 = 0x7f0000000000");
	expect(SYS_mmap, ARGUMENTS(0x5000, 1, 0, 0x40000012, 3, 0x1000), -ENOMEM,
	        "0x5000, 1, PROT_NONE, MAP_PRIVATE|MAP_FIXED|0x40000000, 3, 0x1000 = -1 ENOMEM (Cannot "
	        "allocate "
	        "memory)");
	expect(SYS_mprotect, ARGUMENTS(0x5000, 1, 0x40), 0, "0x5000, 1, 0x40 /* PROT_??? */ = 0");
	expect(SYS_lseek, ARGUMENTS(3, (uint64_t)-1, SEEK_END), 9, "3, -1, SEEK_END = 9");
	expect(SYS_lseek, ARGUMENTS(3, 0, 77), -EINVAL,
	        "3, 0, 0x4d /* SEEK_??? */ = -1 EINVAL (Invalid argument)");
	expect(SYS_umask, ARGUMENTS(077), 022, "077 = 022");
	expect(SYS_fcntl, ARGUMENTS(1, F_GETFL, 99), 0x8002,
	        "1, F_GETFL = 0x8002 (flags O_RDWR|O_LARGEFILE)");
	expect(SYS_fcntl, ARGUMENTS(1, F_SETFD, 1), 0, "1, F_SETFD, FD_CLOEXEC = 0");
	expect(SYS_futex, ARGUMENTS(0x5000, 0x80, 2, 0, 8, 9), 0, "0x5000, FUTEX_WAIT_PRIVATE, 2, NULL = 0");
	expect(SYS_futex, ARGUMENTS(0x5000, 1, 7, 0xdead, 8, 9), 1, "0x5000, FUTEX_WAKE, 7 = 1");
	expect(SYS_clone, ARGUMENTS(0x01200011, 0, 0, 0x5000), 77,
	        "child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, "
	        "child_tidptr=0x5000 = 77");
	expect(SYS_kill, ARGUMENTS(UINT64_MAX, 0), 0, "-1, 0 = 0");
	expect(SYS_socket, ARGUMENTS(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 17), 3,
	        "AF_INET, SOCK_DGRAM|SOCK_NONBLOCK, IPPROTO_UDP = 3");
	expect(SYS_exit_group, ARGUMENTS(3), 0, "3 = ?");
	expect(9999, ARGUMENTS(1, 2, 3, 4, 5, 0x60), -ENOSYS,
	        "0x1, 0x2, 0x3, 0x4, 0x5, 0x60 = -1 ENOSYS (Function not implemented)");
}

static void texts_and_bytes(void **state)
{
	static const char longer[] = "0123456789012345678901234567890123456789";
	uint64_t path, bytes, pointers;

	(void)state;
	path = PUT_TEXT(0, "/etc/\nx");
	bytes = PUT_TEXT(100, longer);
	expect(SYS_open, ARGUMENTS(path, O_RDONLY, 0777), 3, "\"/etc/\\nx\", O_RDONLY = 3");
	expect(SYS_openat, ARGUMENTS((uint32_t)AT_FDCWD, path, O_CREAT | O_WRONLY, 0640), 3,
	        "AT_FDCWD, \"/etc/\\nx\", O_WRONLY|O_CREAT, 0640 = 3");
	expect(SYS_write, ARGUMENTS(1, bytes, 40), 40, "1, \"01234567890123456789012345678901\"..., 40 = 40");
	expect(SYS_write, ARGUMENTS(1, bytes, 4), 4, "1, \"0123\", 4 = 4");
	expect(SYS_read, ARGUMENTS(0, bytes, 4000), 3, "0, \"012\", 4000 = 3");
	expect(SYS_read, ARGUMENTS(0, bytes, 4000), 0, "0, \"\", 4000 = 0");
	expect(SYS_read, ARGUMENTS(0, bytes, 4000), -EAGAIN,
	        "0, 0x10064, 4000 = -1 EAGAIN (Resource temporarily unavailable)");
	expect(SYS_getrandom, ARGUMENTS(bytes, 2, 1), 2, "\"\\x30\\x31\", 2, GRND_NONBLOCK = 2");
	/* a bad address, and one that was never touched and is zero */
	expect(SYS_open, ARGUMENTS(0x77, O_RDONLY), -EFAULT, "0x77, O_RDONLY = -1 EFAULT (Bad address)");
	expect(SYS_open, ARGUMENTS(0x770000, O_RDONLY), -ENOENT,
	        "\"\", O_RDONLY = -1 ENOENT (No such file or directory)");
	expect(SYS_open, ARGUMENTS(0, O_RDONLY), -EFAULT, "NULL, O_RDONLY = -1 EFAULT (Bad address)");
	/* a text without an end */
	memset(memory_bytes + 2000, 'x', sizeof memory_bytes - 2000);
	pointers = PUT(200, uint64_t, path);
	PUT(208, uint64_t, bytes);
	expect(SYS_execve, ARGUMENTS(path, pointers, pointers), -ENOENT,
	        "\"/etc/\\nx\", [\"/etc/\\nx\", \"01234567890123456789012345678901\"...], 0x100c8 /* 2 vars "
	        "*/ = -1 "
	        "ENOENT (No such file or directory)");
	expect_with(&none, SYS_openat, ARGUMENTS((uint32_t)AT_FDCWD, path, O_RDONLY), 3,
	        "AT_FDCWD, 0x10000, O_RDONLY = 3");
	expect_with(&none, SYS_read, ARGUMENTS(0, bytes, 40), 3, "0, 0x10064, 40 = 3");
}

static void structures(void **state)
{
	uint64_t at, size;

	(void)state;
	at = PUT(0, struct stat, .st_mode = S_IFREG | 04755, .st_size = 12);
	expect(SYS_fstat, ARGUMENTS(3, at), 0, "3, {st_mode=S_IFREG|S_ISUID|0755, st_size=12, ...} = 0");
	expect(SYS_fstat, ARGUMENTS(3, at), -EBADF, "3, 0x10000 = -1 EBADF (Bad file descriptor)");
	at = PUT(200, struct sockaddr_un, AF_UNIX, "/run/x");
	size = PUT(400, uint32_t, 9);
	expect(SYS_connect, ARGUMENTS(3, at, 110), 0, "3, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 110 = 0");
	expect(SYS_accept, ARGUMENTS(3, at, size), 4, "3, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, [9] = 4");
	expect(SYS_connect, ARGUMENTS(3, at, 1), 0, "3, 0x100c8, 1 = 0");
	at = PUT(500, uint64_t[4], 1, 0x14000000, 0x7000, 2);
	expect(SYS_rt_sigaction, ARGUMENTS(2, at, 0, 8), 0,
	        "SIGINT, {sa_handler=SIG_IGN, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART, "
	        "sa_restorer=0x7000}, "
	        "NULL, 8 = 0");
	at = PUT(600, uint64_t, ~UINT64_C(2));
	expect(SYS_rt_sigprocmask, ARGUMENTS(2, at, 0, 8), 0, "SIG_SETMASK, ~[INT], NULL, 8 = 0");
	at = PUT(700,
	        struct {
		        int32_t fd;
		        uint16_t events[2];
	        },
	        5, {1, 0x11});
	expect(SYS_poll, ARGUMENTS(at, 1, 100), 1,
	        "[{fd=5, events=POLLIN}], 1, 100 = 1 ([{fd=5, revents=POLLIN|POLLHUP}])");
	expect(SYS_poll, ARGUMENTS(at, 1, 100), 0, "[{fd=5, events=POLLIN}], 1, 100 = 0 (Timeout)");
	PUT_TEXT(800, "abcdef");
	at = PUT(900, uint64_t[4], HERE + 800, 3, HERE + 803, 3);
	expect(SYS_writev, ARGUMENTS(1, at, 2), 6,
	        "1, [{iov_base=\"abc\", iov_len=3}, {iov_base=\"def\", iov_len=3}], 2 = 6");
	expect(SYS_readv, ARGUMENTS(1, at, 2), 4,
	        "1, [{iov_base=\"abc\", iov_len=3}, {iov_base=\"d\", iov_len=3}], 2 = 4");
	/* What cannot be read is not taken for what was read before it. */
	at = PUT(sizeof memory_bytes - 16, uint64_t[2], HERE + 800, 3);
	expect(SYS_writev, ARGUMENTS(1, at, 2), -EFAULT,
	        "1, [{iov_base=\"abc\", iov_len=3}, ... /* 0x12000 */], 2 = -1 EFAULT (Bad address)");
	at = PUT(sizeof memory_bytes - 8,
	        struct {
		        int32_t fd;
		        uint16_t events[2];
	        },
	        5, {1, 0});
	expect(SYS_poll, ARGUMENTS(at, 2, 100), -EFAULT,
	        "[{fd=5, events=POLLIN}, ... /* 0x12000 */], 2, 100 = -1 EFAULT (Bad address)");
}

/* Whatever the registers of a hostile recording say, it ends soon, with some text. */
static void nonsense(void **state)
{
	static const uint64_t values[] = {0, 1, 0x77, HERE, HERE + 8190, 1ul << 47, UINT64_MAX, UINT32_MAX};
	struct event_registers registers;
	uint64_t random = 1;

	(void)state;
	memset(memory_bytes, 0xff, sizeof memory_bytes);
	for (uint64_t number = 0; number < 500; number++) {
		for (unsigned round = 0; round < 40; round++) {
			struct explanation call;
			for (unsigned i = 1; i < 16; i++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				registers.gpr[i] = values[random >> 61];
			}
			registers.gpr[0] = number;
			explanation_begin(&call, &registers, (int64_t)values[random >> 58 & 7], &memory);
			explanation_end(&call, &memory);
			char *result = explanation_result(&call);
			assert_non_null(result);
			for (unsigned i = 0; i < call.count; i++)
				assert_non_null(call.texts[i]);
			free(result);
			explanation_deinit(&call);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(quotes),
	        cmocka_unit_test_setup(numbers_and_names, clear),
	        cmocka_unit_test_setup(texts_and_bytes, clear),
	        cmocka_unit_test_setup(structures, clear),
	        cmocka_unit_test_setup(nonsense, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
