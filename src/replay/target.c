#include "replay/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/inject.h"
#include "record/why.h"

#define CODE_ALIGNMENT   (256ul << 10)
#define CODE_MAXIMUM     (128ul << 20)
#define THREADS          2 /* numbers 0 and 1 */
#define USER_ADDRESS_END 0x7ffffffff000ul
#define CARRIER_ADDRESS  0x10000ul /* the lowest that may be mapped */
#define TRIES            32

/* ---- where the segments go ---- */

/* As much code cache as fits into the recorded segment. */
static bool lay_out(struct segment_layout *layout, uint64_t base, uint64_t size, bool first, uint64_t *file)
{
	uint64_t logs = first ? FEED_BYTES : 0;
	uint64_t code = CODE_MAXIMUM;

	do {
		space_plan(layout, 1, THREADS, code, code, logs);
		if (layout->size <= size)
			break;
		code -= CODE_ALIGNMENT;
	} while (code);
	layout->base = base;
	layout->file = *file;
	*file += layout->size;
	return code != 0;
}

unsigned target_segments(
        const struct meta *meta, struct segment_layout layouts[MAX_SEGMENTS], char *why, size_t why_size)
{
	uint32_t count = 0;
	char *const *texts = meta_texts(meta, META_SEGMENTS, &count);
	uint64_t file = 0;

	if (!texts || !count || count > MAX_SEGMENTS) {
		fail_because(why, why_size, "it does not say where the code cache was");
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		unsigned long base, size;
		if (sscanf(texts[i], "%lx %lx", &base, &size) != 2 || base % CODE_PAGE ||
		        base < CARRIER_ADDRESS + CODE_PAGE || size > USER_ADDRESS_END ||
		        base > USER_ADDRESS_END - size) {
			fail_because(
			        why, why_size, "it has the code cache at '%s', which is no place", texts[i]);
			return 0;
		}
		if (!lay_out(&layouts[i], base, size, i == 0, &file)) {
			fail_because(why, why_size,
			        "the %#lx bytes it had for code are too few to replay in; record it with "
			        "more address space, see 'ulimit -v'",
			        size);
			return 0;
		}
	}
	return count;
}

/* ---- the process ---- */

/*
 * What the process executes before it gets its segments: the smallest program there is,
 * one page at the bottom of the address space, so that nothing is in the way. It is never
 * run; its instruction is a system call for the injection to borrow.
 */
static int make_carrier(void)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr load;
		uint8_t code[8];
	} image = {
	        .header =
	                {
	                        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
	                                EV_CURRENT},
	                        .e_type = ET_EXEC,
	                        .e_machine = EM_X86_64,
	                        .e_version = EV_CURRENT,
	                        .e_entry = CARRIER_ADDRESS + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
	                        .e_phoff = sizeof(Elf64_Ehdr),
	                        .e_ehsize = sizeof(Elf64_Ehdr),
	                        .e_phentsize = sizeof(Elf64_Phdr),
	                        .e_phnum = 1,
	                },
	        .load =
	                {
	                        .p_type = PT_LOAD,
	                        .p_flags = PF_R | PF_X,
	                        .p_vaddr = CARRIER_ADDRESS,
	                        .p_paddr = CARRIER_ADDRESS,
	                        .p_filesz = sizeof image,
	                        .p_memsz = sizeof image,
	                        .p_align = CODE_PAGE,
	                },
	        .code = {0x0f, 0x05, 0xcc, 0xcc},
	};
	int fd = memfd_create("bugnet-replay", MFD_CLOEXEC | 0x10 /* MFD_EXEC */);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("bugnet-replay", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, &image, sizeof image) != (ssize_t)sizeof image) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Runs in the child: it ends with the replayer, however that ends. */
static _Noreturn void become_carrier(int fd, pid_t parent)
{
	char *const arguments[] = {"bugnet-replay", NULL}, *const environment[] = {NULL};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* what the terminal sends is for whoever replays */
	if (getppid() != parent)
		_exit(1);
	for (int signal = 1; signal < 32; signal++)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
		syscall(SYS_execveat, fd, "", arguments, environment, AT_EMPTY_PATH);
	_exit(errno);
}

/* A process that stands, stopped, at the first instruction of the carrier. */
static pid_t start_carrier(char *why, size_t why_size)
{
	int fd = make_carrier(), status;
	pid_t parent = getpid();
	pid_t pid = fd < 0 ? -1 : fork();

	if (pid == 0)
		become_carrier(fd, parent);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (pid < 0) {
		fail_because(why, why_size, "cannot make a process to replay in: %s", strerror(error));
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
		return pid;
	}
	fail_because(why, why_size, "cannot make a process to replay in: %s; 'bugnet doctor' may tell why",
	        WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "it was killed");
	return -1;
}

static void look_at(struct target *target, const struct segment_layout *layouts)
{
	uint8_t *memory = target->space->memory;

	target->channel = (struct channel *)(memory + LAYOUT_CHANNEL);
	target->mailbox = &target->channel->mailboxes[0];
	target->feed = (struct feed *)(memory + layouts[0].logs);
	target->slots = (const uint64_t *)(memory + LAYOUT_THREADS + THREAD_STRIDE);
	target->registers = (const struct registers *)((const uint8_t *)target->slots + THREAD_REGS);
}

static bool try_create(struct target *target, const struct segment_layout *layouts, unsigned count, char *why,
        size_t why_size)
{
	struct injection options = {.replay = true};

	*target = (struct target){.memory = {.mem_fd = -1, .maps_fd = -1}};
	target->pid = start_carrier(why, why_size);
	if (target->pid < 0)
		return false;
	int error = memory_open(&target->memory, target->pid);
	if (error)
		return fail_because(why, why_size, "cannot open its memory: %s%s", strerror(-error),
		        access("/proc/self/maps", F_OK) < 0 ? "; mount /proc with 'mount -t proc proc /proc'"
		                                            : "");
	target->space =
	        inject_at(target->pid, &target->memory, layouts, count, THREADS, &options, why, why_size);
	return target->space != NULL;
}

/* The kernel may have put the carrier's stack where a segment goes: it will be elsewhere next time. */
bool target_create(struct target *target, const struct memory_source *source,
        const struct segment_layout *layouts, unsigned count, char *why, size_t why_size)
{
	for (int i = 0; i < TRIES; i++) {
		if (try_create(target, layouts, count, why, why_size)) {
			target->memory.source = source;
			look_at(target, layouts);
			return true;
		}
		bool process = target->pid > 0;
		target_destroy(target);
		if (!process)
			break;
	}
	return false;
}

bool target_run(struct target *target, char *why, size_t why_size)
{
	if (ptrace(PTRACE_DETACH, target->pid, 0, 0) == 0)
		return true;
	return fail_because(why, why_size, "cannot start it: %s", strerror(errno));
}

void target_destroy(struct target *target)
{
	int status;

	if (target->pid > 0) {
		kill(target->pid, SIGKILL);
		while (waitpid(target->pid, &status, __WALL) < 0 && errno == EINTR)
			;
	}
	if (target->space)
		space_destroy(target->space);
	memory_close(&target->memory);
	*target = (struct target){.memory = {.mem_fd = -1, .maps_fd = -1}};
}

bool target_has_ended(struct target *target, int *status)
{
	if (target->pid <= 0)
		return true;
	if (waitpid(target->pid, status, WNOHANG | __WALL) != target->pid)
		return false;
	target->pid = 0;
	return true;
}
