/* run: --children --cache 256K */
/*
 * While programs are executed, one after the other, a thread fills the code cache over and over. `code-full-exec
 * ROUNDS` does so ROUNDS times.
 */
#include "emit.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define AREA (1u << 19)

static volatile int finished;
static unsigned long executed;

static void *execute(void *argument)
{
	char *arguments[] = {"code-full-exec", "0", NULL}, *environment[] = {NULL};
	int status;

	while (!finished) {
		pid_t child;
		CHECK_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environment), 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		executed++;
	}
	return argument;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 2;
	uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (!rounds)
		return 0;
	CHECK(area != MAP_FAILED);
	CHECK(pthread_create(&thread, NULL, execute, NULL) == 0);
	for (int round = 0; round < rounds; round++) {
		make_and_call_loops(area, AREA, round);
		while (executed <= (unsigned long)round)
			usleep(1000);
	}
	finished = 1;
	CHECK(pthread_join(thread, NULL) == 0);
	puts("all were executed");
	return 0;
}
