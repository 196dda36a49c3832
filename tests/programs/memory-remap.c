/* mremap: growing in place and by moving, shrinking, fixed, DONTUNMAP, of shared memory and of files; data
 * follows. */
#include "check.h"
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define PAGE 4096ul

int main(void)
{
	uint64_t *list = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t size = PAGE;
	CHECK(list != MAP_FAILED);
	for (size_t i = 0; i < size / 8; i++)
		list[i] = i * 3;
	while (size < 32 << 20) {
		/* something in the way, so that it moves now and then */
		if (size & (PAGE * 0x15555))
			mmap((char *)list + size, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		list = mremap(list, size, size * 2, MREMAP_MAYMOVE);
		CHECK(list != MAP_FAILED);
		for (size_t i = size / 8; i < size / 4; i++) {
			CHECK_EQ(list[i], 0);
			list[i] = i * 3;
		}
		size *= 2;
		for (size_t i = 0; i < size / 8; i += 97)
			CHECK_EQ(list[i], i * 3);
	}
	CHECK_EQ(mremap(list, size, PAGE, 0), list);
	CHECK_EQ(list[511], 1533);
	unsigned char vector;
	CHECK_ERRNO(mincore((char *)list + PAGE, PAGE, &vector), ENOMEM);

	/* realloc does the same. */
	char *block = malloc(1 << 20);
	for (size_t length = 1 << 20; length < 64 << 20; length *= 2) {
		block[length - 1] = (char)(length >> 20);
		block = realloc(block, length * 2);
		CHECK(block);
		CHECK_EQ(block[length - 1], (char)(length >> 20));
	}
	free(block);

	/* A shared mapping seen twice. */
	int fd = memfd_create("shared", 0);
	CHECK(!ftruncate(fd, 16 * PAGE));
	char *one = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *two = mremap(one, 0, 4 * PAGE, MREMAP_MAYMOVE); /* size 0: a second view */
	CHECK(two != MAP_FAILED && two != one);
	one[5] = 'a';
	CHECK_EQ(two[5], 'a');
	two[PAGE] = 'b';
	CHECK_EQ(one[PAGE], 'b');
	one = mremap(one, 4 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	CHECK(one != MAP_FAILED);
	one[10 * PAGE] = 'c';
	char byte;
	CHECK_EQ(pread(fd, &byte, 1, 10 * PAGE), 1);
	CHECK_EQ(byte, 'c');
	CHECK_EQ(pwrite(fd, "zz", 2, 5), 2);
	CHECK_EQ(two[5], 'z');

	char *source = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(source, 'q', 4 * PAGE);
	char *moved = mremap(source, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (moved != MAP_FAILED) {
		CHECK_EQ(moved[7], 'q');
		CHECK_EQ(source[7], 0);
	}

	int id = shmget(IPC_PRIVATE, 8 * PAGE, IPC_CREAT | 0600);
	if (id >= 0) {
		char *attached = shmat(id, NULL, 0), *again = shmat(id, NULL, SHM_RDONLY);
		CHECK(attached != (void *)-1 && again != (void *)-1);
		strcpy(attached + PAGE, "system five");
		CHECK(!strcmp(again + PAGE, "system five"));
		CHECK(!shmdt(again));
		CHECK_ERRNO(shmdt(again), EINVAL);
		CHECK_EQ(shmat(id, again, SHM_REMAP), again);
		CHECK(!strcmp(again + PAGE, "system five"));
		CHECK(!shmctl(id, IPC_RMID, NULL));
		CHECK(!shmdt(again));
		CHECK(!shmdt(attached));
	}
	return done();
}
