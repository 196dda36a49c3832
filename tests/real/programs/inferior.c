#include <pthread.h>
#include <signal.h>
#include <stdio.h>

struct box {
	int total;
	const char *name;
};

static void work(struct box *box, int n)
{
	for (int i = 0; i < n; i++)
		box->total += i;
}

static void *other(void *box)
{
	work(box, 3);
	return NULL;
}

int main(void)
{
	struct box box = {7, "a box"};
	pthread_t thread;

	work(&box, 4);
	pthread_create(&thread, NULL, other, &box);
	pthread_join(thread, NULL);
	raise(SIGUSR1);
	printf("total %d\n", box.total);
	return 3;
}
