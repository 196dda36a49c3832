/*
 * A block is freed while another thread uses a part of it that free() itself does not touch.
 *
 * race: reader()
 * freed: destroyer() reader()
 */
#include "race.h"

struct object {
	long value[16];
};
static struct object *object;
static sem_t finished;

static NOINLINE void *reader(void *argument)
{
	struct object *used = argument;
	long sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += *(volatile long *)&used->value[8];
	sem_post(&finished);
	return sum == 1 ? NULL : argument;
}

static NOINLINE void *destroyer(void *argument)
{
	IF_FIXED(sem_wait(&finished);)
	free(argument);
	return NULL;
}

int main(void)
{
	sem_init(&finished, 0, 0);
	object = malloc(sizeof *object);
	object->value[8] = 5;
	run((struct runner[]){{.function = reader, .argument = object}, {.function = destroyer, .argument = object}}, 2);
	puts("done");
	return 0;
}
