/* SIGBUS beyond the end of a mapped file: code and address; the handler grows the file and the access
 * succeeds. */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile int count;
static char *volatile expected;
static int fd;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_EQ(sig, SIGBUS);
	CHECK_EQ(info->si_code, BUS_ADRERR);
	CHECK_EQ(info->si_addr, expected);
	count++;
	CHECK(!ftruncate(fd, 4096 * (count + 1)));
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	fd = memfd_create("file", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!ftruncate(fd, 4096));
	volatile char *map = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(!sigaction(SIGBUS, &action, NULL));
	map[10] = 1;
	for (int i = 1; i < 10; i++) {
		expected = (char *)map + i * 4096 + i;
		if (i & 1)
			map[i * 4096 + i] = (char)i;
		else
			CHECK_EQ(map[i * 4096 + i], 0);
		CHECK_EQ(count, i);
	}
	CHECK_EQ(map[5 * 4096 + 5], 5);
	/* The file shrinks under a mapping that was used before. */
	CHECK(!ftruncate(fd, 0));
	count = 4;
	expected = (char *)map + 3 * 4096;
	CHECK_EQ(map[3 * 4096], 0);
	CHECK_EQ(count, 5);
	return done();
}
