/*
 * The program's memory. A bad address must become -EFAULT. Normally the fault's
 * signal makes it so (see handle_signal); while the program blocks that signal,
 * the kernel would kill it instead of telling us, so the kernel does the copying.
 */
#include "target/stub.h"

struct io_vector {
	uint64_t base, size;
};

static long copy(long call, void *to, const void *from, const void *own, uint64_t program, size_t size)
{
	struct io_vector local = {(uint64_t)own, size}, remote = {program, size};

	if (by_pages())
		pages_open_here(current_thread(), program, size);
	if (!(current_thread()->mask & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS))) || process()->seccomp)
		return usercopy_direct(to, from, size);
	/* By its own number: that of the process is its first thread's, which has no memory once it has
	 * ended. */
	long done = syscall6(call, syscall0(__NR_gettid), (long)&local, 1, (long)&remote, 1, 0);
	if (done == -K_EPERM || done == -K_ENOSYS) /* forbidden here: a bad address will kill the program */
		return usercopy_direct(to, from, size);
	if (done != (long)size && veil_touched(program, size, call == __NR_process_vm_writev))
		done = syscall6(call, syscall0(__NR_gettid), (long)&local, 1, (long)&remote, 1, 0);
	return done == (long)size ? 0 : -K_EFAULT;
}

static bool is_writable(uint64_t at, size_t size)
{
	uint64_t start = at & -UINT64_C(0x1000);

	veil_touched(at, size, true);
	return syscall3(__NR_madvise, start, at + size - start, K_MADV_POPULATE_WRITE) == 0;
}

bool can_store(uint64_t at, size_t size)
{
	uint64_t blocked = kernel_mask_for(current_thread()->mask) & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS));

	return blocked && !process()->seccomp ? is_writable(at, size) : probe_write((void *)at, size) == 0;
}

/*
 * A locked instruction cannot be had from the kernel. Where it would fault, the signals must come through for
 * a moment; nowhere else, since one of them may be pending.
 */
long exchange_program(uint64_t at, const uint64_t expected[2], const uint64_t wanted[2], size_t size)
{
	uint64_t blocked = kernel_mask_for(current_thread()->mask) & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS));

	if (!blocked || process()->seccomp || is_writable(at, size))
		return exchange_direct(at, expected, wanted, size);
	syscall4(__NR_rt_sigprocmask, K_SIG_UNBLOCK, &blocked, 0, 8);
	long result = exchange_direct(at, expected, wanted, size);
	syscall4(__NR_rt_sigprocmask, K_SIG_BLOCK, &blocked, 0, 8);
	return result;
}

uint64_t recovery_of(uint64_t rip)
{
	uint64_t offset = rip - (uint64_t)stub_base();

	for (const struct recovery *r = recoveries; r < recoveries_end; r++) {
		if (offset >= r->start && offset < r->end)
			return (uint64_t)stub_base() + r->handler;
	}
	return 0;
}

long read_program(void *to, uint64_t from, size_t size)
{
	return copy(__NR_process_vm_readv, to, (const void *)from, to, from, size);
}

long write_program(uint64_t to, const void *from, size_t size)
{
	pages_note_written(current_thread(), to, size);
	return copy(__NR_process_vm_writev, (void *)to, from, from, to, size);
}

long store_as_program(uint64_t to, const void *from, size_t size)
{
	return copy(__NR_process_vm_writev, (void *)to, from, from, to, size);
}
