/*
 * Shared memory with a process that nobody records: a turn passes to and fro, by polling and by futexes, with data
 * beside it; and a counter that both add to at once.
 */
#include "check.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ROUNDS 300
#define ADDS   20000

static struct shared {
	uint32_t turn, padding[15];
	uint64_t data[64];
	uint64_t counter, locked, plain;
	uint32_t lock;
} *shared;

static void wait_for(uint32_t turn, int polls)
{
	uint32_t now;
	while ((now = __atomic_load_n(&shared->turn, __ATOMIC_ACQUIRE)) != turn)
		if (polls)
			sched_yield();
		else
			syscall(SYS_futex, &shared->turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void pass(uint32_t turn)
{
	__atomic_store_n(&shared->turn, turn, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The parent has the even turns, the child the odd ones. Both change what the other left. */
static uint64_t ping_pong(uint32_t mine)
{
	uint64_t sum = mine;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t turn = 2 * round + mine;
		wait_for(turn, round % 2);
		for (unsigned i = 0; i < 64; i++) {
			sum = mix(sum, shared->data[i]);
			shared->data[i] = shared->data[i] * 3 + turn + i;
		}
		pass(turn + 1);
	}
	return sum;
}

static void add(void)
{
	for (unsigned i = 0; i < ADDS; i++) {
		__atomic_fetch_add(&shared->counter, 3, __ATOMIC_SEQ_CST);
		while (__atomic_exchange_n(&shared->lock, 1, __ATOMIC_ACQUIRE))
			sched_yield();
		shared->plain++;
		shared->locked += shared->plain;
		__atomic_store_n(&shared->lock, 0, __ATOMIC_RELEASE);
	}
}

int main(void)
{
	int status;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		ping_pong(1);
		add();
		_exit(0);
	}
	printf("turns: %016llx\n", (unsigned long long)ping_pong(0));
	add();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(shared->counter, 6ull * ADDS);
	CHECK_EQ(shared->plain, 2ull * ADDS);
	CHECK_EQ(shared->locked, ADDS * (2ull * ADDS + 1));
	return done();
}
