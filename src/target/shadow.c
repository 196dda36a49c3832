/*
 * The shadow of the program's memory: what this thread last saw there. Translated
 * code compares and mirrors (src/translate/shadow.c); here is what happens when it
 * finds a difference, and how the stub itself loads and stores for the program.
 */
#include "target/forget.h"
#include "target/stub.h"

#define LINE   64ul
#define WORDS  8
#define RUN    16 /* lines that are taken around a miss, at most */
#define COPIED 2048ul
#define FOLD   (1ul << FOLD_BIT)

/* Pieces of shadows: large ones where a thread has many; small ones next to what others have. */
#define PIECE       (64ul << 20)
#define PIECE_SMALL (1ul << 20)

#define FIRST_LOW 0x10000ul /* nobody has memory below it, as a rule */

uint64_t shadow_address(const struct thread *thread, uint64_t address)
{
	if (info()->low_memory)
		address |= FOLD;
	return address + thread->distance;
}

/* Where whole pages are logged memory is its own shadow. */
void *shadow_of(const struct thread *thread, uint64_t address)
{
	if (by_pages())
		return (void *)address;
	return (void *)shadow_address(thread, address);
}

static bool copies_by_kernel(const struct thread *thread)
{
	return (thread->mask & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS))) && !process()->seccomp;
}

/* The line as it is in memory, each word read once. */
static long read_line(const struct thread *thread, uint64_t words[WORDS], uint64_t line)
{
	if (copies_by_kernel(thread))
		return read_program(words, line, LINE);
	return load_line(words, (const void *)line);
}

/* Makes the shadow of a line what was read, and logs what differed. */
static void take_line(struct thread *thread, uint64_t here, uint64_t line, const uint64_t words[WORDS])
{
	uint64_t *shadow = shadow_of(thread, line);
	uint8_t mask = 0;

	for (unsigned i = 0; i < WORDS; i++)
		mask |= (words[i] != shadow[i]) << i;
	if (!mask)
		return;
	log_patch(thread, here, line, mask, words);
	for (unsigned i = 0; i < WORDS; i++)
		shadow[i] = words[i];
}

/* The position of the instruction that the stub performs: it is counted already. */
static uint64_t performed(const struct thread *thread)
{
	return position(thread) - 1;
}

static bool cover(const struct thread *thread, uint64_t address, uint64_t size)
{
	for (uint64_t at = address & ~0xffful; at < address + size; at += 0x1000) {
		if (!shadow_covers(thread->number, at, at + 0x1000) &&
		        !shadow_fault(thread->number, info()->low_memory ? at | FOLD : at))
			return false;
	}
	return true;
}

/* Is there a shadow to work on? Makes one where there is none yet. The kernel's half has none, and no end
 * either. */
static bool make_ready(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	if ((int64_t)address < 0)
		return false;
	if (address < FOLD && !info()->low_memory) {
		surface(thread);
		settle_x87_pc(thread); /* all code is about to be translated anew */
		if (!shadow_fold(thread, address, here))
			return false;
	}
	return cover(thread, address, size);
}

/* Where whole pages are logged: can it be read? Then it is known. */
static bool open_pages(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	uint8_t byte;

	if ((int64_t)address < 0)
		return false;
	pages_open(thread, here, address, size);
	for (uint64_t at = address; at < address + size; at = (at | 0xfff) + 1) {
		if (read_program(&byte, at, 1) < 0)
			return false;
	}
	return true;
}

bool shadow_check_at(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	uint64_t words[WORDS];

	if (by_pages())
		return open_pages(thread, here, address, size);

	if (!make_ready(thread, here, address, size))
		return false;
	for (uint64_t line = address & -LINE; line < address + size; line += LINE) {
		if (read_line(thread, words, line) < 0)
			return false;
		take_line(thread, here, line, words);
	}
	return true;
}

bool shadow_check(struct thread *thread, uint64_t address, uint64_t size)
{
	return shadow_check_at(thread, performed(thread), address, size);
}

