/* When threads are looked at, with made-up threads: the slots of one in memory of this process, and its log.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/keyframes.h"

#define MILLISECOND UINT64_C(1000000)
#define NUMBER      1 /* of the thread */
#define INTERVAL    UINT64_C(1000000)

static char path[] = "/tmp/bugnet-keyframes-XXXXXX";
static char *arguments[] = {"program", NULL};
static struct recorder_options options;
static struct memory memory;
static struct space space;
static uint64_t slots[SLOT_POSITIONS + POSITION_SLOTS];
static struct keyframe_process process;
static struct keyframe_watch watch;
static struct stragglers stragglers;

static struct log *log_of(unsigned number)
{
	return (struct log *)(process.logs + log_offset(number));
}

static int begin(void **state)
{
	char why[256];

	(void)state;
	options = (struct recorder_options){.version = "1",
	        .path = path,
	        .directory = "/tmp",
	        .program = "/program",
	        .argv = arguments,
	        .cpu = "native",
	        .interval = INTERVAL,
	        .ring = 1 << 20};
	memset(&space, 0, sizeof space);
	memset(&watch, 0, sizeof watch);
	memset(slots, 0, sizeof slots);
	space.segment_count = 1;
	space.segments[0].memory = calloc(1, LAYOUT_INFO + sizeof(struct info));
	space.segments[0].layout = (struct segment_layout){.base = 0x1000000};
	space_info(&space, 0)->distances[NUMBER] = (uint64_t)slots - 0x1000000 - LAYOUT_THREADS;
	process = (struct keyframe_process){
	        .pid = getpid(), .memory = &memory, .space = &space, .numbers = MAX_RECORDED_THREADS};
	process.logs = mmap(NULL, log_offset(MAX_RECORDED_THREADS), PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	process.recorder = recorder_create(&options, why, sizeof why);
	assert_non_null(process.recorder);
	recorder_begin(process.recorder, getpid(), &space);
	return memory_open(&memory, getpid());
}

static int end(void **state)
{
	(void)state;
	recorder_destroy(process.recorder);
	memory_close(&memory);
	munmap(process.logs, log_offset(MAX_RECORDED_THREADS));
	free(space.segments[0].memory);
	return 0;
}

/* A thread with nothing executed since its keyframe. Nobody has this tid, so it cannot be stopped. */
static void begin_thread(uint32_t id)
{
	((struct logs_head *)process.logs)->highest = NUMBER;
	*log_of(NUMBER) = (struct log){.id = id, .tid = 0x3fffffff, .due = INTERVAL, .unwatched = 1};
	slots[SLOT_POSITION] = 0;
}

static void be_parked(uint32_t how)
{
	memcpy((char *)slots + THREAD_PARKED, &how, sizeof how);
}

static void look(uint64_t now)
{
	keyframes_look(&watch, &process, now, &stragglers);
}

/* However slow it was lately: it may have waited for a processor, and have one now. */
static void is_looked_at_as_soon_as_its_interval_can_be_over(void **state)
{
	uint64_t now = MILLISECOND;

	(void)state;
	begin_thread(0);
	look(now);
	slots[SLOT_POSITION] = 10;
	now += 100 * MILLISECOND;
	look(now);
	assert_true(watch.next <= now + MILLISECOND);
	assert_int_equal(log_of(NUMBER)->wanted, LOG_NOT_WANTED);
	slots[SLOT_POSITION] = INTERVAL;
	now = watch.next;
	look(now);
	assert_int_equal(log_of(NUMBER)->wanted, LOG_WANTED);
}

/* A counter of which a part is still to be used up: only the sum is the position. */
static void position_is_the_sum(void **state)
{
	(void)state;
	begin_thread(0);
	slots[SLOT_POSITION] = INTERVAL + 400;
	slots[SLOT_POSITIONS + 3] = (uint64_t)-500;
	look(MILLISECOND);
	assert_int_equal(log_of(NUMBER)->wanted, LOG_NOT_WANTED);
	slots[SLOT_POSITIONS + 3] = (uint64_t)-400;
	look(watch.next);
	assert_int_equal(log_of(NUMBER)->wanted, LOG_WANTED);
}

/* One that waits is left alone until it says that it goes on. */
static void comes_back_from_a_call(void **state)
{
	uint64_t now = MILLISECOND;

	(void)state;
	begin_thread(0);
	be_parked(PARKED_CALLING);
	look(now);
	assert_int_equal(log_of(NUMBER)->unwatched, 1);
	assert_true(watch.next >= now + 50 * MILLISECOND);
	be_parked(0);
	slots[SLOT_POSITION] = INTERVAL / 2;
	log_of(NUMBER)->unwatched = 0;
	now += MILLISECOND;
	look(now);
	assert_int_equal(log_of(NUMBER)->unwatched, 0);
	assert_true(watch.next <= now + MILLISECOND);
}

/* One that waits for the supervisor goes on without a word. */
static void waits_for_us(void **state)
{
	(void)state;
	begin_thread(0);
	log_of(NUMBER)->unwatched = 0;
	be_parked(1);
	look(MILLISECOND);
	assert_int_equal(log_of(NUMBER)->unwatched, 0);
	assert_true(watch.next <= 2 * MILLISECOND);
}

/* Another thread has the number: what was known of the one before does not count. */
static void is_looked_at_when_it_is_new(void **state)
{
	uint64_t now = MILLISECOND;

	(void)state;
	begin_thread(0);
	be_parked(PARKED_CALLING);
	look(now);
	be_parked(0);
	begin_thread(1);
	now += MILLISECOND;
	look(now);
	assert_true(watch.next <= now + MILLISECOND);
}

/* One that cannot be stopped is not tried a thousand times a second. */
static void is_tried_less_and_less_often(void **state)
{
	uint64_t now = MILLISECOND;
	unsigned looks = 0;

	(void)state;
	begin_thread(0);
	for (; now < 1000 * MILLISECOND; looks++) {
		slots[SLOT_POSITION] += INTERVAL;
		look(now);
		now = watch.next;
	}
	assert_int_equal(log_of(NUMBER)->wanted, LOG_WANTED);
	assert_in_range(looks, 50, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(is_looked_at_as_soon_as_its_interval_can_be_over, begin, end),
	        cmocka_unit_test_setup_teardown(position_is_the_sum, begin, end),
	        cmocka_unit_test_setup_teardown(comes_back_from_a_call, begin, end),
	        cmocka_unit_test_setup_teardown(waits_for_us, begin, end),
	        cmocka_unit_test_setup_teardown(is_looked_at_when_it_is_new, begin, end),
	        cmocka_unit_test_setup_teardown(is_tried_less_and_less_often, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
