/*
 * Code written, run, rewritten and run again at the same place, thousands of times: on pages that stay
 * writable and executable, on pages that mprotect toggles between the two, on pages mapped twice, on pages
 * remapped each time.
 */
#include "emit.h"
#include <sys/mman.h>

#define PAGE 4096ul

static void write_and_run(uint8_t *write_at, uint8_t *run_at, int i)
{
	switch (i % 4) {
	case 0:
		emit_constant(write_at, i);
		CHECK_EQ(call(run_at, 5), i);
		break;
	case 1:
		emit_add(write_at, i);
		CHECK_EQ(call(run_at, 5), i + 5);
		break;
	case 2:
		emit_multiply(write_at, i);
		CHECK_EQ(call(run_at, 5), i * 5);
		break;
	case 3:
		emit_loop(write_at, i);
		CHECK_EQ(call(run_at, 5), i + 15);
		break;
	}
}

int main(void)
{
	uint8_t *page =
	        mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	for (int i = 0; i < 2400; i++)
		write_and_run(page + 16 * (i % 7), page + 16 * (i % 7), i);
	puts("always writable");

	/* Only a byte of it changes: the immediate. */
	emit_constant(page, 0);
	for (int i = 0; i < 2400; i++) {
		page[1] = (uint8_t)i;
		CHECK_EQ(call(page, 0), i & 255);
	}
	puts("one byte");

	/* Across a page boundary: the function starts on one page and ends on the next. */
	for (int i = 0; i < 800; i++)
		write_and_run(page + PAGE - 3, page + PAGE - 3, i);
	puts("across pages");

	for (int i = 0; i < 800; i++) {
		uint8_t *at = page + 2 * PAGE;
		CHECK(!mprotect(at, PAGE, PROT_READ | PROT_WRITE));
		if (i % 4 == 0)
			emit_constant(at + 64, i);
		CHECK(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
		if (i >= 4)
			CHECK_EQ(call(at + 64, 1), i / 4 * 4);
		CHECK(!mprotect(at, PAGE, PROT_READ | PROT_WRITE));
		uint8_t code[16];
		memset(code, 0xcc, sizeof code);
		emit_multiply(code, i);
		memcpy(at, code, sizeof code);
		CHECK(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
		CHECK_EQ(call(at, 3), i * 3);
	}
	puts("writable or executable");

	int fd = memfd_create("code", MFD_CLOEXEC);
	CHECK(!ftruncate(fd, 2 * PAGE));
	uint8_t *writable = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t *executable = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(writable != MAP_FAILED && executable != MAP_FAILED);
	for (int i = 0; i < 2400; i++)
		write_and_run(writable + 16 * (i % 5) + PAGE - 8, executable + 16 * (i % 5) + PAGE - 8, i);
	puts("mapped twice");

	for (int i = 0; i < 800; i++) {
		uint8_t *at = mmap(page + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK_EQ(at, page + 3 * PAGE);
		write_and_run(at, at, i);
		CHECK(!munmap(at, PAGE));
	}
	puts("mapped anew");
	return done();
}
