/*
 * Linux AIO: the kernel writes what was read, the completions, and the ring's tail (which is in the program's
 * memory: the context is its address) whenever it likes.
 */
#include "check.h"
#include <fcntl.h>
#include <linux/aio_abi.h>

#define BLOCK 4096
#define COUNT 16

/* What the kernel keeps at the address of the context. */
struct ring {
	unsigned id, entries, head, tail, magic, compat, incompat, size;
};

static void start(aio_context_t context, struct iocb *block, int fd, unsigned op, void *buffer, unsigned number)
{
	*block = (struct iocb){.aio_fildes = (uint32_t)fd, .aio_lio_opcode = (uint16_t)op, .aio_buf = (uint64_t)buffer,
	        .aio_nbytes = BLOCK, .aio_offset = (int64_t)number * BLOCK, .aio_data = number};
	CHECK_EQ(syscall(SYS_io_submit, context, 1, &block), 1);
}

static void collect(aio_context_t context, unsigned count)
{
	struct io_event events[COUNT];
	struct timespec patience = {.tv_sec = 20};
	uint64_t seen = 0;
	CHECK_EQ(syscall(SYS_io_getevents, context, count, count, events, &patience), count);
	for (unsigned i = 0; i < count; i++) {
		CHECK_EQ(events[i].res, BLOCK);
		seen |= 1u << events[i].data;
	}
	CHECK_EQ(seen, (1u << count) - 1);
}

int main(void)
{
	static unsigned char buffers[COUNT][BLOCK];
	struct iocb blocks[COUNT];
	aio_context_t context = 0;
	uint64_t state = 5, before = 0, after = 0;

	if (syscall(SYS_io_setup, 2 * COUNT, &context))
		skip("no AIO here");
	int fd = open("aio", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	for (unsigned i = 0; i < COUNT; i++) {
		for (unsigned j = 0; j < BLOCK; j++)
			before = mix(before, buffers[i][j] = (unsigned char)next_random(&state));
		start(context, &blocks[i], fd, IOCB_CMD_PWRITE, buffers[i], i);
	}
	collect(context, COUNT);
	memset(buffers, 0, sizeof buffers);
	for (unsigned i = 0; i < COUNT; i++)
		start(context, &blocks[i], fd, IOCB_CMD_PREAD, buffers[i], i);

	/* Done is what the ring says; then everything is there without any further call. */
	volatile struct ring *ring = (volatile struct ring *)context;
	if (ring->magic == 0xa10a10a1)
		while ((ring->tail + ring->entries - ring->head) % ring->entries < COUNT)
			;
	else
		collect(context, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned j = 0; j < BLOCK; j++)
			after = mix(after, buffers[i][j]);
	CHECK_EQ(before, after);
	if (ring->magic == 0xa10a10a1)
		collect(context, COUNT);
	CHECK(!syscall(SYS_io_destroy, context));
	printf("%016llx\n", (unsigned long long)after);
	return done();
}
