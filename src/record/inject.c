#include "record/inject.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "record/attach.h"
#include "record/cpu_level.h"
#include "record/shadow_plan.h"
#include "record/tracee.h"
#include "record/user_registers.h"
#include "record/why.h"

#define MEGABYTE         (1ul << 20)
#define ALIGNMENT        (2 * MEGABYTE)
#define NEAR_REACH       (0x7fff0000ul)
#define CLUSTER_GAP      (16 * MEGABYTE)
#define CODE_SELECTOR_64 0x33

/* The stub's image, made from src/target. */
extern const uint8_t stub_image[], stub_image_end[];

/*
 * How much address space to take: as much as the process may have. While recording it is taken whatever the
 * cache may hold, since replay has its own cache there, and none of these bounds.
 */
struct cache_size {
	uint64_t threads, code, reserved_code;
	struct shadow_reach reach;
};
#define REACH(below, above, below_stack, above_executable, at_a_time)                                        \
	{                                                                                                    \
		.libraries = (below)*MEGABYTE, .libraries_up = (above)*MEGABYTE,                             \
		.stack = (below_stack)*MEGABYTE, .heap = (above_executable)*MEGABYTE,                        \
		.chunk = (at_a_time)*MEGABYTE                                                                \
	}
static const struct cache_size sizes[] = {
        {.threads = 8192, .code = 128 * MEGABYTE, .reach = REACH(65536, 8192, 8192, 32768, 1024)},
        {.threads = 1024, .code = 64 * MEGABYTE, .reach = REACH(4096, 512, 512, 2048, 256)},
        {.threads = 256, .code = 16 * MEGABYTE, .reach = REACH(512, 64, 64, 256, 32)},
        {.threads = 64, .code = 4 * MEGABYTE, .reach = REACH(64, 16, 8, 32, 4)},
};

struct placement {
	struct segment_layout layouts[MAX_SEGMENTS];
	unsigned count;
	uint64_t threads, file_size;
	struct shadow_plan shadow; /* while recording */
	struct shadow_reach reach;
};

#define NO_SPACE(...) (fail_because(__VA_ARGS__), NULL)

/* The parts of our memory in the target: segments, then shadows of the first thread. */
static unsigned part_count(const struct placement *placement)
{
	return placement->count + placement->shadow.window_count;
}

static struct range part(const struct placement *placement, unsigned number)
{
	const struct shadow_plan *shadow = &placement->shadow;
	const struct segment_layout *layout = &placement->layouts[number];

	if (number < placement->count)
		return (struct range){layout->base, layout->base + layout->size};
	return shadow_range(shadow->windows[number - placement->count], shadow->distances[1]);
}

static uint64_t read_auxv(pid_t pid, uint64_t type)
{
	char path[64];
	Elf64_auxv_t auxv[64];

	snprintf(path, sizeof path, "/proc/%d/auxv", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, auxv, sizeof auxv);
	close(fd);
	for (ssize_t i = 0; i < size / (ssize_t)sizeof *auxv; i++) {
		if (auxv[i].a_type == type)
			return auxv[i].a_un.a_val;
	}
	return 0;
}

const uint8_t *inject_stub(void)
{
	return stub_image;
}

uint64_t inject_vdso(pid_t pid)
{
	return read_auxv(pid, AT_SYSINFO_EHDR);
}

/* ---- where the segments go ---- */

static bool is_free(const struct maps *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (maps->mappings[i].start < end && start < maps->mappings[i].end)
			return false;
	}
	return true;
}

/* The lowest address of the mappings around `address` that lie close together. */
static uint64_t cluster_start(const struct maps *maps, uint64_t address)
{
	uint64_t start = address;

	for (size_t i = maps->count; i-- > 0;) {
		const struct mapping *mapping = &maps->mappings[i];
		if (mapping->start < start && mapping->end + CLUSTER_GAP >= start)
			start = mapping->start;
	}
	return start;
}

