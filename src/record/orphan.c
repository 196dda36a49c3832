#include "record/orphan.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/detach.h"
#include "record/filters.h"
#include "record/inject.h"
#include "record/process_facts.h"
#include "record/vector.h"
#include "record/why.h"

#define ROUNDS            5000 /* of a millisecond */
#define PAUSE_NANOSECONDS 1000000
#define LARGEST_SEGMENT   (1ul << 40)

static bool read_exactly(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
	uint8_t *at = bytes;

	while (size) {
		ssize_t got = pread(memory->mem_fd, at, size, (off_t)address);
		if (got <= 0)
			return false;
		at += got;
		address += (uint64_t)got;
		size -= (size_t)got;
	}
	return true;
}

/* ---- what there is ---- */

/* The stub and what it is used with were built together; it never changes. */
static bool is_our_stub(const struct memory *memory, uint64_t base)
{
	size_t size = (size_t)((const struct stub_header *)inject_stub())->size;
	uint8_t *there = malloc(size);
	bool same =
	        there && read_exactly(memory, base, there, size) && memcmp(there, inject_stub(), size) == 0;

	free(there);
	return same;
}

/* Is anything of ours in it? *base: where the stub is, or 0 if that is not the one we have. */
static bool find_stub(const struct memory *memory, uint64_t *base, bool *executable)
{
	struct maps maps = {0};
	bool found = false;

	*executable = false;

	*base = 0;
	if (maps_read(&maps, memory->maps_fd) == 0) {
		for (size_t i = 0; i < maps.count && !*base; i++) {
			const struct mapping *mapping = &maps.mappings[i];
			if (strncmp(mapping->path, "/memfd:bugnet", 13) != 0)
				continue;
			found = true;
			*executable |= mapping->executable;
			if (!mapping->offset && mapping->executable && is_our_stub(memory, mapping->start))
				*base = mapping->start;
		}
	}
	maps_deinit(&maps);
	return found;
}

enum orphan_state orphan_look(const struct memory *memory)
{
	uint64_t base;
	uint32_t owner;

	bool executable;

	if (!find_stub(memory, &base, &executable))
		return ORPHAN_NOTHING;
	if (!executable)
		return ORPHAN_BUGNET;
	if (!base || !read_exactly(memory, base + LAYOUT_CHANNEL + offsetof(struct channel, owner), &owner,
	                     sizeof owner))
		return ORPHAN_STRANGE;
	return owner & OWNER_DIED ? ORPHAN_LEFT : ORPHAN_SERVED;
}

pid_t orphan_recorder(const struct memory *memory)
{
	uint64_t base;
	uint32_t owner, mode;
	bool executable;

	if (!find_stub(memory, &base, &executable) || !base ||
	        !read_exactly(memory, base + LAYOUT_CHANNEL + offsetof(struct channel, owner), &owner,
	                sizeof owner) ||
	        !read_exactly(memory, base + LAYOUT_INFO + offsetof(struct info, mode), &mode, sizeof mode) ||
	        mode != MODE_RECORD)
		return 0;
	return (pid_t)(owner & OWNER_NUMBER);
}

/* ---- the space, as the one who is gone had it ---- */

static bool fits(uint64_t start, uint64_t size, uint64_t whole)
{
	return start <= whole && size <= whole - start;
}

static bool is_sound(const struct info *info)
{
	if (info->segment_count < 1 || info->segment_count > MAX_SEGMENTS ||
	        info->window_count > MAX_WINDOWS || (info->mode != MODE_RUN && info->mode != MODE_RECORD) ||
	        (info->mode == MODE_RECORD && info->thread_count > MAX_RECORDED_THREADS))
		return false;
	for (uint32_t i = 0; i < info->segment_count; i++) {
		const struct segment_layout *layout = &info->segments[i];
		if (layout->size > LARGEST_SEGMENT || layout->size < LAYOUT_THREADS ||
		        !fits(layout->code, layout->code_size, layout->size) ||
		        !fits(layout->directory, layout->directory_size, layout->size) ||
		        !fits(layout->records, layout->records_size, layout->size))
			return false;
	}
	return true;
}

