/* record: | --interval 10K | --compare */
/* cases: shrink reserve options late-end holes odd-codes discard vectors grow filter changed data-limit stack half own-maps again */
/*
 * What recording whole pages has to see to (src/target/pages.c, src/target/calls.c): memory that is closed and opened
 * behind the program's back, and what system calls do to it. A loop in between makes a keyframe if they are close.
 */
#include "check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096ul

static void keyframe(void)
{
	for (volatile int i = 0; i < 30000; i++)
		;
	getppid();
}

static char *map(size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static uint64_t sum_of(const void *memory, size_t size)
{
	uint64_t sum = 1;

	for (size_t i = 0; i < size; i++)
		sum = mix(sum, ((const uint8_t *)memory)[i]);
	return sum;
}

/* Another number every time: replay has to come to this one, as its registers are compared at system calls. */
static void show(uint64_t sum)
{
	syscall(SYS_getppid, sum);
}

static void shrink(void)
{
	char *memory = map(16), *block = malloc(1 << 20);

	memset(memory, 3, 16 * PAGE);
	block[5] = 1;
	keyframe();
	CHECK_EQ(mremap(memory, 16 * PAGE, 5 * PAGE, 0), memory);
	block = realloc(block, 300000);
	CHECK(block && block[5] == 1);
	printf("%lx\n", sum_of(memory, 5 * PAGE));
}

static void reserve(void)
{
	size_t size = 100ul << 30;
	char *memory = mmap(
	        NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 6; i++) {
		keyframe();
		memory[5]++;
		memory[size / 2]++;
		memory[size / 7 * (size_t)i] += 3;
	}
	printf("%d %d\n", memory[5], memory[size / 2]);
}

static int pair_of_sockets(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
	        listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		return -1;
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(ends[0], (struct sockaddr *)&address, sizeof address) < 0)
		return -1;
	ends[1] = accept(listener, NULL, NULL);
	return ends[1] < 0 ? -1 : 0;
}

/* More than most options are. */
static void options(void)
{
	static uint8_t info[1024];
	socklen_t size = sizeof info;
	int ends[2];

	if (pair_of_sockets(ends) < 0)
		skip("no sockets");
	memset(info, 0xee, sizeof info);
	keyframe();
	CHECK(!getsockopt(ends[0], IPPROTO_TCP, TCP_INFO, info, &size));
	CHECK(size > 100);
	show(sum_of(info, sizeof info));
}

static sigjmp_buf back;
static int file;

static void grow_file(int signal)
{
	(void)signal;
	CHECK(!ftruncate(file, 2 * PAGE));
	CHECK_EQ(pwrite(file, "hello", 5, PAGE), 5);
}

static int temporary(size_t size)
{
	char path[] = "pages-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !unlink(path) && !ftruncate(fd, (off_t)size));
	return fd;
}

/* A file that ends within its mapping, and grows. */
static void late_end(void)
{
	file = temporary(PAGE);
	signal(SIGBUS, grow_file);
	const volatile char *memory = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	CHECK(memory != MAP_FAILED);
	keyframe();
	printf("%c%c\n", memory[PAGE], memory[PAGE + 4]);
	keyframe();
	printf("%c\n", memory[PAGE + 1]);
}

static void holes(void)
{
	char *memory = map(16), *place = map(16);

	memset(memory, 'q', 16 * PAGE);
	keyframe();
	CHECK(!munmap(memory + 4 * PAGE, 2 * PAGE));
	char *moved = mremap(memory, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (moved == MAP_FAILED) {
		CHECK_EQ(errno, EFAULT); /* before Linux 6.17 */
		return;
	}
	CHECK_EQ(moved[6 * PAGE], 'q');
	CHECK_EQ(moved[16 * PAGE - 1], 'q');
}

/* What the kernel takes for 32 bits may have more. */
static void odd_codes(void)
{
	static uint64_t words[8];
	char name[16] = "";

	keyframe();
	for (long code = 0x1021; code <= 0x1024; code++)
		syscall(SYS_arch_prctl, code, &words[code & 7]);
	CHECK_EQ(syscall(SYS_prctl, 0x100000000l | PR_GET_NAME, name), 0);
	CHECK(name[0]);
	show(sum_of(words, sizeof words));
}

static void discard(void)
{
	char *memory = map(2);

	memset(memory, 7, 2 * PAGE);
	if (mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_LOCKED, -1, 0) == MAP_FAILED)
		skip("no memory may be locked");
	memory[PAGE] = 8;
	keyframe();
	int result = madvise(memory, 2 * PAGE, MADV_DONTNEED);
	printf("%d %d %d\n", result, memory[0], memory[PAGE]);
}

/* What is read overwrites what says where. */
static void vectors(void)
{
	static struct {
		struct iovec vectors[2];
		char more[64];
	} both;
	static char second[64];
	int fd = temporary(0);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(write(fd, "abcdefgh", 8), 8);
	both.vectors[0] = (struct iovec){&both, sizeof both};
	both.vectors[1] = (struct iovec){second, sizeof second};
	keyframe();
	CHECK_EQ(preadv(fd, both.vectors, 2, 3), sizeof both + sizeof second);
	printf("%lx %lx\n", sum_of(&both, sizeof both), sum_of(second, sizeof second));
}

