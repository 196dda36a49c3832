/*
 * io_uring, by the system calls alone: the kernel writes the completions and what was read into memory that the
 * program polls, without any system call in between that could have told a recorder. Reads and writes of a
 * file, a read that waits for a pipe and is completed by the program's own write, and a timeout.
 */
#include "check.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>

#define ENTRIES 8
#define BLOCK   4096

static unsigned *sq_head, *sq_tail, *sq_array, *cq_head, *cq_tail;
static unsigned sq_mask, cq_mask;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;
static int ring;

static void *map(size_t size, off_t offset)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);
	CHECK(memory != MAP_FAILED);
	return memory;
}

static void set_up(void)
{
	struct io_uring_params params = {0};
	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring < 0)
		skip("no io_uring here");
	char *sq = map(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	char *cq = map(params.cq_off.cqes + params.cq_entries * sizeof *cqes, IORING_OFF_CQ_RING);
	sqes = map(params.sq_entries * sizeof *sqes, IORING_OFF_SQES);
	sq_head = (unsigned *)(sq + params.sq_off.head);
	sq_tail = (unsigned *)(sq + params.sq_off.tail);
	sq_array = (unsigned *)(sq + params.sq_off.array);
	sq_mask = *(unsigned *)(sq + params.sq_off.ring_mask);
	cq_head = (unsigned *)(cq + params.cq_off.head);
	cq_tail = (unsigned *)(cq + params.cq_off.tail);
	cq_mask = *(unsigned *)(cq + params.cq_off.ring_mask);
	cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
}

static void submit(unsigned op, int fd, void *buffer, unsigned size, uint64_t offset, uint64_t id)
{
	unsigned tail = *sq_tail, slot = tail & sq_mask;
	sqes[slot] = (struct io_uring_sqe){.opcode = (uint8_t)op, .fd = fd, .addr = (uint64_t)buffer, .len = size,
	        .off = offset, .user_data = id};
	sq_array[slot] = slot;
	__atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
	CHECK_EQ(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0), 1);
	CHECK_EQ(__atomic_load_n(sq_head, __ATOMIC_ACQUIRE), tail + 1);
}

/* Only memory is looked at; a system call, which would also make the kernel run what is due, is the last resort. */
static void expect(uint64_t id, int result)
{
	unsigned head = *cq_head;
	for (unsigned long round = 0; __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == head; round++)
		if (round > 1000000) {
			syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
			round = 0;
		}
	CHECK_EQ(cqes[head & cq_mask].user_data, id);
	CHECK_EQ(cqes[head & cq_mask].res, result);
	__atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
}

int main(void)
{
	static unsigned char out[BLOCK], in[BLOCK];
	struct __kernel_timespec pause = {.tv_nsec = 2000000};
	uint64_t sum = 0, state = 99;
	int pipes[2];

	set_up();
	int fd = open("uring", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	for (unsigned block = 0; block < 40; block++) {
		for (unsigned i = 0; i < BLOCK; i++)
			out[i] = (unsigned char)next_random(&state);
		submit(IORING_OP_WRITE, fd, out, BLOCK, (uint64_t)block * BLOCK, block);
		expect(block, BLOCK);
	}
	for (unsigned block = 40; block-- > 0;) {
		submit(IORING_OP_READ, fd, in, BLOCK, (uint64_t)block * BLOCK + 1, 100 + block);
		expect(100 + block, block == 39 ? BLOCK - 1 : BLOCK);
		for (unsigned i = 0; i < BLOCK; i += 7)
			sum = mix(sum, in[i]);
	}
	printf("file: %016llx\n", (unsigned long long)sum);

	CHECK(!pipe(pipes));
	for (unsigned round = 0; round < 20; round++) {
		char text[16] = "";
		submit(IORING_OP_READ, pipes[0], text, sizeof text, (uint64_t)-1, 200 + round);
		snprintf((char *)out, BLOCK, "round %u", round);
		CHECK_EQ(write(pipes[1], out, 9), 9);
		expect(200 + round, 9);
		sum = mix(sum, (uint64_t)text[6] << 8 | (uint8_t)text[7]);
	}
	printf("pipe: %016llx\n", (unsigned long long)sum);

	submit(IORING_OP_TIMEOUT, -1, &pause, 1, 0, 300);
	expect(300, -ETIME);
	close(ring);
	return done();
}
