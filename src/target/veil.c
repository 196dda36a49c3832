/*
 * Veils. While recording, all that the program can access is in windows, for which every number has its
 * shadow (see add_window in shadow.c). Some programs reserve terabytes and touch a little of that here and
 * there, as those with AddressSanitizer do; there is no room for the shadow of all of it. So such memory is
 * kept without access, and where it is touched, by the program or by the kernel for it, a window is made
 * first.
 *
 * Within a veil what is in windows can be accessed, and nothing else can. thread_lock guards all of it.
 */
#include "target/stub.h"

#define PAGE 0x1000ul

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct veil *veil_at(uint64_t address)
{
	struct process_memory *memory = &process()->memory;

	for (uint32_t n = 0; n < memory->veil_count; n++) {
		if (address - memory->veils[n].start < memory->veils[n].end - memory->veils[n].start)
			return &memory->veils[n];
	}
	return NULL;
}

bool veil_overlaps(uint64_t start, uint64_t end)
{
	const struct process_memory *memory = &process()->memory;

	for (uint32_t n = 0; n < memory->veil_count; n++) {
		if (memory->veils[n].start < end && start < memory->veils[n].end)
			return true;
	}
	return false;
}

/* Windows of low memory are folded: a place may be that of either. */
static void lift_part(const struct veil *veil, struct range window)
{
	uint64_t start = greater(veil->start, window.start), end = lesser(veil->end, window.end);

	if (start < end && !veil->lifted)
		own_call3(thread_here(), __NR_mprotect, start, end - start, veil->protection);
}

void veils_lift(struct range window)
{
	const struct process_memory *memory = &process()->memory;
	uint64_t fold = 1ul << FOLD_BIT;

	for (uint32_t n = 0; n < memory->veil_count; n++) {
		if (memory->veils[n].end > fold || !info()->low_memory)
			lift_part(&memory->veils[n], window);
		if (memory->veils[n].start < fold && info()->low_memory && window.start >= fold)
			lift_part(&memory->veils[n], (struct range){window.start - fold, window.end - fold});
	}
}

static void lift_windows(void)
{
	const struct process_memory *memory = &process()->memory;

	for (uint32_t n = 0; n < memory->window_count; n++)
		veils_lift(memory->windows[n]);
}

static void remove_locked(uint64_t start, uint64_t end)
{
	struct process_memory *memory = &process()->memory;

	for (uint32_t n = memory->veil_count; n-- > 0;) {
		struct veil *veil = &memory->veils[n], behind = *veil;
		if (veil->start >= end || start >= veil->end)
			continue;
		behind.start = end;
		veil->end = start > veil->start ? start : veil->start;
		if (veil->start == veil->end)
			*veil = behind.start < behind.end ? behind : memory->veils[--memory->veil_count];
		else if (behind.start < behind.end && memory->veil_count < MAX_VEILS)
			memory->veils[memory->veil_count++] = behind;
	}
}

static void add_locked(struct veil veil)
{
	struct process_memory *memory = &process()->memory;

	memory->veils[memory->veil_count] = veil;
	__atomic_store_n(&memory->veil_count, memory->veil_count + 1, __ATOMIC_RELEASE);
}

/* All of it can be accessed, or is about to. */
void veil_release(uint64_t start, uint64_t end, uint32_t protection)
{
	struct process *p = process();
	const struct process_memory *memory = &p->memory;
	struct veil released = {UINT64_MAX, 0, protection, 1};

	if (!veil_overlaps(start, end))
		return;
	lock(&p->thread_lock);
	for (uint32_t n = 0; n < memory->veil_count; n++) {
		if (memory->veils[n].start < end && start < memory->veils[n].end) {
			released.start = lesser(released.start, greater(start, memory->veils[n].start));
			released.end = greater(released.end, lesser(end, memory->veils[n].end));
		}
	}
	remove_locked(start, end);
	if (released.start < released.end && memory->veil_count < MAX_VEILS)
		add_locked(released);
	unlock(&p->thread_lock);
}

void veil_remove(uint64_t start, uint64_t end)
{
	if (!veil_overlaps(start, end))
		return;
	lock(&process()->thread_lock);
	remove_locked(start, end);
	unlock(&process()->thread_lock);
}

void veil_add(uint64_t start, uint64_t end, uint32_t protection)
{
	struct process *p = process();

	lock(&p->thread_lock);
	remove_locked(start, end);
	bool room = p->memory.veil_count < MAX_VEILS;
	if (room) {
		add_locked((struct veil){start, end, protection, 0});
		lift_windows();
	}
	unlock(&p->thread_lock);
	if (!room) {
		shadow_admit(start, end);
		own_call3(current_thread(), __NR_mprotect, start, end - start, protection);
	}
}

