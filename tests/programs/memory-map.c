/*
 * mmap, munmap, mprotect, mremap, madvise in random order against a model: contents, zeroes, faults are as
 * the model says. Then the errors.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define PAGES 256
#define PAGE  4096ul

static struct {
	char mapped, readable, writable;
	uint8_t value;
} model[PAGES];
static uint8_t *area;
static uint64_t random_state = 99;
static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR)
		fail("code %d", info->si_code);
	siglongjmp(back, info->si_code);
}

static unsigned pick(unsigned limit)
{
	return (unsigned)(next_random(&random_state) % limit);
}

static void check_page(unsigned page)
{
	volatile uint8_t *address = area + page * PAGE + pick(PAGE);
	volatile uint8_t got = 0;
	int code = sigsetjmp(back, 1);
	if (!code)
		got = *address;
	if (!model[page].mapped)
		CHECK_EQ(code, SEGV_MAPERR);
	else if (!model[page].readable)
		CHECK_EQ(code, SEGV_ACCERR);
	else {
		CHECK_EQ(code, 0);
		CHECK_EQ(got, model[page].value);
	}
	code = sigsetjmp(back, 1);
	if (!code)
		*address = model[page].value;
	if (!model[page].mapped)
		CHECK_EQ(code, SEGV_MAPERR);
	else
		CHECK_EQ(code, model[page].writable ? 0 : SEGV_ACCERR);
}

static void fill(unsigned page)
{
	uint8_t value = (uint8_t)pick(256);
	if (!model[page].writable)
		return;
	memset(area + page * PAGE, value, PAGE);
	model[page].value = value;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	area = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	for (unsigned i = 0; i < PAGES; i++)
		model[i].mapped = 1;

	for (int step = 0; step < 6000; step++) {
		unsigned first = pick(PAGES), count = 1 + pick(8);
		if (first + count > PAGES)
			count = PAGES - first;
		uint8_t *address = area + first * PAGE;
		int whole = 1;
		for (unsigned i = first; i < first + count; i++)
			whole &= model[i].mapped;
		switch (pick(7)) {
		case 0: {
			int write = (int)pick(2);
			CHECK_EQ(mmap(address, count * PAGE, PROT_READ | (write ? PROT_WRITE : 0),
			                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			        address);
			for (unsigned i = first; i < first + count; i++) {
				model[i].mapped = model[i].readable = 1;
				model[i].writable = (char)write;
				model[i].value = 0;
			}
			break;
		}
		case 1:
			CHECK(!munmap(address, count * PAGE));
			for (unsigned i = first; i < first + count; i++)
				memset(&model[i], 0, sizeof model[i]);
			break;
		case 2: {
			int read = (int)pick(2), write = read && pick(2);
			int result = mprotect(
			        address, count * PAGE, (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0));
			CHECK_EQ(result, whole ? 0 : -1);
			if (!whole)
				CHECK_EQ(errno, ENOMEM);
			/* what comes before a hole has been changed */
			for (unsigned i = first; i < first + count && model[i].mapped; i++) {
				model[i].readable = (char)read;
				model[i].writable = (char)write;
			}
			break;
		}
		case 3: {
			/* move to somewhere else in the area */
			unsigned to = pick(PAGES - count + 1);
			if (!whole || (to < first + count && first < to + count))
				break;
			int same = 1;
			for (unsigned i = first + 1; i < first + count; i++)
				same &= model[i].readable == model[first].readable &&
				        model[i].writable == model[first].writable;
			void *result = mremap(address, count * PAGE, count * PAGE,
			        MREMAP_MAYMOVE | MREMAP_FIXED, area + to * PAGE);
			if (result == MAP_FAILED) {
				CHECK_EQ(errno,
				        EFAULT); /* several mappings: older kernels refuse, after removing */
				for (unsigned i = to; i < to + count; i++)
					memset(&model[i], 0, sizeof model[i]);
				for (unsigned i = 0; i < count; i++) {
					CHECK_EQ(mmap(area + (to + i) * PAGE, PAGE, PROT_NONE,
					                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
					        area + (to + i) * PAGE);
					model[to + i].mapped = 1;
				}
				CHECK(!same || count > 1);
				break;
			}
			CHECK_EQ(result, area + to * PAGE);
			for (unsigned i = 0; i < count; i++) {
				model[to + i] = model[first + i];
				memset(&model[first + i], 0, sizeof model[0]);
			}
			break;
		}
		case 4: {
			int result = madvise(address, count * PAGE, MADV_DONTNEED);
			CHECK_EQ(result, whole ? 0 : -1);
			for (unsigned i = first; i < first + count; i++)
				if (model[i].mapped)
					model[i].value = 0;
			break;
		}
		default:
			for (unsigned i = first; i < first + count; i++)
				fill(i);
		}
		check_page(pick(PAGES));
		check_page(first);
	}
	for (unsigned i = 0; i < PAGES; i++)
		check_page(i);

	CHECK_ERRNO(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERRNO(mmap((void *)1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
	CHECK_ERRNO(mmap(NULL, 1ul << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0), EBADF);
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERRNO(munmap((void *)1, PAGE), EINVAL);
	CHECK_ERRNO(munmap(area, 0), EINVAL);
	CHECK_ERRNO(mprotect((void *)1, PAGE, PROT_READ), EINVAL);
	CHECK_ERRNO(mremap(area, PAGE, 0, MREMAP_MAYMOVE), EINVAL);
	return done();
}
