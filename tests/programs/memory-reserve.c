/*
 * Huge reservations, the way Go, Java, V8 and sanitizers make them: 8 TB and more with PROT_NONE and
 * MAP_NORESERVE, some pages used here and there, parts given back; MAP_32BIT; hints; huge pages by madvise.
 */
#include "check.h"
#include <sys/mman.h>

int main(void)
{
	size_t size = 8ul << 40;
	char *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(base != MAP_FAILED);
	for (size_t at = 0; at < size; at += size / 64) {
		CHECK(!mprotect(base + at, 65536, PROT_READ | PROT_WRITE));
		for (int i = 0; i < 65536; i += 100)
			base[at + (size_t)i] = (char)(i / 100);
	}
	for (size_t at = 0; at < size; at += size / 64)
		for (int i = 0; i < 65536; i += 100)
			CHECK_EQ(base[at + (size_t)i], (char)(i / 100));
	CHECK(!munmap(base + size / 4, size / 2));
	CHECK_EQ(base[0], 0);
	CHECK_EQ(base[100], 1);
	CHECK(!munmap(base, size / 4));
	CHECK(!munmap(base + size / 4 * 3, size / 4));

	/* 16 TB writable, sparse. */
	base = mmap(
	        NULL, 16ul << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base != MAP_FAILED) {
		uint64_t random_state = 5;
		for (int i = 0; i < 500; i++) {
			uint64_t *word = (uint64_t *)(base + next_random(&random_state) % (2ul << 40) * 8);
			CHECK(*word == 0 || *word == (uint64_t)word);
			*word = (uint64_t)word;
		}
		CHECK(!munmap(base, 16ul << 40));
	}

	/* The low 2 GB. */
	char *low[50];
	for (int i = 0; i < 50; i++) {
		low[i] = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		        -1, 0);
		CHECK(low[i] != MAP_FAILED);
		CHECK((uint64_t)low[i] < 1ul << 31);
		memset(low[i], i, 1 << 20);
	}
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(low[i][i * 1000], i);
		CHECK(!munmap(low[i], 1 << 20));
	}
	/* A hint that is free is taken. */
	char *hint = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!munmap(hint, 1 << 20));
	CHECK_EQ(mmap(hint, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), hint);

	size_t huge = 64ul << 20;
	char *memory = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	if (madvise(memory, huge, MADV_HUGEPAGE))
		CHECK_EQ(errno, EINVAL); /* a kernel without them */
	for (size_t i = 0; i < huge; i += 4096)
		*(size_t *)(memory + i) = i;
	CHECK(!madvise(memory + 4096, huge / 2, MADV_DONTNEED));
	for (size_t i = 0; i < huge; i += 4096)
		CHECK_EQ(*(size_t *)(memory + i), i >= 4096 && i < huge / 2 + 4096 ? 0 : i);
	return done();
}
