/*
 * Two threads count without a lock, in a member of a template that is inlined twice, called by code without lines.
 *
 * race: total
 * stack: add; twice<long int>; count(Tally<long>&); without_lines; work(void*)
 */
#include <mutex>
#include <pthread.h>

template <typename Number> struct Tally {
	volatile Number sum = 0;
	__attribute__((always_inline)) void add(Number number)
	{
		sum = sum + number;
	}
};

static std::mutex mutex;
static Tally<long> total;
static pthread_barrier_t start, end;

template <typename Number> __attribute__((always_inline)) inline void twice(Tally<Number> &tally)
{
	tally.add(1);
	tally.add(1);
}

__attribute__((noinline, no_reorder)) void count(Tally<long> &tally)
{
	for (int i = 0; i < 50; i++) {
#ifdef FIXED
		std::lock_guard<std::mutex> guard(mutex);
#endif
		twice(tally);
	}
}

/* Right behind the lines of the function before. */
extern "C" void without_lines(Tally<long> &tally);
__asm__(".text\n"
        "without_lines:\n"
        "	.cfi_startproc\n"
        "	sub $8, %rsp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	call _Z5countR5TallyIlE\n"
        "	add $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        "	.type without_lines, @function\n"
        "	.size without_lines, .-without_lines\n");

__attribute__((no_reorder)) static void *work(void *argument)
{
	pthread_barrier_wait(&start);
	without_lines(total);
	pthread_barrier_wait(&end);
	return argument;
}

int main()
{
	pthread_t threads[2];

	pthread_barrier_init(&start, nullptr, 2);
	pthread_barrier_init(&end, nullptr, 2);
	for (pthread_t &thread : threads)
		pthread_create(&thread, nullptr, work, nullptr);
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	return total.sum == 0;
}