/* Has the thread seen anything but zeros of this line since its last keyframe? */
static bool is_known(const struct thread *thread, uint64_t line)
{
	const uint64_t *shadow = shadow_of(thread, line);
	uint64_t any = 0;

	for (unsigned i = 0; i < WORDS; i++)
		any |= shadow[i];
	return any != 0;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many lines in a row are known, from `line` on by steps of `step`; none of them is `end`. */
static uint64_t known_run(const struct thread *thread, uint64_t line, uint64_t step, uint64_t end)
{
	uint64_t count = 0;

	for (; count < RUN / 2 && line != end && is_known(thread, line); line += step)
		count++;
	return count;
}

/*
 * What is taken with the lines that were missed, [*start, *end). Behind a keyframe nothing is known, and a
 * program comes back to much of what it works on, line by line: each would be a miss here, and a stop in
 * replay. Where lines in front of them are known it is on its way through memory, and twice as many are
 * likely to follow; where more are known behind them, it goes backwards. Lines here and there tell nothing.
 */
static void reach(const struct thread *thread, uint64_t *start, uint64_t *end)
{
	uint64_t page = *start & ~0xffful, page_end = (*end + 0xfff) & ~0xffful;

	uint64_t before = known_run(thread, *start - LINE, -LINE, page - LINE);
	uint64_t behind = known_run(thread, *end, LINE, page_end);

	if (before >= behind)
		*end = lesser(page_end, *end + 2 * LINE * before);
	else
		*start -= lesser(*start - page, 2 * LINE * behind);
}

/* The vdso's code, where whole pages are logged: it has a shadow all the same. */
static bool check_alone(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	uint64_t words[WORDS];

	if (!cover(thread, address, size))
		return false;
	for (uint64_t line = address & -LINE; line < address + size; line += LINE) {
		uint64_t *shadow = (uint64_t *)shadow_address(thread, line);
		uint8_t mask = 0;
		if (load_line(words, (const void *)line) < 0)
			return false;
		for (unsigned i = 0; i < WORDS; i++)
			mask |= (uint8_t)((words[i] != shadow[i]) << i);
		if (!mask)
			continue;
		log_patch(thread, here, line, mask, words);
		memcpy(shadow, words, LINE);
	}
	return true;
}

/*
 * What the program itself has just loaded, or could have: the kernel need not be asked whether that is
 * possible, also while it blocks signals.
 */
static bool check_loaded(struct thread *thread, uint64_t here, uint64_t address, uint64_t size)
{
	uint64_t words[WORDS], start = address & -LINE, end = (address + size + LINE - 1) & -LINE;

	if (by_pages())
		return check_alone(thread, here, address, size);

	/* A page next to a window may have a part of its shadow, for distances are no whole pages. What is
	 * stored for the first time may have none. */
	if (shadow_covers(thread->number, address & ~0xffful, (address + size + 0xfff) & ~0xffful))
		reach(thread, &start, &end);
	else if (!cover(thread, address, size))
		return false;
	for (uint64_t line = start; line < end; line += LINE) {
		if (load_line(words, (const void *)line) < 0)
			return false;
		take_line(thread, here, line, words);
	}
	return true;
}

/* Which bytes of the word at `at` are in [low, high). */
static uint64_t bytes_within(uint64_t at, uint64_t low, uint64_t high)
{
	uint64_t first = low > at ? low - at : 0, end = high < at + 8 ? high - at : 8;

	if (low >= at + 8 || high <= at)
		return 0;
	return (-1ul >> (64 - 8 * end)) & (-1ul << 8 * first);
}

/* The part of a line that is in [low, high), as it was read. */
static void take_part(
        struct thread *thread, uint64_t line, uint64_t low, uint64_t high, uint64_t words[WORDS])
{
	uint64_t *shadow = shadow_of(thread, line);
	uint8_t mask = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t within = bytes_within(line + 8 * i, low, high);
		words[i] = (words[i] & within) | (shadow[i] & ~within);
		mask |= (words[i] != shadow[i]) << i;
	}
	if (mask) {
		log_patch(thread, performed(thread), line, mask, words);
		for (unsigned i = 0; i < WORDS; i++)
			shadow[i] = words[i];
	}
}

/* As much as the kernel copies at once: to ask it for each line took most of the time of threads that block
 * all signals. */
static bool check_copied(struct thread *thread, uint64_t address, uint64_t end)
{
	uint64_t words[COPIED / 8];

	for (uint64_t line = address & -LINE; line < end;) {
		uint64_t size = ((end + LINE - 1) & -LINE) - line;
		size = size < COPIED ? size : COPIED;
		if (read_program(words, line, size) < 0)
			return false;
		for (uint64_t i = 0; i < size / 8; i += WORDS, line += LINE)
			take_part(thread, line, address, end, words + i);
	}
	return true;
}

/* Most of it is the same most of the time: that is found out without a look at each line. */
bool shadow_check_bytes(struct thread *thread, uint64_t address, uint64_t size)
{
	uint64_t words[WORDS], end = address + size;

	if (by_pages())
		return open_pages(thread, performed(thread), address, size);
	if (!make_ready(thread, performed(thread), address, size))
		return false;
	if (copies_by_kernel(thread))
		return check_copied(thread, address, end);
	for (uint64_t line = address & -LINE; line < end; line += LINE) {
		uint64_t whole = line >= address ? (end - line) / LINE : 0;
		if (whole > 1) {
			long same = match_lines((const void *)line, shadow_of(thread, line), whole);
			if (same < 0)
				return false;
			line += (uint64_t)same * LINE;
		}
		if (line >= end)
			break;
		if (load_line(words, (const void *)line) < 0)
			return false;
		take_part(thread, line, address, end, words);
	}
	return true;
}

/* Puts a word into the log whatever the shadow says: for what was stored there but did not happen. */
void shadow_revert(struct thread *thread, uint64_t address)
{
	uint64_t words[WORDS], line = address & -LINE, *shadow = shadow_of(thread, line);

	if (by_pages()) /* it has been put back */
		return;
	for (uint64_t end = address + 8; line < end; line += LINE) {
		if (read_line(thread, words, line) < 0)
			continue;
		shadow = shadow_of(thread, line);
		log_patch(thread, performed(thread), line, 0xff, words);
		for (unsigned i = 0; i < WORDS; i++)
			shadow[i] = words[i];
	}
}

