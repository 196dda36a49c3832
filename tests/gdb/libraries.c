/* Two libraries, one after the other in the same place: this file is both of them, and the program that loads
 * them, and has been in the one that is no file's. */
#ifdef FIRST
int first_only(int number)
{
	return number + 1;
}

int visit(int number)
{
	return 3 * number; /* the first */
}
#elif defined SECOND
static int changed(int number)
{
	return number - 7;
}

int visit(int number)
{
	return changed(number); /* the second */
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile int between_count;

void between(void)
{
	between_count++;
}

int main(void)
{
	struct timespec now;
	int sum = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (int i = 0; i < 4; i++) {
		void *library = dlopen(i % 2 ? "libsecond.so" : "libfirst.so", RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		int (*visit)(int) = (int (*)(int))dlsym(library, "visit");
		sum += visit(i);
		dlclose(library);
		between();
	}
	if (sum < 0) /* always */
		abort();
	return 0;
}
#endif
