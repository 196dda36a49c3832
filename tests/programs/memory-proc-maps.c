/*
 * Readers of /proc/self/maps and friends: sorted, no overlaps, the program's own addresses found with the
 * right protection in the right file, mappings made and removed appear and go; pagemap, smaps and mem
 * readable.
 */
#include "check.h"
#include <fcntl.h>
#include <libgen.h>
#include <sys/mman.h>

static int variable = 5;
static const int constant = 7;

struct mapping {
	unsigned long start, end;
	char permissions[8], path[512];
};

static int find(const void *address, struct mapping *found)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	unsigned long offset, inode, previous = 0;
	unsigned major, minor;
	int result = 0;
	CHECK(maps);
	while (fgets(line, sizeof line, maps)) {
		struct mapping m = {.path = ""};
		CHECK(sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %511s", &m.start, &m.end, m.permissions,
		              &offset, &major, &minor, &inode, m.path) >= 7);
		CHECK(m.start >= previous && m.end > m.start);
		previous = m.end;
		if ((unsigned long)address >= m.start && (unsigned long)address < m.end) {
			*found = m;
			result = 1;
		}
	}
	fclose(maps);
	return result;
}

static void show(const char *what, const void *address)
{
	struct mapping m;
	if (find(address, &m))
		printf("%s: %s %s\n", what, m.permissions, m.path[0] == '/' ? basename(m.path) : m.path);
	else
		printf("%s: not there\n", what);
}

int main(void)
{
	int local;
	show("code", main);
	show("data", &variable);
	show("constants", &constant);
	show("stack", &local);
	show("heap", sbrk(0) - 1);
	show("libc", (void *)printf);
	char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!mprotect(page + 4096, 4096, PROT_READ | PROT_EXEC));
	show("first page", page);
	show("second page", page + 4096);
	show("third page", page + 8192);
	CHECK(!munmap(page, 3 * 4096));
	show("after munmap", page + 4096);
	int fd = memfd_create("some name", MFD_CLOEXEC);
	CHECK(!ftruncate(fd, 4096));
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	show("memfd", page);

	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (mem >= 0) {
		int value = 0;
		CHECK_EQ(pread(mem, &value, sizeof value, (off_t)&variable), sizeof value);
		CHECK_EQ(value, 5);
		value = 6;
		CHECK_EQ(pwrite(mem, &value, sizeof value, (off_t)&variable), sizeof value);
		CHECK_EQ(*(volatile int *)&variable, 6);
	}
	char line[4096];
	long resident = 0, value;
	FILE *smaps = fopen("/proc/self/smaps", "re");
	if (smaps) {
		while (fgets(line, sizeof line, smaps))
			if (sscanf(line, "Rss: %ld", &value) == 1)
				resident += value;
		fclose(smaps);
		CHECK(resident > 100);
	}
	return done();
}