long load_program(struct thread *thread, void *to, uint64_t from, size_t size)
{
	if (!recording())
		return read_program(to, from, size);
	if (!shadow_check(thread, from, size))
		return -K_EFAULT;
	memcpy(to, shadow_of(thread, from), size);
	return 0;
}

long store_program(struct thread *thread, uint64_t to, const void *from, size_t size)
{
	bool crosses = to / 0x1000 != (to + size - 1) / 0x1000;

	if (crosses && !can_store(to, size))
		return -K_EFAULT;
	long result = store_as_program(to, from, size);

	if (result == 0 && recording() && !by_pages() && make_ready(thread, performed(thread), to, size))
		memcpy(shadow_of(thread, to), from, size);
	return result;
}

/* ---- what translated code asks for ---- */

/*
 * The thread was to go on in the middle of translated code. When it cannot, since a signal
 * comes first or the code may change, it goes on at the program's pc there.
 */
void surface(struct thread *thread)
{
	struct code_place place;
	uint64_t target = thread->slots[SLOT_TARGET];

	if (!thread->inside || thread->inside != target)
		return;
	thread->inside = 0;
	if (!code_lookup(target, &place))
		stub_panic("no record of code at", target);
	thread->regs.pc = place.pc;
	if (!(ACCESS_WHAT(thread->slots[SLOT_DETAIL]) & ACCESS_COPY))
		thread->step_armed = 0; /* see step_again */
	thread->slots[SLOT_TARGET] = 0;
	((uint64_t *)(place.slots + thread->distance))[SLOT_POSITION] += (int64_t)place.executed;
}

/* A program that steps over the instruction comes to its start once more: nothing was executed until then. */
static void step_again(struct thread *thread)
{
	struct code_place place;

	if ((thread->regs.flags & FLAG_TF) && code_lookup(thread->inside, &place) && place.boundary)
		thread->step_armed = 0;
}

void handle_access(struct thread *thread)
{
	if (replaying()) {
		trace_access(thread);
		return;
	}
	uint64_t detail = thread->slots[SLOT_DETAIL], address = thread->slots[SLOT_ADDRESS];
	uint64_t size = ACCESS_SIZE(detail), what = ACCESS_WHAT(detail);
	uint64_t here = position(thread) + ACCESS_EXECUTED(detail);
	bool possible = true;

	thread->faulted = 0;
	thread->counted = 0;
	thread->slots[SLOT_TARGET] = thread->inside = thread->regs.pc;
	thread->missed = here + 1;
	if (!(what & ACCESS_COPY))
		step_again(thread);
	if (what & ACCESS_READ)
		possible = check_loaded(thread, here, address, size);
	/* The shadow will be copied to memory, also when an x87 exception keeps the instruction from storing.
	 */
	if (what & ACCESS_WRITE)
		possible =
		        probe_write((void *)address, size) == 0 && check_loaded(thread, here, address, size);
	if (what & ACCESS_COPY)
		write_program(address, shadow_of(thread, address), size);
	if (!possible) {
		/* It is gone meanwhile. */
		surface(thread);
		step_natively(thread);
	}
	note_code(thread, here);
	if (thread->pending)
		surface(thread);
	if ((what & ACCESS_READ) && log_due(thread, here)) {
		surface(thread);
		log_keyframe(thread);
	}
}

/* ---- mappings ---- */

/* Where its shadow is counted from; false: not in one piece. */
static bool fold_range(uint64_t *start, uint64_t *end)
{
	if (!info()->low_memory || *start >= FOLD)
		return true;
	if (*end > FOLD)
		return false;
	*start += FOLD;
	*end += FOLD;
	return true;
}

/* Where a thread has its shadow: windows are those of all that have any, a sparse shadow is its thread's. */
struct coverage {
	struct range *ranges;
	uint32_t *count;
	uint32_t most;
};

bool shadow_is_sparse(uint64_t number)
{
	return recording() && number >= info()->windowed;
}

static struct coverage windows(void)
{
	struct process_memory *memory = &process()->memory;

	return (struct coverage){memory->windows, &memory->window_count, PROCESS_WINDOWS};
}

static struct coverage sparse_of(uint64_t number)
{
	struct sparse_shadow *sparse = (struct sparse_shadow *)((char *)thread_at(number) + THREAD_SPARSE);

	return (struct coverage){sparse->ranges, &sparse->count, SPARSE_RANGES};
}

static struct coverage coverage_of(uint64_t number)
{
	return shadow_is_sparse(number) ? sparse_of(number) : windows();
}

static bool covers(struct coverage coverage, uint64_t start, uint64_t end)
{
	if (!fold_range(&start, &end))
		return false;
	for (uint32_t n = 0; n < *coverage.count; n++) {
		if (start >= coverage.ranges[n].start && end <= coverage.ranges[n].end)
			return true;
	}
	return false;
}

/* What was noted when a number was unfit already is not there for it. */
bool shadow_covers(uint64_t number, uint64_t start, uint64_t end)
{
	return covers(coverage_of(number), start, end) && !thread_is_unfit(number);
}

bool shadow_has_window(uint64_t start, uint64_t end)
{
	return covers(windows(), start, end);
}

/*
 * Makes what is reserved there memory of the blank page's kind, without a descriptor: the page is copied to
 * where the kernel likes, and the copy moved and grown, which is one step to everybody else.
 */
