/* run: | --children | --cache 256K */
/* A tree of forks four levels deep, each node with its own memory; statuses travel up; results through a
 * shared page. */
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

static uint64_t *shared;
static uint64_t private_value = 1;

static void node(int depth, unsigned path)
{
	private_value = mix(private_value, path);
	shared[path] = mix(private_value, compute(path, 500));
	if (depth == 4)
		return;
	pid_t child[3];
	for (unsigned i = 0; i < 3; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i] == 0) {
			node(depth + 1, path * 3 + 1 + i);
			_exit((int)(path * 3 + 1 + i) % 200);
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		int status;
		CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), (path * 3 + 1 + i) % 200);
	}
}

int main(void)
{
	uint64_t sum = 0;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	uint64_t before = private_value;
	node(0, 0);
	CHECK(private_value == mix(before, 0));
	for (int i = 0; i < 121; i++) {
		CHECK(shared[i] != 0);
		sum = mix(sum, shared[i]);
	}
	printf("sum %llx\n", (long long)sum);

	/* One after another, and children that end before the parent looks. */
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(i & 127);
		int status;
		CHECK_EQ(wait(&status), child);
		CHECK_EQ(status, (i & 127) << 8);
	}
	for (int i = 0; i < 50; i++)
		if (fork() == 0)
			_exit(0);
	int reaped = 0;
	while (wait(NULL) > 0)
		reaped++;
	CHECK_EQ(reaped, 50);
	return done();
}
