/*
 * A page that holds code and data, as old assemblers and some JITs make it: the data is written a million
 * times while the code runs. Correct, and not a trap per store: the program must end in reasonable time.
 */
#include "emit.h"
#include <sys/mman.h>

int main(void)
{
	uint8_t *page =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	volatile uint64_t *counter = (uint64_t *)(page + 2048);
	/* incq 2048-7(%rip); mov %edi, %eax; ret */
	int32_t displacement = 2048 - 7;
	uint8_t code[] = {0x48, 0xff, 0x05, 0, 0, 0, 0, 0x89, 0xf8, 0xc3};
	memcpy(code + 3, &displacement, 4);
	memcpy(page, code, sizeof code);
	uint64_t sum = 0;
	for (int i = 0; i < 1000000; i++) {
		sum += (uint64_t)call(page, i);
		*counter += 2;
	}
	CHECK_EQ(*counter, 3000000);
	CHECK_EQ(sum, 499999500000ull);

	/* Now and then the code changes too. */
	for (int i = 0; i < 20000; i++) {
		if (i % 1000 == 0)
			emit_add(page + 512, i);
		CHECK_EQ(call(page + 512, 1), i / 1000 * 1000 + 1);
		counter[i % 100] = (uint64_t)i;
	}
	return done();
}