/* Segment 0 goes right below where the kernel puts libraries, so that both stay near each other. */
static uint64_t place_near_libraries(const struct maps *maps, uint64_t hint, uint64_t size)
{
	uint64_t base = (cluster_start(maps, hint) - size) & -ALIGNMENT;

	for (int tries = 0; tries < 256 && base > size; tries++, base -= 64 * MEGABYTE) {
		if (is_free(maps, base, base + size))
			return base;
	}
	return 0;
}

/*
 * Segment 1 near the executable, when that is far away: below it, or above when
 * it lies at the bottom of the address space; then as high as it can reach, to
 * leave room for the heap in between.
 */
static uint64_t place_near_executable(
        const struct maps *maps, uint64_t low, uint64_t high, const struct segment_layout *layout)
{
	uint64_t near_part = layout->code + layout->code_size;

	if (low > layout->size + CLUSTER_GAP + MEGABYTE) {
		uint64_t base = (low - layout->size - CLUSTER_GAP) & -ALIGNMENT;
		if (high - base < NEAR_REACH && is_free(maps, base, base + layout->size))
			return base;
	}
	uint64_t base = (low + NEAR_REACH - near_part) & -ALIGNMENT;
	for (; base > high; base -= 64 * MEGABYTE) {
		if (is_free(maps, base, base + layout->size))
			return base;
	}
	return 0;
}

static void executable_range(pid_t pid, const struct maps *maps, uint64_t *low, uint64_t *high)
{
	char path[64];
	struct stat status;

	*low = *high = 0;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	if (stat(path, &status) < 0)
		return;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		if (mapping->inode != status.st_ino)
			continue;
		if (!*high)
			*low = mapping->start;
		*high = mapping->end;
	}
}

static bool far_apart(uint64_t low, uint64_t high, const struct segment_layout *layout)
{
	uint64_t end = layout->base + layout->code + layout->code_size;
	uint64_t first = low < layout->base ? low : layout->base, last = high > end ? high : end;

	return last - first >= NEAR_REACH;
}

/*
 * The x87 unit shows 32 bits of where its last instruction was: they must tell
 * which segment that was in, so their code must not lie at the same place of 4 GB.
 */
static void tell_apart(const struct maps *maps, struct segment_layout layouts[2])
{
	uint32_t distance = (uint32_t)(layouts[0].base + layouts[0].code - layouts[1].base - layouts[1].code);
	uint64_t size = layouts[0].code_size, lower = (layouts[0].base - 2 * size) & -ALIGNMENT;

	if (distance >= size && -distance >= size)
		return;
	if (is_free(maps, lower, lower + layouts[0].size))
		layouts[0].base = lower;
}

/* An address of the program's first stack: where it is now it may have switched to another. */
static uint64_t stack_of(const struct tracee *tracee)
{
	uint64_t random = read_auxv(tracee->pid, AT_RANDOM);

	return random ? random : tracee->registers.rsp;
}

static bool plan_placement(const struct tracee *tracee, const struct maps *maps, uint64_t vdso,
        const struct cache_size *size, bool record, struct placement *placement)
{
	unsigned recorded =
	        size->threads < MAX_RECORDED_THREADS ? (unsigned)size->threads : MAX_RECORDED_THREADS;
	uint64_t low, high, logs = record ? log_offset(recorded) : 0;
	/* While recording a thread's memory is part of its shadow. */
	uint64_t threads = record ? 1 : size->threads;

	placement->threads = size->threads;
	placement->count = 1;
	space_plan(placement->layouts, MAX_SEGMENTS, threads, size->code, size->reserved_code, logs);
	uint64_t hint = vdso ? vdso : maps->mappings[maps->count - 1].start;
	placement->layouts[0].base = place_near_libraries(maps, hint, placement->layouts[0].size);
	if (!placement->layouts[0].base)
		return false;
	executable_range(tracee->pid, maps, &low, &high);
	if (high && far_apart(low, high, &placement->layouts[0])) {
		/* Low memory is reached as such from anywhere, and its shadow from where bit FOLD_BIT leads.
		 */
		uint64_t fold = record && low < 1ul << FOLD_BIT ? 1ul << FOLD_BIT : 0;
		placement->layouts[1].base =
		        place_near_executable(maps, low | fold, high | fold, &placement->layouts[1]);
		if (placement->layouts[1].base) {
			placement->count = 2;
			tell_apart(maps, placement->layouts);
		}
	}
	placement->file_size = space_plan(
	        placement->layouts, placement->count, threads, size->code, size->reserved_code, logs);
	if (record) {
		struct shadow_places places = {.library = hint,
		        .stack = stack_of(tracee),
		        .executable = {low, high},
		        .segment_count = placement->count};
		for (unsigned i = 0; i < placement->count; i++)
			places.segments[i] = part(placement, i);
		shadow_plan(&placement->shadow, maps, &places, &size->reach, recorded);
		placement->reach = size->reach;
		placement->threads = placement->shadow.thread_count;
	}
	return true;
}