static bool lay_blank(struct thread *thread, uint64_t start, uint64_t size)
{
	uint64_t blank = process()->segments[0].base + LAYOUT_BLANK;
	uint64_t copy = own_call6(thread, __NR_mremap, blank, BLANK_BYTES, BLANK_BYTES,
	        K_MREMAP_MAYMOVE | K_MREMAP_DONTUNMAP, 0, 0);

	if (is_error(copy))
		return false;
	if (own_call6(thread, __NR_mremap, copy, BLANK_BYTES, size, K_MREMAP_MAYMOVE | K_MREMAP_FIXED, start,
	            0) == (long)start)
		return true;
	own_call2(thread, __NR_munmap, copy, BLANK_BYTES);
	return false;
}

/* A filter of the program's may know nothing of mremap: then it is memory like any. */
static bool lay_anonymous(struct thread *thread, uint64_t start, uint64_t size)
{
	return own_call3(thread, __NR_mprotect, start, size, K_PROT_READ | K_PROT_WRITE) == 0 &&
	       own_call3(thread, __NR_madvise, start, size, K_MADV_DONTDUMP) == 0;
}

/* Without access: a thread that gets there faults. */
static bool reserve_range(struct range range)
{
	uint64_t size = range.end - range.start;

	limits_reserve(LIMIT_DATA, (int64_t)size);
	uint64_t at = own_call6(thread_here(), __NR_mmap, range.start, size, K_PROT_NONE,
	        K_MAP_PRIVATE | K_MAP_ANONYMOUS | K_MAP_NORESERVE | K_MAP_FIXED_NOREPLACE, -1, 0);
	if (at == range.start)
		return true;
	if (!is_error(at)) /* a kernel that takes the address for a wish */
		own_call2(thread_here(), __NR_munmap, at, size);
	limits_reserve(LIMIT_DATA, -(int64_t)size);
	return false;
}

static bool lay_range(struct range range)
{
	struct thread *thread = thread_here();
	uint64_t size = range.end - range.start;

	return lay_blank(thread, range.start, size) || lay_anonymous(thread, range.start, size);
}

/*
 * The next part of a thread's shadow of `window`, from *at on, that the first `count` ranges have not
 * brought: ranges that touch share a page of shadow at least, since distances are no whole pages.
 */
static bool next_gap(const struct range *ranges, uint32_t count, struct range window, uint64_t distance,
        uint64_t *at, struct range *gap)
{
	struct range shadow = shadow_range(window, distance);

	if (*at < shadow.start)
		*at = shadow.start;
	gap->end = shadow.end;
	for (uint32_t n = 0; n < count; n++) {
		struct range other = shadow_range(ranges[n], distance);
		if (other.start <= *at && *at < other.end) {
			*at = other.end;
			n = UINT32_MAX; /* look at all of them once more */
			gap->end = shadow.end;
		} else if (*at < other.start && other.start < gap->end) {
			gap->end = other.start;
		}
	}
	gap->start = *at;
	*at = gap->end;
	return gap->start < shadow.end;
}

/* Takes back what reserve_shadow has reserved below `end`. */
static void unmap_shadow(
        const struct range *ranges, uint32_t count, struct range window, uint64_t distance, uint64_t end)
{
	struct range gap;

	for (uint64_t at = 0; next_gap(ranges, count, window, distance, &at, &gap) && gap.start < end;) {
		own_call2(thread_here(), __NR_munmap, gap.start, gap.end - gap.start);
		limits_reserve(LIMIT_DATA, -(int64_t)(gap.end - gap.start));
	}
}

/* For one thread, which has the first `count` ranges. */
static bool reserve_shadow(const struct range *ranges, uint32_t count, struct range window, uint64_t distance)
{
	struct range gap;

	for (uint64_t at = 0; next_gap(ranges, count, window, distance, &at, &gap);) {
		if (!reserve_range(gap)) {
			unmap_shadow(ranges, count, window, distance, gap.start);
			return false;
		}
	}
	return true;
}

static bool lay_shadow(const struct range *ranges, uint32_t count, struct range window, uint64_t distance)
{
	struct range gap;
	bool done = true;

	for (uint64_t at = 0; done && next_gap(ranges, count, window, distance, &at, &gap);)
		done = lay_range(gap);
	return done;
}

static bool map_shadow(const struct range *ranges, uint32_t count, struct range window, uint64_t distance)
{
	if (!reserve_shadow(ranges, count, window, distance))
		return false;
	if (lay_shadow(ranges, count, window, distance))
		return true;
	unmap_shadow(ranges, count, window, distance, UINT64_MAX);
	return false;
}

static void extend_range(struct range *range, struct range by)
{
	if (by.start < range->start)
		__atomic_store_n(&range->start, by.start, __ATOMIC_RELEASE);
	if (by.end > range->end)
		__atomic_store_n(&range->end, by.end, __ATOMIC_RELEASE);
}

/* Others look at ranges at any time: what they see of one that grows is always all there. */
static void note_range(struct coverage coverage, struct range range)
{
	for (uint32_t n = 0; n < *coverage.count; n++) {
		struct range *other = &coverage.ranges[n];
		if (range.start <= other->end && range.end >= other->start) {
			extend_range(other, range);
			return;
		}
	}
	coverage.ranges[*coverage.count] = range;
	__atomic_store_n(coverage.count, *coverage.count + 1, __ATOMIC_RELEASE);
}

