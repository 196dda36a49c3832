#include "cli/ticker.h"

#include <errno.h>
#include <time.h>

#include "recording/amount.h"

#define PATIENCE_NANOSECONDS 1000000000
#define APART_NANOSECONDS    200000000

static void show(const struct ticker *ticker, uint64_t elapsed)
{
	uint64_t done = __atomic_load_n(&ticker->progress.done, __ATOMIC_RELAXED);
	uint64_t total = __atomic_load_n(&ticker->progress.total, __ATOMIC_RELAXED);
	const char *(*text)(uint64_t, char *) = ticker->unit == TICKER_BYTES ? size_text : amount_text;
	char some[AMOUNT_TEXT_SIZE], all[AMOUNT_TEXT_SIZE], time[AMOUNT_TEXT_SIZE];

	duration_text(elapsed, time);
	if (!total) {
		progress_show("bugnet %s: %s, %s", ticker->command, ticker->doing, time);
		return;
	}
	if (done > total)
		done = total;
	progress_show("bugnet %s: %s, %.0f%%, %s of %s%s, %s", ticker->command, ticker->doing,
	        100.0 * (double)done / (double)total, text(done, some), text(total, all),
	        ticker->unit == TICKER_BYTES ? "" : " instructions", time);
}

static struct timespec later(struct timespec time, uint64_t nanoseconds)
{
	uint64_t sum = (uint64_t)time.tv_nsec + nanoseconds;

	return (struct timespec){time.tv_sec + (time_t)(sum / 1000000000), (long)(sum % 1000000000)};
}

static void *tick(void *argument)
{
	struct ticker *ticker = argument;
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	pthread_mutex_lock(&ticker->lock);
	for (uint64_t elapsed = PATIENCE_NANOSECONDS; !ticker->over;) {
		struct timespec end = later(start, elapsed);
		if (pthread_cond_timedwait(&ticker->changed, &ticker->lock, &end) != ETIMEDOUT)
			continue;
		show(ticker, elapsed);
		elapsed += APART_NANOSECONDS;
	}
	pthread_mutex_unlock(&ticker->lock);
	return NULL;
}

void ticker_begin(struct ticker *ticker)
{
	pthread_condattr_t attributes;

	ticker->running = false;
	if (!progress_can_show())
		return;
	ticker->over = false;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&ticker->lock, NULL);
	pthread_cond_init(&ticker->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	ticker->running = pthread_create(&ticker->thread, NULL, tick, ticker) == 0;
}

void ticker_end(struct ticker *ticker)
{
	if (!ticker->running)
		return;
	pthread_mutex_lock(&ticker->lock);
	ticker->over = true;
	pthread_cond_broadcast(&ticker->changed);
	pthread_mutex_unlock(&ticker->lock);
	pthread_join(ticker->thread, NULL);
	ticker->running = false;
	progress_clear();
	pthread_cond_destroy(&ticker->changed);
	pthread_mutex_destroy(&ticker->lock);
}
