/*
 * Mappings. The program may not have the addresses we sit on, and the
 * supervisor must hear of every change to memory that holds, or may come to
 * hold, code. Code on pages that the program can write to is watched: we take
 * the write permission away before translating, and the fault that the first
 * write raises tells us (handle_fault in signals.c).
 */
#include "target/stub.h"

/* The first stretch of ours, of a segment, a shadow or a replay's notes, that lies in [start, end); end <=
 * start: none does. */
static struct range first_of_ours(uint64_t start, uint64_t end)
{
	struct process *p = process();
	struct range first = {end, 0};

	for (uint32_t i = 0; i < p->segment_count; i++) {
		uint64_t from = p->segments[i].base, to = from + p->segments[i].size;
		if (from < end && start < to && from < first.start)
			first = (struct range){from, to};
	}
	if (known_is_place(KNOWN_TABLE) && KNOWN_TABLE < end && start < KNOWN_END &&
	        KNOWN_TABLE < first.start)
		first = (struct range){KNOWN_TABLE, KNOWN_END};
	if (!recording())
		return first;
	for (uint64_t n = 1; n < p->memory.threads_ready && n < info()->windowed; n++) {
		/* Who was expelled still has what it began with: its own memory is there. */
		bool unfit = thread_is_unfit(n);
		if (unfit && !thread_is_expelled(n))
			continue;
		const struct range *windows =
		        unfit ? (const struct range *)info()->windows : p->memory.windows;
		for (uint32_t i = 0; i < (unfit ? info()->window_count : p->memory.window_count); i++) {
			struct range shadow = shadow_range(windows[i], info()->distances[n]);
			if (shadow.start < end && start < shadow.end && shadow.start < first.start)
				first = shadow;
		}
	}
	for (uint32_t i = 0; i < p->memory.fence_count; i++) {
		const struct range *fence = &p->memory.fences[i];
		if (fence->start < end && start < fence->end && fence->start < first.start)
			first = *fence;
	}
	shadow_overlaps_sparse((struct range){start, end}, &first);
	return first;
}

bool overlaps_us(uint64_t start, uint64_t size)
{
	return first_of_ours(start, start + size).end != 0;
}

/* May there be translations of what lies in [start, end)? */
static bool holds_code(uint64_t start, uint64_t end)
{
	const volatile struct info *i = info();
	uint32_t count = i->range_count;

	if (count > MAX_RANGES)
		return true;
	for (uint32_t n = 0; n < count; n++) {
		if (i->ranges[n].start < end && start < i->ranges[n].end)
			return true;
	}
	return false;
}

static void tell(struct thread *thread, uint64_t start, uint64_t end, bool protection_kept)
{
	while (ask(thread, OP_REMAPPED, start, end, protection_kept) == STATUS_SPLIT)
		leave_space(thread);
}

static void tell_remapped(struct thread *thread, uint64_t start, uint64_t end)
{
	tell(thread, start, end, false);
}

/*
 * Makes the system call in thread.regs. Between it and telling of it, the
 * supervisor's picture of the pages is wrong: nobody may watch or unwatch one
 * meanwhile, so this is done under the lock, and a signal waits for its end.
 */
static uint64_t make_call(struct thread *thread)
{
	const uint64_t *gpr = thread->regs.gpr;

	return syscall6(gpr[RAX], gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]);
}

static bool is_listed(uint64_t address)
{
	const volatile struct info *i = info();

	for (uint32_t n = 0; n < i->watched_count; n++) {
		if (address - i->watched[n] < 0x1000)
			return true;
	}
	return false;
}

/*
 * Whoever goes on in translated code comes to the stub with the next branch that is not direct: a thread that
 * writes code without a fault from now on, and calls it, must not find what was made of the code before.
 */