static void unmap_all(const struct range *ranges, uint32_t count, uint64_t distance)
{
	while (count-- > 0)
		unmap_shadow(ranges, count, ranges[count], distance, UINT64_MAX);
}

static bool wraps(struct range range, uint64_t distance)
{
	return range.start + distance > range.start;
}

/*
 * There is no room for the shadow that this number would have of the window. One that is free is not used
 * again; a thread that has it must leave before the program has the memory, or its shadow would be what is
 * there instead, which no fault tells. False: somebody has it, and it is not insisted on.
 */
static bool give_number_up(uint64_t number, bool insists, bool *expels)
{
	const struct process_memory *memory = &process()->memory;

	if (thread_retire(number)) {
		unmap_all(memory->windows, memory->window_count, info()->distances[number]);
		return true;
	}
	if (insists) {
		thread_expel(number);
		*expels = true;
	}
	return insists;
}

static uint64_t windowed_end(void)
{
	uint64_t ready = process()->memory.threads_ready;

	return ready < info()->windowed ? ready : info()->windowed;
}

#define MOST_MAPPINGS 32000 /* of shadows, half of those that a program has, as a rule */

/*
 * Room for all that have windows, without access. What was reserved can be taken back, since nobody can have
 * used it.
 */
static bool reserve_window(struct range window, bool insists, bool *expels)
{
	uint64_t mappings = 0;
	const struct process_memory *memory = &process()->memory;
	const struct range *all = memory->windows;
	uint32_t count = memory->window_count;
	bool full = count == PROCESS_WINDOWS || wraps(window, info()->distances[1]);

	if (full && !insists)
		return false;
	for (uint64_t number = 1; number < windowed_end(); number++) {
		if (thread_is_unfit(number))
			continue;
		mappings += count + 1;
		if ((!full && mappings <= MOST_MAPPINGS &&
		            reserve_shadow(all, count, window, info()->distances[number])) ||
		        give_number_up(number, insists, expels))
			continue;
		while (--number >= 1) {
			if (!thread_is_unfit(number))
				unmap_shadow(all, count, window, info()->distances[number], UINT64_MAX);
		}
		return false;
	}
	return !full;
}

static void lay_window(struct range window, bool *expels)
{
	const struct process_memory *memory = &process()->memory;

	for (uint64_t number = 1; number < windowed_end(); number++) {
		if (thread_is_unfit(number) ||
		        lay_shadow(memory->windows, memory->window_count, window, info()->distances[number]))
			continue;
		unmap_shadow(
		        memory->windows, memory->window_count, window, info()->distances[number], UINT64_MAX);
		give_number_up(number, true, expels);
	}
}

/*
 * All that the program can access is in windows, and every number that a thread has, or may get, has the
 * shadow of all windows: so nobody can come to memory whose shadow is where somebody else has his. That is
 * made sure of before the memory can be accessed, or before anybody knows of it: room for all, then those
 * leave that have none, then it is made accessible, and noted, so that whoever forgets finds it (see
 * wait_for_windows).
 */
static bool add_window(struct range window, bool insists)
{
	struct process *p = process();
	bool expels = false;

	__atomic_store_n(&p->adds_window, 1, __ATOMIC_SEQ_CST);
	bool room = reserve_window(window, insists, &expels);
	if (room)
		lay_window(window, &expels);
	if (expels)
		expel_threads();
	if (room) {
		note_range(windows(), window);
		veils_lift(window);
	}
	__atomic_store_n(&p->adds_window, 0, __ATOMIC_SEQ_CST);
	return room;
}

/* A thread may have used a window that is not noted yet, and is about to forget what it knows. */
static void wait_for_windows(void)
{
	struct process *p = process();

	if (!__atomic_load_n(&p->adds_window, __ATOMIC_SEQ_CST))
		return;
	lock(&p->thread_lock);
	unlock(&p->thread_lock);
}

/* Before it is known that there is low memory, an access to its shadow faults: see shadow_fold. */
static bool is_out_of_reach(uint64_t start)
{
	return start < FOLD && !info()->low_memory;
}

bool shadow_add_window(uint64_t start, uint64_t end, bool insists)
{
	if (is_out_of_reach(start) || !fold_range(&start, &end))
		return false;
	return covers(windows(), start, end) ||
	       add_window((struct range){start & ~0xffful, (end + 0xfff) & ~0xffful}, insists);
}

static bool extend(uint64_t start, uint64_t end, bool insists)
{
	struct process *p = process();

	if (shadow_has_window(start, end))
		return true;
	if (is_on_its_own() || is_out_of_reach(start) || !fold_range(&start, &end))
		return false;
	lock(&p->thread_lock);
	bool done = covers(windows(), start, end) ||
	            add_window((struct range){start & ~0xffful, (end + 0xfff) & ~0xffful}, insists);
	unlock(&p->thread_lock);
	return done;
}

bool shadow_extend(uint64_t start, uint64_t end)
{
	return extend(start, end, false);
}