static void lift_all(struct veil *veil)
{
	own_call3(thread_here(), __NR_mprotect, veil->start, veil->end - veil->start, veil->protection);
	veil->lifted = 1;
}

/* All of it is to be accessible: whoever has no room for that leaves. */
void veil_end(uint64_t start, uint64_t end)
{
	struct process *p = process();

	lock(&p->thread_lock);
	for (uint32_t n = 0; n < p->memory.veil_count; n++) {
		struct veil *veil = &p->memory.veils[n];
		if (veil->start >= end || start >= veil->end || veil->lifted)
			continue;
		shadow_add_window(veil->start, veil->end, true);
		lift_all(veil);
	}
	unlock(&p->thread_lock);
}

static bool permits(const struct veil *veil, bool writes)
{
	return veil->protection & (writes ? K_PROT_WRITE : K_PROT_READ | K_PROT_WRITE);
}

static bool touch_veil(uint64_t address, bool writes)
{
	struct veil *veil = veil_at(address);
	bool permitted = veil && permits(veil, writes);

	if (!permitted || veil->lifted)
		return permitted;
	shadow_make_window(address);
	/* Is there no room for another window? Then nobody is left who would need one. */
	if (!shadow_has_window(address, address + 1))
		lift_all(veil);
	return true;
}

bool veil_touched(uint64_t address, uint64_t size, bool writes)
{
	struct process *p = process();
	bool any = false;

	if (!p->memory.veil_count)
		return false;
	lock(&p->thread_lock);
	for (uint64_t at = address; at < address + size; at = (at + PAGE) & -PAGE)
		any |= touch_veil(at, writes);
	unlock(&p->thread_lock);
	return any;
}

/* It has nothing of ours to wait with. */
bool veil_touched_natively(uint64_t address, bool writes)
{
	struct process *p = process();
	uint32_t expected = LOCK_FREE;

	if (!p->memory.veil_count)
		return false;
	while (!__atomic_compare_exchange_n(
	        &p->thread_lock, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		expected = LOCK_FREE;
		__builtin_ia32_pause();
	}
	p->lifted_natively = 1;
	bool touched = touch_veil(address, writes);
	p->lifted_natively = 0;
	unlock(&p->thread_lock);
	return touched;
}

/* ---- system calls ---- */

struct io_vector {
	uint64_t base, size;
};

#define MOST_VECTORS 1024

static void touch_vectors(uint64_t at, uint64_t count)
{
	struct io_vector vector;

	for (uint64_t i = 0; i < lesser(count, MOST_VECTORS); i++) {
		if (read_program(&vector, at + i * sizeof vector, sizeof vector) < 0)
			return;
		if (vector.size <= SHADOWED_AT_ONCE)
			veil_touched(vector.base, vector.size, false);
	}
}

/* Memory that is only spoken of is not touched. */
static bool speaks_of_memory(uint64_t number)
{
	switch (number) {
	case __NR_mmap:
	case __NR_munmap:
	case __NR_mremap:
	case __NR_mprotect:
	case __NR_pkey_mprotect:
	case __NR_madvise:
	case __NR_mincore:
	case __NR_msync:
	case __NR_brk:
		return true;
	default:
		return false;
	}
}

/*
 * The kernel would find no access, and some calls go on with less then, without an error. Any argument may be
 * an address, and any other one how much there is.
 */
void veils_lift_for_call(struct thread *thread, uint64_t number)
{
	const uint64_t *gpr = thread->regs.gpr;
	const uint64_t arguments[6] = {gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]};
	uint64_t message[7];

	if (speaks_of_memory(number))
		return;
	for (unsigned i = 0; i < 6; i++) {
		uint64_t size = PAGE;
		if (!veil_at(arguments[i]))
			continue;
		for (unsigned k = 0; k < 6; k++) {
			if (k != i && arguments[k] > size && arguments[k] <= SHADOWED_AT_ONCE)
				size = arguments[k];
		}
		veil_touched(arguments[i], size, false);
	}
	switch (number) {
	case __NR_readv:
	case __NR_writev:
	case __NR_preadv:
	case __NR_pwritev:
	case __NR_preadv2:
	case __NR_pwritev2:
	case __NR_vmsplice:
	case __NR_process_vm_readv:
	case __NR_process_vm_writev:
		touch_vectors(gpr[RSI], gpr[RDX]);
		break;
	case __NR_sendmsg:
	case __NR_recvmsg:
		if (read_program(message, gpr[RSI], sizeof message) == 0) {
			veil_touched(message[0], PAGE, false);
			veil_touched(message[4], PAGE, false);
			touch_vectors(message[2], message[3]);
		}
		break;
	default:
		break;
	}
}
