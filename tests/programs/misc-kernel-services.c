/*
 * membarrier, userfaultfd, io_uring by raw system calls, eventfd, inotify, splice, prctl odds and ends: what
 * the kernel permits here must work, and what it refuses is refused the same way.
 */
#include "check.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>

static void test_membarrier(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	printf("membarrier %s\n", commands >= 0 ? "works" : strerror(errno));
	if (commands < 0)
		return;
	if (commands & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
		CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
		CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	}
	if (commands & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) {
		CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0));
		CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0));
	}
	CHECK_ERRNO(syscall(SYS_membarrier, 0x40000000, 0, 0), EINVAL);
}

static int uffd;
static char *uffd_area;

static void *uffd_thread(void *arg)
{
	static char page[4096] __attribute__((aligned(4096)));
	(void)arg;
	for (int i = 0; i < 20; i++) {
		struct uffd_msg message;
		struct pollfd poll_fd = {uffd, POLLIN, 0};
		CHECK_EQ(poll(&poll_fd, 1, 20000), 1);
		CHECK_EQ(read(uffd, &message, sizeof message), sizeof message);
		CHECK_EQ(message.event, UFFD_EVENT_PAGEFAULT);
		unsigned long address = message.arg.pagefault.address & ~4095ul;
		memset(page, (int)((address - (unsigned long)uffd_area) / 4096 + 1), sizeof page);
		struct uffdio_copy copy = {.dst = address, .src = (unsigned long)page, .len = 4096};
		CHECK(!ioctl(uffd, UFFDIO_COPY, &copy));
	}
	return NULL;
}

static void test_userfaultfd(void)
{
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0)
		uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1); /* UFFD_USER_MODE_ONLY */
	printf("userfaultfd %s\n", uffd >= 0 ? "works" : strerror(errno));
	if (uffd < 0)
		return;
	struct uffdio_api api = {.api = UFFD_API};
	CHECK(!ioctl(uffd, UFFDIO_API, &api));
	uffd_area = mmap(NULL, 20 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register area = {
	        .range = {(unsigned long)uffd_area, 20 * 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	CHECK(!ioctl(uffd, UFFDIO_REGISTER, &area));
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, uffd_thread, NULL));
	for (int i = 19; i >= 0; i--)
		CHECK_EQ(((volatile char *)uffd_area)[i * 4096 + i], i + 1);
	CHECK(!pthread_join(thread, NULL));
	close(uffd);
}

static void test_io_uring(void)
{
	struct io_uring_params params = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 8, &params);
	printf("io_uring %s\n", fd >= 0 ? "works" : strerror(errno));
	if (fd < 0)
		return;
	size_t sq_size = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	char *sq = mmap(
	        NULL, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	char *cq = mmap(
	        NULL, cq_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqes = mmap(NULL, params.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE,
	        MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED);
	uint32_t *sq_tail = (uint32_t *)(sq + params.sq_off.tail),
	         *sq_mask = (uint32_t *)(sq + params.sq_off.ring_mask);
	uint32_t *array = (uint32_t *)(sq + params.sq_off.array);
	uint32_t *cq_head = (uint32_t *)(cq + params.cq_off.head),
	         *cq_tail = (uint32_t *)(cq + params.cq_off.tail);
	uint32_t *cq_mask = (uint32_t *)(cq + params.cq_off.ring_mask);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);

	int file = memfd_create("data", MFD_CLOEXEC);
	CHECK_EQ(write(file, "written by write, read by the ring", 34), 34);
	char buffer[64] = "";
	for (uint64_t i = 0; i < 200; i++) {
		uint32_t tail = *sq_tail, index = tail & *sq_mask;
		memset(&sqes[index], 0, sizeof *sqes);
		sqes[index].opcode = i & 1 ? IORING_OP_READ : IORING_OP_NOP;
		sqes[index].user_data = i;
		if (i & 1) {
			memset(buffer, 0, sizeof buffer);
			sqes[index].fd = file;
			sqes[index].addr = (uint64_t)buffer;
			sqes[index].len = 34;
		}
		array[index] = index;
		__atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
		CHECK_EQ(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
		uint32_t head = *cq_head;
		CHECK(head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE));
		struct io_uring_cqe *entry = &cqes[head & *cq_mask];
		CHECK_EQ(entry->user_data, i);
		CHECK_EQ(entry->res, i & 1 ? 34 : 0);
		__atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
		if (i & 1)
			CHECK(!strcmp(buffer, "written by write, read by the ring"));
	}
	close(fd);
}

static void test_odds(void)
{
	uint64_t value = 5;
	int fd = eventfd(3, EFD_CLOEXEC);
	CHECK_EQ(write(fd, &value, 8), 8);
	CHECK_EQ(read(fd, &value, 8), 8);
	CHECK_EQ(value, 8);
	int notify = inotify_init1(IN_CLOEXEC);
	CHECK(notify >= 0);
	CHECK(inotify_add_watch(notify, ".", IN_CREATE) >= 0);
	close(open("new-file", O_CREAT | O_WRONLY, 0600));
	char buffer[512];
	CHECK(read(notify, buffer, sizeof buffer) > 0);
	CHECK(!strcmp(((struct inotify_event *)buffer)->name, "new-file"));
	int pipes[2];
	CHECK(!pipe(pipes));
	struct iovec vector = {"spliced", 7};
	CHECK_EQ(vmsplice(pipes[1], &vector, 1, 0), 7);
	int file = memfd_create("splice", 0);
	CHECK_EQ(splice(pipes[0], NULL, file, NULL, 7, 0), 7);
	CHECK_EQ(pread(file, buffer, 7, 0), 7);
	CHECK(!memcmp(buffer, "spliced", 7));
	CHECK_EQ(getrandom(buffer, 32, 0), 32);
	CHECK(!prctl(PR_SET_TIMERSLACK, 1234));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 1234);
	CHECK_ERRNO(prctl(123456, 0, 0, 0, 0), EINVAL);
	CHECK_ERRNO(syscall(9999), ENOSYS);
	CHECK_ERRNO(syscall(-1), ENOSYS);
	CHECK_ERRNO(syscall(0x40000000 + SYS_getpid), ENOSYS); /* x32 */
}

int main(void)
{
	test_membarrier();
	test_userfaultfd();
	test_io_uring();
	test_odds();
	return done();
}