/*
 * The program has low memory where a distance may lead to some place, and not out of the address space: what
 * it runs is translated for that at once. Memory further below is used by programs that have a little of it,
 * if at all, and is found by the fault.
 */
void shadow_expect(struct thread *thread, uint64_t start, uint64_t end)
{
	if (!is_out_of_reach(start) || end <= info()->heap)
		return;
	settle_x87_pc(thread);
	if (ask(thread, OP_LOW_MEMORY, 0, 0, 0) == STATUS_OK)
		extend(FIRST_LOW, info()->heap, true);
}

/*
 * How much is made a window at a time: little where the program has touched nothing else, or its shadow would
 * be in the way of others', and more where it goes on from what it has. Many small ones would be too many.
 */
#define MANY_WINDOWS (PROCESS_WINDOWS / 3)

static uint64_t piece_at(uint64_t start, uint64_t end)
{
	const struct process_memory *memory = &process()->memory;
	uint64_t piece = info()->chunk < PIECE_SMALL ? info()->chunk : PIECE_SMALL;

	if (memory->window_count >= MANY_WINDOWS)
		return info()->chunk;
	/* Where memory is limited every number has to get by with little. */
	if (limits_are_set())
		return 0x1000;
	if (!fold_range(&start, &end))
		return piece;
	for (uint32_t n = 0; n < memory->window_count; n++) {
		struct range window = memory->windows[n];
		if (start > window.end + piece || end + piece < window.start)
			continue;
		while (piece < PIECE && piece < info()->chunk && 2 * piece <= window.end - window.start)
			piece *= 2;
	}
	return piece;
}

/* With what is around it, where there is room for that: the program may well go on there. */
void shadow_admit(uint64_t start, uint64_t end)
{
	if (start >= end || shadow_has_window(start, end))
		return;
	uint64_t piece = piece_at(start, end);
	if (!extend(start & -piece, (end + piece - 1) & -piece, false))
		extend(start, end, true);
}

/* The same for an access, by who has thread_lock: what begins on the page may end on the next one. */
void shadow_make_window(uint64_t address)
{
	uint64_t page = address & ~0xffful, piece = piece_at(address, address + 1);

	if (!shadow_has_window(address, address + 1) &&
	        !shadow_add_window(address & -piece, (address & -piece) + piece, false) &&
	        !shadow_add_window(page, page + 0x2000, true))
		shadow_add_window(page, page + 0x1000, true);
}

/*
 * Where a load looks at the shadow first, there may be no memory at all: the load itself will say so. A
 * folded address does not tell which of two it was.
 */
bool shadow_is_needed(uint64_t address)
{
	uint8_t byte;

	return read_program(&byte, address, 1) == 0 ||
	       (info()->low_memory && read_program(&byte, address & ~FOLD, 1) == 0);
}

/* ---- sparse shadows ---- */

#define PIECE_LARGE  (1ul << 30)
#define TOGETHER_GAP (4ul << 30)
#define FENCED_BYTES (48ul << 30)

/* Where sparse shadows are, roughly: who looks for what is ours need not look at each of thousands. */
static void note_together(struct range range)
{
	struct process_memory *memory = &process()->memory;
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t n = 0; n < memory->sparse_count; n++) {
		const struct range *other = &memory->sparse[n];
		uint64_t growth = (range.start < other->start ? other->start - range.start : 0) +
		                  (range.end > other->end ? range.end - other->end : 0);
		if (growth < least)
			best = n, least = growth;
	}
	if (least > TOGETHER_GAP && memory->sparse_count < SPARSE_TOGETHER) {
		memory->sparse[memory->sparse_count] = range;
		__atomic_store_n(&memory->sparse_count, memory->sparse_count + 1, __ATOMIC_RELEASE);
	} else {
		extend_range(&memory->sparse[best], range);
	}
}

static bool add_sparse(uint64_t number, uint64_t address, uint64_t size)
{
	struct coverage coverage = sparse_of(number);
	uint64_t distance = info()->distances[number];
	struct range range = {address & -size, (address & -size) + size};

	if (size == 0x1000)
		range.end += 0x1000; /* what begins on the page may end on the next one */
	if (*coverage.count == coverage.most || wraps(range, distance) || !limits_leave_room(size))
		return false;
	note_together(range);
	if (!map_shadow(coverage.ranges, *coverage.count, range, distance))
		return false;
	note_range(coverage, range);
	return true;
}

/*
 * Programs that came to have low memory only when they ran, as those with AddressSanitizer do, touch memory
 * all over terabytes: sooner or later the shadow of some would be where another thread has that of other
 * memory, which no fault tells (docs/architecture.md, Open). With windows that is rarer.
 */
static bool is_folded_late(void)
{
	const volatile struct info *i = info();

	for (uint32_t n = 0; n < i->window_count; n++) {
		if (i->windows[n].start <= FOLD && FOLD < i->windows[n].end)
			return false;
	}
	return i->low_memory;
}

static bool extend_sparse(uint64_t number, uint64_t address)
{
	struct process *p = process();
	struct coverage coverage = sparse_of(number);

	if (is_on_its_own() || is_folded_late())
		return false;
	lock(&p->thread_lock);
	bool done = add_sparse(number, address, *coverage.count > coverage.most / 2 ? PIECE_LARGE : PIECE) ||
	            add_sparse(number, address, PIECE_SMALL) || add_sparse(number, address, 0x1000);
	unlock(&p->thread_lock);
	return done;
}

