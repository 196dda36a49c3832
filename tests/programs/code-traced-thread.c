/* run: | --cache 256K */
/* record: | --cache 1M */
/*
 * One of the threads has a debugger, so nobody else can stop it, and a code cache that is full cannot be begun anew:
 * threads go on natively then. They may write to their code wherever it is, also to what the others run.
 */
#include "emit.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define AREA   (1u << 20)
#define ROUNDS 200
#define WRITTEN 4

static uint8_t *area, *written;
static int halt[2], ready[2], told[2];

/* Waits, in the kernel, for as long as the test takes. */
static void *be_traced(void *argument)
{
	char byte;
	pid_t tid = (pid_t)syscall(SYS_gettid);

	CHECK_EQ(write(told[1], &tid, sizeof tid), sizeof tid);
	CHECK_EQ(read(halt[0], &byte, 1), 0);
	return argument;
}

static int trace(void)
{
	char byte;
	pid_t tid;

	close(halt[1]);
	if (read(told[0], &tid, sizeof tid) != sizeof tid)
		return 1;
	byte = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
	if (write(ready[1], &byte, 1) != 1)
		return 1;
	return read(halt[0], &byte, 1) != 0;
}

static void *patch(void *argument)
{
	make_and_call_loops(area, AREA, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < WRITTEN; i++) {
			emit_add(written + i * 4096, round);
			CHECK_EQ(call(written + i * 4096, 7), 7 + round);
		}
	}
	return argument;
}

int main(void)
{
	pthread_t traced, patching;
	char byte;
	int status;

	CHECK(pipe(halt) == 0 && pipe(ready) == 0 && pipe(told) == 0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(trace());
	CHECK(pthread_create(&traced, NULL, be_traced, NULL) == 0);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	if (!byte)
		skip("ptrace is forbidden here");
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	written = mmap(NULL, WRITTEN * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED && written != MAP_FAILED);
	/* What is called here is written to by the other thread. */
	for (int i = 0; i < WRITTEN; i++) {
		emit_add(written + i * 4096, i);
		CHECK_EQ(call(written + i * 4096, 1), 1 + i);
	}
	CHECK(pthread_create(&patching, NULL, patch, NULL) == 0);
	CHECK(pthread_join(patching, NULL) == 0);
	for (int i = 0; i < WRITTEN; i++)
		CHECK_EQ(call(written + i * 4096, 1), ROUNDS);
	close(halt[1]);
	CHECK(pthread_join(traced, NULL) == 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	puts("patched");
	return 0;
}
