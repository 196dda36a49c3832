#include "debug/handovers.h"

#include <linux/futex.h>
#include <sys/syscall.h>

/* What keys are of: above all addresses and numbers. */
enum handover_kind {
	OF_FUTEX,
	OF_MESSAGES,
	OF_QUEUE,
	OF_SEMAPHORES,
	OF_FILE_LOCKS, /* of whichever file */
};

static uint64_t key_of(enum handover_kind kind, uint64_t which)
{
	return (uint64_t)kind << 56 | (which & 0xfffffffffffffful);
}

static bool futex_waits(uint64_t operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_TRYLOCK_PI:
		return true;
	default:
		return false;
	}
}

static bool locks_file(const struct step *step)
{
	uint64_t command = step->arguments[1];

	return step->address == SYS_flock ||
	       (step->address == SYS_fcntl &&
	               ((command >= 6 && command <= 7) ||
	                       (command >= 37 && command <= 38))); /* F_SETLK, F_OFD_SETLK */
}

bool handover_gives(const struct step *step, uint64_t *key)
{
	switch (step->address) {
	case SYS_futex:
		*key = key_of(OF_FUTEX, step->arguments[0]);
		return !futex_waits(step->arguments[1]);
	case SYS_msgsnd:
		*key = key_of(OF_MESSAGES, step->arguments[0]);
		return true;
	case SYS_mq_timedsend:
		*key = key_of(OF_QUEUE, step->arguments[0]);
		return true;
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_semctl:
		*key = key_of(OF_SEMAPHORES, step->arguments[0]);
		return true;
	default:
		*key = key_of(OF_FILE_LOCKS, 0);
		return locks_file(step);
	}
}

bool handover_takes(const struct step *step, uint64_t *key)
{
	switch (step->address) {
	case SYS_futex:
		*key = key_of(OF_FUTEX, step->arguments[0]);
		return futex_waits(step->arguments[1]);
	case SYS_msgrcv:
		*key = key_of(OF_MESSAGES, step->arguments[0]);
		return true;
	case SYS_mq_timedreceive:
		*key = key_of(OF_QUEUE, step->arguments[0]);
		return true;
	default:
		return step->address != SYS_msgsnd && step->address != SYS_mq_timedsend &&
		       handover_gives(step, key);
	}
}

bool handover_is_of_lock(const struct step *step)
{
	uint64_t operation = step->arguments[1] & FUTEX_CMD_MASK;

	return step->address == SYS_futex &&
	       (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 || operation == FUTEX_TRYLOCK_PI ||
	               operation == FUTEX_UNLOCK_PI);
}
