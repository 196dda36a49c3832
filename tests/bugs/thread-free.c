/* expect: signal 11 */
/* cause: one thread frees what another still uses */
/* symptom: that one follows a pointer out of memory that was reused */
#include "bug.h"

struct job {
	long *result;
	long input;
};

static struct job *volatile job;
static long result;
static volatile int begun, freed;

static void *worker(void *argument)
{
	struct job *mine = job;

	(void)argument;
	begun = 1;
	while (!freed)
		usleep(100);
	bug_work(2500);
	*mine->result = mine->input;
	return NULL;
}

int main(void)
{
	pthread_t thread;

	job = malloc(sizeof *job);
	job->result = &result;
	job->input = 5;
	pthread_create(&thread, NULL, worker, NULL);
	while (!begun)
		usleep(100);
#ifdef FIXED
	freed = 1;
	pthread_join(thread, NULL);
	free(job);
#else
	ROOT_CAUSE();
	free(job);
	memset(malloc(sizeof *job), 'j', sizeof *job);
	freed = 1;
	pthread_join(thread, NULL);
#endif
	return result != 5;
}
