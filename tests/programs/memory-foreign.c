/*
 * A program that unmaps everything it does not know: every mapping that is not the stack, the heap, the
 * executable, a library, the vdso or its own. Natively there is none; whatever a tool put there is attacked,
 * and the program must go on (the tool may refuse or lie, but not break). Then it maps fixed memory over the
 * same places.
 */
#include "check.h"
#include <sys/mman.h>

static struct {
	unsigned long start, end;
} strange[200];
static int count;

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Small anonymous memory near a file's mapping is the loader's or libc's: bss, TLS, early malloc. */
static int near_file(unsigned long start, unsigned long end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	unsigned long low, high;
	int near = 0;
	CHECK(maps);
	while (fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/');
		if (!path || !strncmp(path, "/memfd:", 7) || sscanf(line, "%lx-%lx", &low, &high) != 2)
			continue;
		near |= start < high + (64ul << 20) && low < end + (64ul << 20);
	}
	fclose(maps);
	return near && end - start < 512 * 1024;
}

static void look(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024], path[512], permissions[8];
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	CHECK(maps);
	count = 0;
	while (fgets(line, sizeof line, maps)) {
		path[0] = 0;
		CHECK(sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %511s", &start, &end, permissions, &offset,
		              &major, &minor, &inode, path) >= 7);
		if (path[0] == '/' && strncmp(path, "/memfd:", 7) && strncmp(path, "/dev/", 5))
			continue; /* executable, libraries */
		if (!strcmp(path, "[stack]") || !strcmp(path, "[heap]") || !strncmp(path, "[v", 2))
			continue;
		if (path[0] == 0 && near_file(start, end))
			continue;
		if ((unsigned long)&errno - start < end - start)
			continue; /* the loader puts our TLS wherever there is room */
		strange[count].start = start;
		strange[count].end = end;
		count++;
	}
	fclose(maps);
}

int main(void)
{
	uint64_t before = compute(77, 1000);
	look();
	for (int i = 0; i < count; i++)
		munmap((void *)strange[i].start, strange[i].end - strange[i].start);
	CHECK_EQ(compute(77, 1000), before);
	printf("%.4f %s\n", 2.0 / 3, strerror(EPERM));
	for (int i = 0; i < count; i++) {
		size_t size = strange[i].end - strange[i].start;
		char *memory = mmap((void *)strange[i].start, size, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		if (memory != MAP_FAILED) {
			memory[0] = 1;
			memory[size - 1] = 2;
		}
	}
	for (int i = 0; i < count; i++)
		mprotect((void *)strange[i].start, strange[i].end - strange[i].start, PROT_NONE);
	for (int i = 0; i < count; i++)
		madvise((void *)strange[i].start, strange[i].end - strange[i].start, MADV_DONTNEED);
	/* Code first used here. */
	char *end;
	int numbers[] = {5, 9, 1, 7, 3};
	CHECK_EQ(strtoull("1234567890123", &end, 10), 1234567890123ull);
	qsort(numbers, 5, sizeof numbers[0], compare);
	CHECK(numbers[0] == 1 && numbers[4] == 9);
	free(malloc(100000));
	CHECK_EQ(compute(77, 1000), before);
	return done();
}
