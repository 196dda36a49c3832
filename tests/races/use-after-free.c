/*
 * An object is freed while another thread still uses it.
 *
 * race: reader() destroyer()
 * freed: destroyer() reader()
 * allocated: main()
 */
#include "race.h"

struct object {
	long value[4];
};
static struct object *object;
static sem_t finished;

static NOINLINE void *reader(void *unused)
{
	long sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += *(volatile long *)&object->value[2];
	sem_post(&finished);
	return sum == 1 ? NULL : unused;
}

static NOINLINE void *destroyer(void *unused)
{
	IF_FIXED(sem_wait(&finished);)
	*(volatile long *)&object->value[2] = 0;
	free(object);
	return unused;
}

int main(void)
{
	sem_init(&finished, 0, 0);
	object = calloc(1, sizeof *object);
	run_two(reader, destroyer);
	puts("done");
	return 0;
}
