/*
 * A program that checksums its own code before, while and after running it, through loads, through write to a
 * pipe and through /proc/self/mem, and compares it with the file it came from: no breakpoints, no patches may
 * be seen.
 */
#include "check.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

extern char __executable_start[], etext[];

static uint64_t checksum(const uint8_t *from, size_t size)
{
	uint64_t sum = 0;
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;
		memcpy(&word, from + i, 8);
		sum = mix(sum, word);
	}
	return sum;
}

static int each(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t *sum = data;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		const uint8_t *memory = (uint8_t *)info->dlpi_addr + segment->p_vaddr;
		*sum = mix(*sum, checksum(memory, segment->p_filesz));
		const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
		int fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue; /* the vdso */
		uint8_t *file =
		        mmap(NULL, segment->p_filesz, PROT_READ, MAP_PRIVATE, fd, (off_t)segment->p_offset);
		CHECK(file != MAP_FAILED);
		close(fd);
		if (memcmp(file, memory, segment->p_filesz))
			fail("the code of %s differs from the file", name);
		CHECK(!munmap(file, segment->p_filesz));
	}
	return 0;
}

int main(void)
{
	uint64_t first = 0, again = 0;
	dl_iterate_phdr(each, &first);
	for (int i = 0; i < 5; i++) {
		compute((uint64_t)i, 10000);
		char text[64];
		snprintf(text, sizeof text, "%d %f", i, i / 3.0);
		again = 0;
		dl_iterate_phdr(each, &again);
		CHECK_EQ(again, first);
	}

	/* What the kernel sees of it. */
	size_t size = (size_t)(etext - __executable_start) & ~4095ul;
	static uint8_t buffer[65536];
	int fds[2];
	CHECK(!pipe(fds));
	for (size_t at = 0; at < size; at += 4096) {
		CHECK_EQ(write(fds[1], __executable_start + at, 4096), 4096);
		CHECK_EQ(read(fds[0], buffer, 4096), 4096);
		CHECK(!memcmp(buffer, __executable_start + at, 4096));
	}
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (mem >= 0) {
		CHECK_EQ(pread(mem, buffer, 4096, (off_t)((uint64_t)main & ~4095ul)), 4096);
		CHECK(!memcmp(buffer, (void *)((uint64_t)main & ~4095ul), 4096));
	}
	/* The vdso, by checksum. */
	uint8_t *vdso = (uint8_t *)getauxval(AT_SYSINFO_EHDR);
	uint64_t before = checksum(vdso, 4096);
	compute(3, 1000);
	CHECK_EQ(checksum(vdso, 4096), before);
	return done();
}