static void grow(void)
{
	char *memory = map(64);

	keyframe();
	memory[5 * PAGE] = 1;
	memory[10 * PAGE] = 2;
	memory[30 * PAGE] = 4;
	keyframe();
	memory[12 * PAGE] = 4;
	memory = mremap(memory, 64 * PAGE, 128 * PAGE, MREMAP_MAYMOVE);
	CHECK(memory != MAP_FAILED);
	memory[100 * PAGE] = 9;
	printf("%lx\n", sum_of(memory, 128 * PAGE));
}

/* An option that has a pointer in it. */
static void filter(void)
{
	struct sock_filter *accept_all = (struct sock_filter *)map(1);
	struct sock_fprog program = {1, accept_all};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	accept_all[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
	keyframe();
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
}

static void changed(void)
{
	int fd = temporary(PAGE);
	CHECK_EQ(pwrite(fd, "aaaa", 4, 0), 4);
	const volatile char *memory = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(memory != MAP_FAILED);
	printf("%c", memory[0]);
	keyframe();
	printf("%c", memory[1]);
	CHECK_EQ(pwrite(fd, "bbbb", 4, 0), 4);
	printf("%c\n", memory[2]);
}

static void data_limit(void)
{
	struct rlimit limit = {128 << 20, 128 << 20};

	CHECK(!setrlimit(RLIMIT_DATA, &limit));
	map((100 << 20) / PAGE);
	keyframe();
	void *more = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(more == MAP_FAILED && errno == ENOMEM);
}

/* Stack that nobody has touched before the kernel does. */
static __attribute__((noinline)) ssize_t read_below(int fd, size_t size)
{
	char buffer[400000];

	ssize_t got = pread(fd, buffer, size, 0);
	printf("%lx\n", sum_of(buffer, 5));
	return got;
}

static __attribute__((noinline)) int recurse(int depth)
{
	volatile char room[3000];

	room[0] = (char)depth;
	return depth ? room[0] + recurse(depth - 1) : 0;
}

static void stack(void)
{
	int fd = temporary(0);

	CHECK_EQ(write(fd, "stack", 5), 5);
	keyframe();
	CHECK_EQ(read_below(fd, 5), 5);
	keyframe();
	printf("%d\n", recurse(1500));
	keyframe();
	printf("%d\n", recurse(2000));
}

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* A call that fails, and has changed what comes before. */
static void half(void)
{
	int fd = open("/usr/bin/env", O_RDONLY);
	char *memory = map(2);

	signal(SIGSEGV, on_fault);
	CHECK(mmap(memory, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
	CHECK(mmap(memory + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == memory + PAGE);
	keyframe();
	CHECK_ERRNO(mprotect(memory, 2 * PAGE, PROT_READ | PROT_WRITE), EACCES);
	if (!sigsetjmp(back, 1))
		memory[0] = 1;
	printf("%d\n", ((volatile char *)memory)[0]);
}

static void own_maps(void)
{
	static const char *const names[] = {"/proc/self/maps", "//proc/self//maps", "/proc/thread-self/smaps"};
	char line[512], found[32];

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		char *memory = map(3);
		keyframe();
		memory[PAGE] = 1;
		FILE *maps = fopen(names[i], "r");
		CHECK(maps);
		*found = 0;
		while (fgets(line, sizeof line, maps)) {
			unsigned long start, end;
			char access[8];
			if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && start <= (uintptr_t)memory &&
			        (uintptr_t)memory < end)
				snprintf(found, sizeof found, "%s", access);
		}
		fclose(maps);
		puts(found);
	}
}

static void *add_one(void *number)
{
	++*(volatile long *)number;
	return NULL;
}

/* What ends it comes and goes. */
static void again(void)
{
	static const char *const files[] = {"/proc/self/maps", "/proc/self/status"};
	static long counted[512];

	for (long round = 0; round < 12; round++) {
		char *arguments[] = {"true", NULL}, *memory = map(3);
		pid_t child;
		int status;
		pthread_t thread;
		if (round % 4 == 0)
			CHECK(!posix_spawnp(&child, "true", NULL, NULL, arguments, environ) &&
			        waitpid(child, &status, 0) == child && status == 0);
		if (round % 4 == 2)
			CHECK(!pthread_create(&thread, NULL, add_one, &counted[round]) &&
			        !pthread_join(thread, NULL));
		int fd = open(files[round % 2], O_RDONLY);
		CHECK(fd >= 0 && read(fd, memory, 100) > 0 && !close(fd));
		for (int i = 0; i < 20; i++) {
			memset(memory + PAGE, (int)(round + i), PAGE);
			counted[i] += memory[PAGE + 7] + counted[511 - i];
			keyframe();
		}
	}
	printf("%lx\n", sum_of(counted, sizeof counted));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*function)(void);
	} cases[] = {{"shrink", shrink}, {"reserve", reserve}, {"options", options}, {"late-end", late_end},
	        {"holes", holes}, {"odd-codes", odd_codes}, {"discard", discard}, {"vectors", vectors},
	        {"grow", grow}, {"filter", filter}, {"changed", changed}, {"data-limit", data_limit},
	        {"stack", stack}, {"half", half}, {"own-maps", own_maps}, {"again", again}};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].function();
			return done();
		}
	}
	fail("no such case");
}