/*
 * Memory that is a multiple of the homes' step away from a home has its shadow, for one thread, where another
 * thread has that of its home: the program gets none there. It takes new memory from below the first segment
 * downwards.
 */
static void fence_off(void)
{
	struct process *p = process();
	const volatile struct info *i = info();
	uint64_t end = i->homes[0].start, start = end - FENCED_BYTES;

	for (uint32_t n = 0; n < i->home_count; n++) {
		uint64_t home = i->homes[n].start, size = i->homes[n].end - home, step = i->home_step;
		uint64_t first = home >= start ? start + (home - start) % step
		                               : home + (start - home + step - 1) / step * step;
		for (uint64_t at = first; at + size <= end; at += step) {
			struct range fence = {at & ~0xffful, (at + size + 0xfff) & ~0xffful};
			if (p->memory.fence_count == MAX_FENCES || !limits_leave_room(size))
				return;
			limits_reserve(LIMIT_SPACE, (int64_t)(fence.end - fence.start));
			uint64_t got = own_call6(current_thread(), __NR_mmap, fence.start,
			        fence.end - fence.start, 0,
			        K_MAP_PRIVATE | K_MAP_ANONYMOUS | K_MAP_NORESERVE | K_MAP_FIXED_NOREPLACE, -1,
			        0);
			if (got == fence.start)
				p->memory.fences[p->memory.fence_count++] = fence;
			else
				limits_reserve(LIMIT_SPACE, -(int64_t)(fence.end - fence.start));
		}
	}
}

static uint64_t bytes_of(const struct range *ranges, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < count; n++)
		sum += ranges[n].end - ranges[n].start;
	return sum;
}

/* The homes, from which its thread begins. */
static bool map_homes(uint64_t number)
{
	const struct info *i = (const struct info *)info();
	uint64_t distance = i->distances[number];

	if (is_folded_late() || !limits_leave_room(bytes_of(i->homes, i->home_count)))
		return false;
	if (!process()->memory.sparse_count)
		fence_off();
	for (uint32_t n = 0; n < i->home_count; n++) {
		note_together(i->homes[n]);
		if (!map_shadow(i->homes, n, i->homes[n], distance)) {
			unmap_all(i->homes, n, distance);
			return false;
		}
	}
	struct coverage coverage = sparse_of(number);
	for (uint32_t n = 0; n < i->home_count; n++)
		note_range(coverage, i->homes[n]);
	return true;
}

bool shadow_overlaps_sparse(struct range range, struct range *first)
{
	const struct process_memory *memory = &process()->memory;
	bool found = false;

	for (uint64_t number = info()->windowed; number < memory->threads_ready; number++) {
		uint64_t distance = info()->distances[number];
		bool near = false;
		for (uint32_t n = 0; n < memory->sparse_count && !near; n++) {
			struct range shadow = shadow_range(memory->sparse[n], distance);
			near = shadow.start < range.end && range.start < shadow.end;
		}
		if (!near || thread_is_unfit(number))
			continue;
		struct coverage coverage = sparse_of(number);
		for (uint32_t n = 0; n < *coverage.count; n++) {
			struct range shadow = shadow_range(coverage.ranges[n], distance);
			if (shadow.start < range.end && range.start < shadow.end &&
			        shadow.start < first->start) {
				*first = shadow;
				found = true;
			}
		}
	}
	return found;
}

/* ---- what comes later ---- */

bool shadow_fault(uint64_t number, uint64_t address)
{
	uint8_t byte;

	if (address < FOLD)
		return false;
	/* Another thread may have made it meanwhile: then the access is simply made again. */
	if (shadow_covers(number, address, address + 64))
		return read_program(&byte, address + info()->distances[number], 1) == 0;
	if (thread_is_unfit(number))
		return false;
	if (shadow_is_sparse(number))
		return extend_sparse(number, address);
	if (is_on_its_own())
		return false;
	/* It is folded. Where the program has no memory nobody leaves for it: the access will fault. */
	uint64_t page = address & ~0xffful, piece = piece_at(address, address + 1);
	bool insists = read_program(&byte, address, 1) == 0 ||
	               (info()->low_memory && read_program(&byte, address - FOLD, 1) == 0);
	return (extend(address & -piece, (address & -piece) + piece, false) ||
	               extend(page, page + 0x2000, insists) || shadow_has_window(page, page + 0x1000)) &&
	       !thread_is_unfit(number);
}

bool shadow_fold(struct thread *thread, uint64_t address, uint64_t here)
{
	uint64_t words[WORDS];

	if (ask(thread, OP_LOW_MEMORY, 0, 0, 0) != STATUS_OK)
		return false;
	extend(FIRST_LOW, info()->heap, true); /* most of what is low is there */
	if (!cover(thread, address, 32))
		return false;
	/* What was stored in memory just now has not come to the shadow. */
	for (uint64_t line = address & -LINE; line < address + 32; line += LINE) {
		if (read_line(thread, words, line) < 0)
			continue;
		log_patch(thread, here, line, 0xff, words);
		memcpy(shadow_of(thread, line), words, LINE);
	}
	return true;
}

