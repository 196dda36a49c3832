/*
 * Two timers at high rates over a loop that loads and stores all the time, among them string instructions and
 * accesses across lines and pages. The handler reads and writes the memory that the loop works on, in a way that
 * leaves it as it was.
 */
#include "check.h"
#include <signal.h>
#include <time.h>

#define WORDS 4096

static uint64_t memory[WORDS + 1];
static volatile unsigned signals[2];

static void handler(int sig)
{
	volatile uint64_t *word = memory + signals[0] * 61 % WORDS;
	signals[sig == SIGUSR1]++;
	*word = ~*word;
	*word = ~*word;
}

static void start_timer(int sig, long nanoseconds)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
	struct itimerspec rate = {{0, nanoseconds}, {0, nanoseconds}};
	timer_t timer;
	sigaddset(&action.sa_mask, SIGALRM);
	sigaddset(&action.sa_mask, SIGUSR1);
	CHECK(!sigaction(sig, &action, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &rate, NULL));
}

static uint64_t work(void)
{
	uint64_t sum = 1, state = 7;
	for (unsigned i = 0; i < WORDS; i++)
		memory[i] = next_random(&state);
	for (unsigned round = 0; round < 200; round++) {
		void *from = (char *)memory + 3, *to = (char *)memory + 1000 + round;
		size_t count = 5000;
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
		for (unsigned i = 0; i < WORDS; i += 3) {
			uint64_t value;
			memcpy(&value, (char *)memory + 8 * i + 5, 8);
			sum = mix(sum, value);
			memory[(sum >> 20) % WORDS] += value;
		}
	}
	return sum;
}

int main(void)
{
	uint64_t quiet = work();
	start_timer(SIGALRM, 70000);
	start_timer(SIGUSR1, 110000);
	for (unsigned round = 0; round < 5 || signals[0] + signals[1] < 200; round++)
		CHECK_EQ(work(), quiet);
	printf("%016llx\n", (unsigned long long)quiet);
	return done();
}