/* ---- limits ---- */

/* What the kernel lets the process, and us, have. UINT64_MAX: as much as there is. */
struct room {
	uint64_t space, data; /* left to the process */
	uint64_t file;
};

static uint64_t left_of(pid_t pid, int resource, uint64_t used)
{
	struct rlimit limit;

	if (prlimit(pid, resource, NULL, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

static struct room room_of(pid_t pid, const struct maps *maps)
{
	uint64_t space = 0, data = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		space += mapping->end - mapping->start;
		if (mapping->writable && !mapping->shared)
			data += mapping->end - mapping->start;
	}
	return (struct room){.space = left_of(pid, RLIMIT_AS, space),
	        .data = left_of(pid, RLIMIT_DATA, data),
	        .file = left_of(0, RLIMIT_FSIZE, 0)};
}

static struct room needed_by(const struct placement *placement)
{
	uint64_t shadow = placement->shadow.window_count ? shadow_plan_bytes(&placement->shadow) : 0;

	return (struct room){
	        .space = placement->file_size + shadow, .data = shadow, .file = placement->file_size};
}

static bool exceeds(uint64_t needed, uint64_t room)
{
	return room != UINT64_MAX && needed > room;
}

/* Within the part of what is left to the program that one `share`th is. */
static bool fits_in(const struct placement *placement, const struct room *room, uint64_t share)
{
	struct room needed = needed_by(placement);

	return !exceeds(needed.space * share, room->space) && !exceeds(needed.data * share, room->data) &&
	       !exceeds(needed.file, room->file);
}

#define LEAST_SHARE 2 /* half is the program's */

static void refuse_for_room(
        const struct placement *placement, const struct room *room, char *why, size_t why_size)
{
	struct room needed = needed_by(placement);
	const char *what = placement->shadow.window_count ? "recording" : "the code cache";

	if (exceeds(needed.file, room->file))
		fail_because(why, why_size,
		        "the limit on the size of files is %lu MB, and the code cache, which counts as one, "
		        "needs %lu MB; "
		        "raise it with 'ulimit -f %lu' or more",
		        room->file / MEGABYTE, needed.file / MEGABYTE + 1, needed.file / 1024);
	else if (exceeds(LEAST_SHARE * needed.space, room->space))
		fail_because(why, why_size,
		        "an address-space limit leaves %lu MB, and %s needs %lu MB beside the program; "
		        "raise it by %lu MB or more with 'ulimit -v'",
		        room->space / MEGABYTE, what, LEAST_SHARE * needed.space / MEGABYTE + 1,
		        (LEAST_SHARE * needed.space - room->space) / MEGABYTE + 1);
	else
		fail_because(why, why_size,
		        "a limit on data leaves %lu MB, and %s needs %lu MB beside the program; "
		        "raise it by %lu MB or more with 'ulimit -d'",
		        room->data / MEGABYTE, what, LEAST_SHARE * needed.data / MEGABYTE + 1,
		        (LEAST_SHARE * needed.data - room->data) / MEGABYTE + 1);
}

static bool strict_overcommit(void)
{
	char mode = '0';
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &mode, 1) != 1)
			mode = '0';
		close(fd);
	}
	return mode == '2';
}