/* The supervisor has made those of the first thread. The heap may be anywhere. */
void shadow_start(void)
{
	struct process *p = process();
	const volatile struct info *i = info();

	p->memory.window_count = i->window_count;
	for (uint32_t n = 0; n < i->window_count; n++) {
		p->memory.windows[n] = (struct range){i->windows[n].start, i->windows[n].end};
		struct range shadow = shadow_range(p->memory.windows[n], i->distances[1]);
		limits_reserve(LIMIT_DATA, (int64_t)(shadow.end - shadow.start));
	}
	uint64_t heap = syscall1(__NR_brk, 0) & ~0xffful;
	if (!shadow_has_window(heap, heap + 0x1000))
		shadow_extend(heap, heap + i->heap);
}

/* Whole pages are given back to the system; bytes at the edges share theirs with other memory. */
static void empty(uint64_t from, uint64_t to)
{
	uint64_t start = (from + 0xfff) & ~0xffful, end = to & ~0xffful;

	if (start >= end) {
		memset((void *)from, 0, to - from);
		return;
	}
	memset((void *)from, 0, start - from);
	syscall3(__NR_madvise, start, end - start, K_MADV_DONTNEED);
	memset((void *)end, 0, to - end);
}

/*
 * What there is of it: the rest of a sparse shadow is as good as empty. Whole pages of shadow are there,
 * which have a part of what is next to the range that they are for.
 */
static void empty_parts(const struct thread *thread, struct range range)
{
	struct coverage coverage = coverage_of(thread->number);
	uint64_t from = range.start + thread->distance, to = range.end + thread->distance;

	for (uint32_t n = 0; n < *coverage.count; n++) {
		struct range shadow = shadow_range(coverage.ranges[n], thread->distance);
		uint64_t start = from > shadow.start ? from : shadow.start;
		uint64_t end = to < shadow.end ? to : shadow.end;
		if (start < end)
			empty(start, end);
	}
}

/* After a system call: is there memory that the thread has not seen yet? Then its shadow is empty. */
bool shadow_forget(struct thread *thread, uint64_t number, const uint64_t arguments[6], uint64_t result)
{
	struct forgotten range = forgotten_by(number, arguments, result);

	wait_for_windows();
	/* One that was expelled has no shadow of what came since, and is about to leave. */
	if (thread_is_unfit(thread->number))
		return false;
	/* What is ours was not unmapped, whatever the program was told; and the shadow of that is ours, too.
	 */
	if (by_pages())
		return range.end > range.start && !overlaps_us(range.start, range.end - range.start);
	if (range.end <= range.start || process()->seccomp ||
	        overlaps_us(range.start, range.end - range.start) ||
	        (!shadow_is_sparse(thread->number) && !shadow_has_window(range.start, range.end)))
		return false;
	struct range folded = {range.start, range.end};
	if (!fold_range(&folded.start, &folded.end))
		return false;
	empty_parts(thread, folded);
	return true;
}

/* The stub's own pages in the shadow of a segment. */
static struct range own_pages(const struct thread *thread, uint32_t segment, bool keep_image)
{
	uint64_t own = process()->segments[segment].base + LAYOUT_THREADS + thread->distance;
	uint64_t end = keep_image && segment == 0 ? image_range(thread).end : own + THREAD_STRIDE;

	return (struct range){own & ~0xffful, (end + 0xfff) & ~0xffful};
}

static bool give_back(uint64_t start, uint64_t end)
{
	if (process()->seccomp)
		return ask(current_thread(), OP_CLEAR, start, end, 0) == STATUS_OK;
	return syscall3(__NR_madvise, start, end - start, K_MADV_DONTNEED) == 0;
}

/* Everything but these. */
static bool empty_around_us(const struct thread *thread, uint64_t start, uint64_t end, bool keep_image)
{
	for (uint32_t i = 0; i < process()->segment_count; i++) {
		struct range own = own_pages(thread, i, keep_image);
		if (own.start < start || own.start >= end)
			continue;
		return empty_around_us(thread, start, own.start, keep_image) &&
		       empty_around_us(thread, own.end, end, keep_image);
	}
	return start >= end || give_back(start, end);
}

bool shadow_forget_all(struct thread *thread, bool keep_image)
{
	struct coverage coverage = coverage_of(thread->number);
	bool done = true;

	wait_for_windows();
	if (thread_is_unfit(thread->number))
		return false;
	for (uint32_t n = 0; done && n < *coverage.count; n++) {
		struct range shadow = shadow_range(coverage.ranges[n], thread->distance);
		done = empty_around_us(thread, shadow.start, shadow.end, keep_image);
	}
	return done;
}

bool shadow_map(uint64_t number)
{
	const struct process_memory *memory = &process()->memory;
	uint64_t distance = info()->distances[number];

	if (shadow_is_sparse(number))
		return map_homes(number);
	if (!limits_leave_room(bytes_of(memory->windows, memory->window_count)))
		return false;
	for (uint32_t n = 0; n < memory->window_count; n++) {
		if (!map_shadow(memory->windows, n, memory->windows[n], distance)) {
			unmap_all(memory->windows, n, distance);
			return false;
		}
	}
	return true;
}
