/* expect: signal 11 */
/* cause: width * height overflows 32 bits, so that too little memory is asked for */
/* symptom: filling the picture runs over the end of the heap */
#include "bug.h"

int main(void)
{
	volatile unsigned width = 0x10001, height = 0x10000;

	ROOT_CAUSE();
#ifdef FIXED
	size_t size = (size_t)width * height;
	if (size > 1u << 28)
		return 0;
#else
	unsigned size = width * height;
#endif
	volatile char *picture = malloc(size);
	bug_work(10000);
	for (size_t i = 0; i < (size_t)width * height; i += 64)
		picture[i] = (char)i;
	return 0;
}
