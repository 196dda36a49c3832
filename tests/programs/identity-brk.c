/* build: -no-pie -fno-pie */
/*
 * The heap: brk starts a little after the executable's end (within what the kernel's randomisation allows),
 * grows and shrinks, shows zeros, is called [heap] in the maps, and malloc uses it.
 */
#include "check.h"
#include <sys/resource.h>

extern char _end[];

int main(void)
{
	char *start = (char *)syscall(SYS_brk, 0);
	CHECK(start >= _end);
	CHECK((unsigned long)(start - _end) <
	        (1100ul << 20)); /* libc may have grown it; up to 1 GB of randomisation */
	CHECK_EQ(sbrk(0), start);
	CHECK_EQ(sbrk(100000), start);
	char *end = sbrk(0);
	CHECK_EQ(end, start + 100000);
	for (char *c = start; c < end; c++)
		CHECK_EQ(*c, 0);
	memset(start, 7, 100000);
	CHECK(!brk(start + 10));
	CHECK(!brk(start + 100000));
	for (char *c = start + 8192; c < end; c++)
		CHECK_EQ(*c, 0);
	CHECK_EQ(start[5], 7);
	for (size_t size = 1 << 20; size < 256u << 20; size *= 2) {
		CHECK(!brk(start + size));
		start[size - 1] = 1;
		CHECK_EQ(start[size / 2 + 1], 0);
		start[size / 2 + 1] = 0;
	}
	CHECK(!brk(start));
	CHECK_EQ(syscall(SYS_brk, 4096), start); /* refused: the answer is where it stands */
	CHECK_EQ(syscall(SYS_brk, start - (256ul << 20)), start);

	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int found = 0;
	CHECK(maps);
	char *block = malloc(1000);
	while (fgets(line, sizeof line, maps)) {
		unsigned long low, high;
		if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &low, &high) == 2) {
			found++;
			CHECK((unsigned long)block >= low && (unsigned long)block < high);
		}
	}
	fclose(maps);
	CHECK_EQ(found, 1);
	struct rlimit limit = {1 << 20, 1 << 20};
	CHECK(!setrlimit(RLIMIT_DATA, &limit));
	CHECK_ERRNO(brk(start + (16 << 20)), ENOMEM);
	return done();
}