static void empty_tables(void)
{
	struct process *p = process();

	for (uint32_t n = 0; n < p->segment_count; n++) {
		uint64_t base = p->segments[n].base, all = BRANCH_TABLES * BRANCH_TABLE_BYTES;
		const struct info *segment = (const struct info *)(base + LAYOUT_INFO);
		if (is_error(syscall3(__NR_mprotect, base + LAYOUT_TABLE, all, K_PROT_READ | K_PROT_WRITE)))
			continue;
		for (unsigned k = 0; k < BRANCH_TABLES; k++) {
			uint64_t *table = (uint64_t *)(segment->table_base[k] * 8);
			for (unsigned i = 0; i < BRANCH_TABLE_ENTRIES &&
			                     (!k || segment->table_base[k] != segment->table_base[0]);
			        i++)
				__atomic_store_n(&table[i], segment->miss, __ATOMIC_RELAXED);
		}
	}
}

/* The supervisor is dead: all watched pages become what the program made them, once. */
void unwatch_all(void)
{
	const volatile struct info *i = info();
	uint32_t expected = WATCH_ALIVE;

	if (!__atomic_compare_exchange_n(&process()->watch_state, &expected, WATCH_ENDS, false,
	            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (i->watched_count)
		empty_tables();
	for (uint32_t n = 0; n < i->watched_count; n++)
		syscall3(__NR_mprotect, i->watched[n], 0x1000, K_PROT_READ | K_PROT_WRITE | K_PROT_EXEC);
	__atomic_store_n(&process()->watch_state, WATCH_ENDED, __ATOMIC_SEQ_CST);
}

/*
 * The supervisor is dead, and a write by the instruction at pc faulted: is it worth another try? Pages that
 * were watched may be the program's own business since: then the same fault comes again, and is one.
 */
bool write_orphaned_page(uint64_t address, uint64_t pc)
{
	struct process *p = process();

	unwatch_all();
	if (!is_listed(address))
		return false;
	if (__atomic_load_n(&p->watch_state, __ATOMIC_SEQ_CST) == WATCH_ENDS)
		return true; /* somebody is at it */
	bool again = p->orphaned_address == address && p->orphaned_pc == pc;
	p->orphaned_address = again ? 0 : address;
	p->orphaned_pc = pc;
	return !again;
}

/* Makes watched pages in [start, end) writable again. */
static void unwatch_locked(struct thread *thread, uint64_t start, uint64_t end)
{
	uint64_t status;

	while ((status = ask(thread, OP_UNWATCH, start, end, 0)) == STATUS_OK || status == STATUS_SPLIT) {
		uint64_t *reply = thread->mailbox->reply;
		if (status == STATUS_SPLIT)
			leave_space(thread);
		else
			own_call3(thread, __NR_mprotect, reply[0], reply[1] - reply[0],
			        K_PROT_READ | K_PROT_WRITE | K_PROT_EXEC);
	}
	if (supervisor_died())
		unwatch_all();
}

void unwatch_range(struct thread *thread, uint64_t start, uint64_t end)
{
	if (!holds_code(start, end))
		return;
	lock(&process()->protect_lock);
	unwatch_locked(thread, start, end);
	unlock(&process()->protect_lock);
}

/* A write by the instruction at pc faulted: because of us? Then let it happen. */
bool write_watched_page(struct thread *thread, uint64_t address, uint64_t pc)
{
	uint64_t status;

	lock(&process()->protect_lock);
	while ((status = ask(thread, OP_WRITE_FAULT, address, pc, 0)) == STATUS_SPLIT)
		leave_space(thread);
	if (status == STATUS_OK) {
		uint64_t *reply = thread->mailbox->reply;
		own_call3(thread, __NR_mprotect, reply[0], reply[1] - reply[0],
		        K_PROT_READ | K_PROT_WRITE | K_PROT_EXEC);
	} else if (supervisor_died() && write_orphaned_page(address, pc))
		status = STATUS_OK;
	unlock(&process()->protect_lock);
	return status == STATUS_OK;
}

#define PROT_ACCESS (K_PROT_READ | K_PROT_WRITE | K_PROT_EXEC)

static uint64_t pages(uint64_t size)
{
	return (size + 0xfff) & ~0xffful;
}

/*
 * While recording, memory should be where it has a shadow. The kernel may ignore the
 * address that the program would like, unless it insists on it. What is too large to
 * be used as a whole gets its shadow where it is used, see veil.c; what is only reserved may.
 */
static uint64_t map_with_shadow(struct thread *thread, uint64_t result, uint64_t size)
{
	uint64_t *gpr = thread->regs.gpr;
	bool insists = gpr[R10] & (K_MAP_FIXED | K_MAP_FIXED_NOREPLACE | K_MAP_32BIT);

	bool accessible = gpr[RDX] & PROT_ACCESS;

	if (is_error(result) || shadow_has_window(result, result + size) ||
	        (size > SHADOWED_AT_ONCE && !accessible))
		return result;
	if (gpr[RDI] && !insists) {
		uint64_t other =
		        own_call6(thread, __NR_mmap, 0, gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]);
		if (!is_error(other)) {
			own_call2(thread, __NR_munmap, result, size);
			result = other;
		}
	}
	if (accessible)
		shadow_admit(result, result + size);
	else if (!limits_are_set()) /* else when it can be accessed, and as far */
		shadow_extend(result, result + size);
	return result;
}

/* Is it to be kept without access until it is touched? Not where that would take calls which a filter may
 * forbid. */
static bool is_veiled(uint64_t size, uint64_t protection, uint64_t flags)
{
	return recording() && size > SHADOWED_AT_ONCE && (protection & PROT_ACCESS) &&
	       !(protection & K_PROT_EXEC) && !(flags & K_MAP_GROWSDOWN) && !process()->seccomp;
}

/*
 * Where it goes matters: at the distances of the first numbers, what is between these has its shadow where
 * nobody has that of his windows (shadow_plan.c), and next to the libraries it has not.
 */
#define FAR_START 0x650000000000ul
#define FAR_END   0x760000000000ul

static uint64_t map_veiled(struct thread *thread, uint64_t size)
{
	const uint64_t *gpr = thread->regs.gpr;
	bool insists = gpr[R10] & (K_MAP_FIXED | K_MAP_FIXED_NOREPLACE | K_MAP_32BIT);
	uint64_t result = -K_ENOMEM, protection = by_pages() ? gpr[RDX] : K_PROT_NONE;

	for (uint64_t at = FAR_END - size; !insists && at >= FAR_START && at < FAR_END && is_error(result);
	        at -= size)
		result = syscall6(__NR_mmap, at, gpr[RSI], protection, gpr[R10] | K_MAP_FIXED_NOREPLACE,
		        gpr[R8], gpr[R9]);
	if (is_error(result))
		result = syscall6(__NR_mmap, gpr[RDI], gpr[RSI], protection, gpr[R10], gpr[R8], gpr[R9]);
	if (!is_error(result) && !by_pages()) {
		shadow_expect(thread, result, result + size);
		veil_add(result, result + size, (uint32_t)gpr[RDX]);
	}
	return result;
}

/* Where whole pages are logged it needs no shadow, and what is too large for one is as the program has it. */
void memory_admit(struct thread *thread, uint64_t start, uint64_t end, uint32_t protection)
{
	if (!(protection & PROT_ACCESS) || shadow_has_window(start, end))
		return;
	shadow_expect(thread, start, end);
	if (!is_veiled(end - start, protection, 0) || holds_code(start, end) ||
	        syscall3(__NR_mprotect, start, end - start, K_PROT_NONE) < 0)
		shadow_admit(start, end);
	else
		veil_add(start, end, protection);
}

static void memory_mmap(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t address = regs->gpr[RDI], size = pages(regs->gpr[RSI]), flags = regs->gpr[R10];
	bool fixed = flags & K_MAP_FIXED, executable = regs->gpr[RDX] & K_PROT_EXEC;

	if (fixed && !(flags & K_MAP_FIXED_NOREPLACE) && overlaps_us(address, size)) {
		regs->gpr[RAX] = -K_ENOMEM;
		return;
	}
	/* What is mapped anywhere but over something is not known to anybody else yet. */
	bool locked = executable || (fixed && holds_code(address, address + size));
	if (locked)
		lock(&process()->protect_lock);
	bool veiled = is_veiled(size, regs->gpr[RDX], flags);
	uint64_t result = veiled ? map_veiled(thread, size) : locked ? make_call(thread) : syscall_window();
	if (recording() && !veiled) {
		if (!is_error(result))
			shadow_expect(thread, result, result + size);
		result = map_with_shadow(thread, result, size);
		if (fixed && !is_error(result))
			veil_remove(result, result + size);
	}
	if (!is_error(result) && (executable || holds_code(result, result + size)))
		tell_remapped(thread, result, result + size);
	if (locked)
		unlock(&process()->protect_lock);
	regs->gpr[RAX] = result;
}

uint64_t unmap_around_us(uint64_t start, uint64_t end)
{
	uint64_t result = 0;

	for (uint64_t at = start; at < end && result == 0;) {
		struct range ours = first_of_ours(at, end);
		uint64_t stop = ours.end ? ours.start : end;
		if (stop > at)
			result = syscall2(__NR_munmap, at, stop - at);
		at = ours.end ? ours.end : end;
	}
	return result;
}

static void memory_munmap(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t start = regs->gpr[RDI], end = start + pages(regs->gpr[RSI]);

	if (recording() && !(start & 0xfff))
		veil_remove(start, end);

	if (!holds_code(start, end)) {
		regs->gpr[RAX] =
		        overlaps_us(start, end - start) ? unmap_around_us(start, end) : syscall_window();
		return;
	}
	lock(&process()->protect_lock);
	uint64_t result = overlaps_us(start, end - start) ? unmap_around_us(start, end) : make_call(thread);
	if (result == 0)
		tell_remapped(thread, start, end);
	unlock(&process()->protect_lock);
	regs->gpr[RAX] = result;
}

static void memory_mremap(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t from = regs->gpr[RDI], from_size = pages(regs->gpr[RSI]), size = pages(regs->gpr[RDX]);
	uint64_t to = regs->gpr[R8];
	bool fixed = regs->gpr[R10] & K_MREMAP_FIXED;

	if (overlaps_us(from, from_size ? from_size : size)) {
		regs->gpr[RAX] = -K_EFAULT;
		return;
	}
	if (fixed && overlaps_us(to, size)) {
		regs->gpr[RAX] = -K_ENOMEM;
		return;
	}
	if (recording() &&
	        (veil_overlaps(from, from + from_size) || (fixed && veil_overlaps(to, to + size)))) {
		veil_end(from, from + from_size);
		if (fixed)
			veil_end(to, to + size);
	}
	bool code = holds_code(from, from + from_size);
	bool locked = code || by_pages() || (fixed && holds_code(to, to + size));
	if (by_pages())
		pages_before_remap(from, from + from_size);
	if (locked)
		lock(&process()->protect_lock);
	if (locked &&
	        process()->watches) /* a moved page takes its protection along: it must be the program's */
		unwatch_locked(thread, from, from + from_size);
	uint64_t result = locked ? make_call(thread) : syscall_window();
	if (recording() && !is_error(result))
		shadow_admit(result, result + size);
	if (!is_error(result) && code)
		tell_remapped(thread, from, from + from_size);
	if (!is_error(result) && (code || holds_code(result, result + size)))
		tell_remapped(thread, result, result + size);
	if (locked)
		unlock(&process()->protect_lock);
	regs->gpr[RAX] = result;
}

/*
 * What was reserved is about to be used. True: that was all; what is too large is without access until it is
 * touched.
 */
static bool change_veiled(struct thread *thread, uint64_t start, uint64_t size)
{
	struct registers *regs = &thread->regs;
	uint64_t protection = regs->gpr[RDX];

	if (!size || (start & 0xfff))
		return false;
	if (by_pages() && size > SHADOWED_AT_ONCE)
		return false;
	if (is_veiled(size, protection, 0) && !shadow_has_window(start, start + size) &&
	        !holds_code(start, start + size)) {
		shadow_expect(thread, start, start + size);
		regs->gpr[RAX] = syscall3(__NR_mprotect, start, size, K_PROT_NONE);
		if (!is_error(regs->gpr[RAX]))
			veil_add(start, start + size, (uint32_t)protection);
		return true;
	}
	if (protection & PROT_ACCESS) {
		shadow_expect(thread, start, start + size);
		shadow_admit(start, start + size);
		veil_release(start, start + size, (uint32_t)protection);
	} else {
		veil_remove(start, start + size);
	}
	return false;
}

/* mprotect and the like, or madvise, which changes contents under the same protection. */
static void memory_change(struct thread *thread, bool protection_kept)
{
	struct registers *regs = &thread->regs;
	uint64_t start = regs->gpr[RDI], size = pages(regs->gpr[RSI]);
	bool executable = !protection_kept && (regs->gpr[RDX] & K_PROT_EXEC);

	if (overlaps_us(start, size)) {
		regs->gpr[RAX] = -K_ENOMEM;
		return;
	}
	if (recording() && !protection_kept && change_veiled(thread, start, size))
		return;
	if (!executable && !holds_code(start, start + size)) {
		regs->gpr[RAX] = syscall_window();
		return;
	}
	lock(&process()->protect_lock);
	uint64_t result = make_call(thread);
	if (!is_error(result))
		tell(thread, start, start + size, protection_kept);
	unlock(&process()->protect_lock);
	regs->gpr[RAX] = result;
}

/* The heap's end moved: what lay behind it is gone. */
static void memory_brk(struct thread *thread)
{
	uint64_t before = syscall1(__NR_brk, 0), after = syscall_window();

	if (recording() && after > before)
		shadow_admit(before & ~0xffful, pages(after));
	if (after < before && holds_code(after, before))
		tell_remapped(thread, after, before);
	thread->regs.gpr[RAX] = after;
}

/* A sealed page cannot be watched any more, nor be given back its permission. */
static void memory_seal(struct thread *thread)
{
	uint64_t start = thread->regs.gpr[RDI];

	unwatch_range(thread, start, start + pages(thread->regs.gpr[RSI]));
	thread->regs.gpr[RAX] = syscall_window();
}

void forked_memory(struct thread *thread)
{
	if (process()->fork_changes_memory)
		tell(thread, 0, -1ul, true);
}

#define IPC_STAT 2

/* How large it is only the kernel knows. */
static void admit_shared(const struct thread *thread, uint64_t start)
{
	uint64_t status[16] = {0};

	if (!shadow_has_window(start, start + 0x1000) && !process()->seccomp &&
	        syscall3(__NR_shmctl, thread->regs.gpr[RDI], IPC_STAT, &status) == 0)
		shadow_admit(start, start + pages(status[6]));
}

static void memory_shared(struct thread *thread)
{
	bool attaches = thread->regs.gpr[RAX] == __NR_shmat;
	uint64_t result = syscall_window();

	if (recording() && attaches && !is_error(result))
		admit_shared(thread, result);

	/* Anywhere; but what we have protected stays protected. */
	if (!is_error(result))
		tell(thread, 0, -1ul, true);
	thread->regs.gpr[RAX] = result;
}

void syscall_memory(struct thread *thread, long number)
{
	switch (number) {
	case __NR_mmap:
		memory_mmap(thread);
		break;
	case __NR_munmap:
		memory_munmap(thread);
		break;
	case __NR_mremap:
		memory_mremap(thread);
		break;
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		memory_change(thread, false);
		break;
	case __NR_brk:
		memory_brk(thread);
		break;
	case K_NR_mseal:
		memory_seal(thread);
		break;
	case __NR_madvise:
		if (thread->regs.gpr[RDX] == K_MADV_DONTFORK || thread->regs.gpr[RDX] == K_MADV_WIPEONFORK)
			process()->fork_changes_memory = 1;
		/* fall through */
	case __NR_remap_file_pages:
		memory_change(thread, true);
		break;
	default:
		memory_shared(thread);
	}
}