/* ---- putting it in ---- */

/* A system call whose first argument is a text, and the second one flags. */
static int64_t call_with_text(struct tracee *tracee, long number, const char *text, uint64_t flags)
{
	uint64_t scratch = (tracee->registers.rsp - 512) & -8ul;
	char padded[16] = "", saved[sizeof padded];
	int error = tracee_read(tracee, scratch, saved, sizeof saved);

	memcpy(padded, text, strlen(text));
	if (!error)
		error = tracee_write(tracee, scratch, padded, sizeof padded);
	if (error)
		return error;
	int64_t result = tracee_syscall(tracee, number, scratch, flags, 0, 0, 0, 0);
	error = tracee_write(tracee, scratch, saved, sizeof saved);
	return error ? error : result;
}

static void close_in_target(struct tracee *tracee, int fd)
{
	if (fd >= 0)
		tracee_syscall(tracee, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

static int create_memfd(struct tracee *tracee, int *target_fd)
{
	char path[64];
	int64_t fd = call_with_text(tracee, SYS_memfd_create, "bugnet", MFD_CLOEXEC | 0x10 /* MFD_EXEC */);

	if (fd == -EINVAL)
		fd = call_with_text(tracee, SYS_memfd_create, "bugnet", MFD_CLOEXEC);
	if (fd < 0)
		return (int)fd;
	*target_fd = (int)fd;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", tracee->pid, (int)fd);
	int own = open(path, O_RDWR | O_CLOEXEC);
	return own < 0 ? -errno : own;
}

/* What is called so in the program's root may be something else, or nothing: then -1, for anonymous memory.
 */
static int open_zero(struct tracee *tracee)
{
	char path[64];
	struct stat status;
	int64_t fd = call_with_text(tracee, SYS_open, "/dev/zero", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", tracee->pid, (int)fd);
	if (stat(path, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 5))
		return (int)fd;
	close_in_target(tracee, (int)fd);
	return -1;
}

/* As offsets in the file addresses let neighbours become one mapping, as with anonymous memory. */
static int64_t map_exactly(struct tracee *tracee, struct range range, int protection, int zero)
{
	int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE | (zero < 0 ? MAP_ANONYMOUS : 0);
	int64_t at = tracee_syscall(tracee, SYS_mmap, range.start, range.end - range.start,
	        (uint64_t)protection, (uint64_t)flags, (uint64_t)zero, zero < 0 ? 0 : range.start);

	return at == (int64_t)range.start ? 0 : at < 0 ? at : -EEXIST;
}

static int map_in_target(struct tracee *tracee, const struct placement *placement, int target_fd)
{
	unsigned count = part_count(placement), mapped = 0;
	int zero = open_zero(tracee);
	int64_t error = 0;

	for (; !error && mapped < count; mapped += !error) {
		struct range range = part(placement, mapped);
		bool segment = mapped < placement->count;
		error = map_exactly(tracee, range, segment ? PROT_NONE : PROT_READ | PROT_WRITE, zero);
		if (!error && !segment)
			tracee_syscall(tracee, SYS_madvise, range.start, range.end - range.start,
			        MADV_DONTDUMP, 0, 0, 0);
	}
	close_in_target(tracee, zero);
	uint64_t base = placement->layouts[0].base;
	if (!error) {
		int64_t at = tracee_syscall(tracee, SYS_mmap, base, LAYOUT_PROCESS, PROT_READ | PROT_EXEC,
		        MAP_SHARED | MAP_FIXED, (uint64_t)target_fd, 0);
		error = at == (int64_t)base ? 0 : at;
	}
	while (error && mapped-- > 0) {
		struct range range = part(placement, mapped);
		tracee_syscall(tracee, SYS_munmap, range.start, range.end - range.start, 0, 0, 0, 0);
	}
	return (int)error;
}

static void fill_info(struct space *space, const struct placement *placement, const struct injection *options,
        const struct tracee *tracee, int target_fd)
{
	const struct user_regs_struct *r = &tracee->registers;
	struct info *info = space_info(space, 0);

	info->segment_count = placement->count;
	info->thread_count = (uint32_t)placement->threads;
	memcpy(info->segments, placement->layouts, sizeof info->segments);
	info->children = options->children;
	info->announce_exit = options->announce_exit;
	info->count = options->count;
	info->cpu_level = options->cpu_level;
	info->vectors = cpu_level_vectors(options->cpu_level);
	cpu_standard_form(info->standard_at);
	info->first_distance = THREAD_STRIDE;
	if (options->attachment) {
		info->adopted = options->attachment->count;
		info->filtered = options->attachment->filters == FILTERS_FORBID;
		info->sleeps = options->attachment->sleeps;
		info->assists = options->attachment->filters != FILTERS_NONE;
	}
	if (options->replay)
		info->mode = MODE_REPLAY;
	if (options->record) {
		const struct shadow_plan *shadow = &placement->shadow;
		info->mode = MODE_RECORD;
		info->dictionary_bits = options->dictionary_bits;
		info->interval = options->interval;
		info->puts_off = options->puts_off;
		info->bound = options->bound;
		info->save_call_count = options->save_call_count;
		for (uint32_t k = 0; k < options->save_call_count; k++)
			info->save_calls[k] = options->save_calls[k];
		info->low_memory = shadow->low_memory;
		info->pages = options->pages && !options->attachment;
		info->heap = placement->reach.heap;
		info->chunk = placement->reach.chunk;
		info->window_count = shadow->window_count;
		memcpy(info->windows, shadow->windows, sizeof info->windows);
		info->windowed = shadow->windowed;
		info->home_count = shadow->home_count;
		memcpy(info->homes, shadow->homes, sizeof info->homes);
		info->home_step = shadow->home_step;
		memcpy(info->distances, shadow->distances, sizeof info->distances);
		info->first_distance = shadow->distances[1];
	}
	info->memfd = target_fd;
	info->pid = tracee->pid;
	info->space = space->id;
	info->program_gs = r->gs_base;
	info->registers = registers_from_user(r);
}

static struct space *install(struct tracee *tracee, const struct placement *placement,
        const struct injection *options, char *why, size_t why_size)
{
	const struct stub_header *header = (const struct stub_header *)stub_image;
	int target_fd = -1;
	int memfd = create_memfd(tracee, &target_fd);

	if (memfd < 0)
		return NO_SPACE(why, why_size, "cannot create the code cache: %s", strerror(-memfd));
	if (ftruncate(memfd, (off_t)placement->file_size) < 0) {
		close(memfd);
		return NO_SPACE(why, why_size, "cannot size the code cache to %lu MB: %s; see 'ulimit -f'",
		        placement->file_size / MEGABYTE, strerror(errno));
	}
	struct space *space = space_create(memfd, placement->layouts, placement->count, stub_image, header,
	        cpu_level_vectors(options->cpu_level));
	if (!space) {
		close(memfd);
		return NO_SPACE(why, why_size, "no memory for the code cache: %s", strerror(errno));
	}
	int error = map_in_target(tracee, placement, target_fd);
	if (error) {
		space_destroy(space);
		close_in_target(tracee, target_fd);
		return NO_SPACE(
		        why, why_size, "cannot map the code cache: %s; see 'ulimit -v'", strerror(-error));
	}
	fill_info(space, placement, options, tracee, target_fd);
	if (options->record)
		space->mode = TRANSLATE_RECORD;
	if (options->replay)
		space->mode = TRANSLATE_REPLAY;
	space->low_memory = placement->shadow.low_memory;
	space->by_pages = space_info(space, 0)->pages;
	if (options->attachment)
		attachment_describe(options->attachment, space);
	tracee->registers.rip = placement->layouts[0].base + header->start;
	/* Not in a system call as far as the kernel is concerned: nothing to restart. */
	tracee->registers.orig_rax = (uint64_t)-1;
	return space;
}

/* Room for few threads, where each has a shadow of its own, is better than none. */
#define THREADS_SHARE 16

static bool choose_placement(struct tracee *tracee, const struct memory *memory, uint64_t vdso,
        const struct injection *options, struct placement *placement, char *why, size_t why_size)
{
	struct room room = room_of(tracee->pid, &memory->maps);
	unsigned adopted = options->attachment ? options->attachment->count : 0;
	size_t count = sizeof sizes / sizeof *sizes, first = strict_overcommit() ? 2 : 0;

	for (uint64_t share = options->record ? THREADS_SHARE : LEAST_SHARE; share >= LEAST_SHARE;
	        share /= 2) {
		for (size_t i = first; i < count; i++) {
			struct cache_size size = sizes[i];
			if (options->cache && options->cache < size.code)
				size.code = (options->cache + CODE_PAGE - 1) & -CODE_PAGE;
			size.reserved_code = options->record ? sizes[i].code : size.code;
			if (!plan_placement(tracee, &memory->maps, vdso, &size, options->record, placement))
				return fail_because(why, why_size,
				        "there is no room for the code cache between its mappings");
			if (adopted >= placement->threads)
				continue;
			if (fits_in(placement, &room, share))
				return true;
		}
	}
	if (adopted >= placement->threads)
		return fail_because(why, why_size,
		        "it has %u threads, and by its limits on memory ('ulimit -v', 'ulimit -d') there is "
		        "room for no more than %lu",
		        adopted, placement->threads - 1);
	refuse_for_room(placement, &room, why, why_size);
	return false;
}

struct space *inject(
        pid_t pid, struct memory *memory, const struct injection *options, char *why, size_t why_size)
{
	uint64_t vdso = inject_vdso(pid);
	struct tracee tracee;
	struct placement placement = {0};

	int error = maps_read(&memory->maps, memory->maps_fd);
	if (!error)
		error = tracee_init(&tracee, pid, memory->mem_fd, vdso);
	if (error)
		return NO_SPACE(why, why_size, "cannot look at it: %s", strerror(-error));
	if (tracee.registers.cs != CODE_SELECTOR_64)
		return NO_SPACE(why, why_size, "it is not a 64-bit program");
	if (options->attachment)
		tracee.registers = options->attachment->items[0].registers;

	struct space *space = NULL;
	if (choose_placement(&tracee, memory, vdso, options, &placement, why, why_size))
		space = install(&tracee, &placement, options, why, why_size);
	error = tracee_deinit(&tracee);
	memory_changed(memory);
	if (error && space) {
		space_destroy(space);
		return NO_SPACE(why, why_size, "cannot start it: %s", strerror(-error));
	}
	return space;
}

struct space *inject_at(pid_t pid, struct memory *memory, const struct segment_layout *layouts,
        unsigned count, uint64_t threads, const struct injection *options, char *why, size_t why_size)
{
	struct placement placement = {.count = count,
	        .threads = threads,
	        .file_size = layouts[count - 1].file + layouts[count - 1].size};
	struct tracee tracee;

	memcpy(placement.layouts, layouts, count * sizeof *layouts);
	int error = tracee_init(&tracee, pid, memory->mem_fd, inject_vdso(pid));
	if (error)
		return NO_SPACE(why, why_size, "cannot look at it: %s", strerror(-error));
	struct space *space = install(&tracee, &placement, options, why, why_size);
	error = tracee_deinit(&tracee);
	if (error && space) {
		space_destroy(space);
		return NO_SPACE(why, why_size, "cannot start it: %s", strerror(-error));
	}
	return space;
}

void inject_exit(pid_t pid, struct memory *memory, int status)
{
	struct tracee tracee;

	if (tracee_init(&tracee, pid, memory->mem_fd, inject_vdso(pid)) == 0)
		tracee_syscall(&tracee, SYS_exit_group, (uint64_t)status, 0, 0, 0, 0, 0);
}