/* What tells which instruction of the program a place in translated code belongs to. */
static bool read_segment(const struct memory *memory, struct space_segment *segment)
{
	const struct segment_layout *layout = &segment->layout;
	struct info *info = (struct info *)(segment->memory + LAYOUT_INFO);
	const struct code_range *ranges = (const struct code_range *)(segment->memory + layout->directory);
	uint64_t records = 0;

	if (!read_exactly(memory, layout->base + LAYOUT_INFO, info, sizeof *info) ||
	        info->directory_count > layout->directory_size / sizeof *ranges ||
	        !read_exactly(memory, layout->base + layout->directory, segment->memory + layout->directory,
	                info->directory_count * sizeof *ranges))
		return false;
	segment->directory_count = (uint32_t)info->directory_count;
	for (uint32_t i = 0; i < segment->directory_count; i++) {
		uint64_t end = (uint64_t)ranges[i].record + ranges[i].record_count;
		records = end > records ? end : records;
	}
	return records <= layout->records_size / sizeof(struct placed_record) &&
	       read_exactly(memory, layout->base + layout->records, segment->memory + layout->records,
	               records * sizeof(struct placed_record));
}

static void forget_space(struct space *space)
{
	for (unsigned i = 0; i < space->segment_count; i++) {
		if (space->segments[i].memory)
			munmap(space->segments[i].memory, space->segments[i].layout.size);
	}
	free(space);
}

static struct space *recall_space(const struct memory *memory)
{
	static struct info info;
	uint64_t base;
	struct space *space = calloc(1, sizeof *space);

	if (!space)
		abort();
	bool executable;
	bool sound = find_stub(memory, &base, &executable) && base &&
	             read_exactly(memory, base + LAYOUT_INFO, &info, sizeof info) && is_sound(&info);
	space->header = *(const struct stub_header *)inject_stub();
	space->mode = info.mode == MODE_RECORD ? TRANSLATE_RECORD : TRANSLATE_RUN;
	for (uint32_t i = 0; sound && i < info.segment_count; i++) {
		struct space_segment *segment = &space->segments[space->segment_count++];
		segment->layout = info.segments[i];
		segment->memory = mmap(NULL, segment->layout.size, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (segment->memory == MAP_FAILED)
			segment->memory = NULL;
		sound = segment->memory && read_segment(memory, segment);
	}
	if (sound)
		return space;
	forget_space(space);
	return NULL;
}

/* ---- taking it out ---- */

/* Those that did not stop in time, or end, are let go as soon as they do. */
static void look_after(struct stragglers *stragglers)
{
	for (uint32_t i = stragglers->count; i-- > 0;) {
		int status;
		pid_t pid = waitpid(stragglers->items[i], &status, __WALL | WNOHANG);
		if (pid == 0)
			continue;
		stragglers->items[i] = stragglers->items[--stragglers->count];
		if (pid > 0 && WIFSTOPPED(status))
			halt_let_go(
			        &(struct halted){.tid = pid, .signal = status >> 16 ? 0 : WSTOPSIG(status)},
			        stragglers);
	}
}

static bool take_out(pid_t pid, struct memory *memory, struct space *space)
{
	struct stragglers stragglers = {0};
	bool done = false;

	for (unsigned i = 0; !done && i < ROUNDS && !process_is_over(pid); i++) {
		done = detach_round(pid, memory, space, &stragglers, true);
		look_after(&stragglers);
		if (!done)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
	}
	for (unsigned i = 0; stragglers.count && i < ROUNDS; i++) {
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
		look_after(&stragglers);
	}
	vector_free(&stragglers);
	return done;
}

bool orphan_take_out(pid_t pid, struct memory *memory, char *why, size_t why_size)
{
	char stat[PROCESS_STAT_SIZE];
	sigset_t all, old;

	if (process_status(pid, "TracerPid") > 0)
		return fail_because(why, why_size, "process %ld traces it; end that one first",
		        process_status(pid, "TracerPid"));
	if (process_stat(pid, stat) && *stat == 'T')
		return fail_because(why, why_size, "it is stopped; continue it first ('kill -CONT')");
	char reason[512];
	if (!filters_could_sleep(pid, memory, reason, sizeof reason))
		return fail_because(why, why_size,
		        "its recorder was killed, and what is left of it cannot be taken out; it goes on "
		        "natively: %s",
		        reason);
	struct space *space = recall_space(memory);
	if (!space)
		return fail_because(why, why_size,
		        "its recorder was killed, and what is left of it is damaged; it goes on natively; "
		        "start it "
		        "anew to record it");
	/* We must not end while it is stopped, with its signals blocked. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	bool done = take_out(pid, memory, space);
	sigprocmask(SIG_SETMASK, &old, NULL);
	forget_space(space);
	memory_changed(memory);
	if (done)
		return true;
	return fail_because(why, why_size,
	        "its recorder was killed, and not all threads could be stopped to take out what is left of "
	        "it; it "
	        "goes on natively; try again later");
}
