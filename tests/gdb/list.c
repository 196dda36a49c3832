/*
 * A list, sorted by insertion, in which one store goes wrong, long before it kills: item 7's link is overwritten through a
 * pointer that is one element too far.
 *
 * gdb: recorded, and debugged forwards and backwards by tests/gdb.sh. With an argument nothing goes wrong.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITEMS 12

struct item {
	long key;
	double weight;
	char name[8];
	struct item *next;
};

struct item *list;
long visited;
int level = 0x10203; /* stored to, never loaded: zeros over what the file has */
volatile sig_atomic_t signals;
__thread int deepest = -1;

static void note(int number)
{
	signals += number;
}

static struct item *make(long key)
{
	struct item *item = malloc(sizeof *item);

	item->key = key;
	item->weight = (double)key / 4;
	snprintf(item->name, sizeof item->name, "i%ld", key);
	item->next = NULL;
	return item;
}

static void insert(struct item **at, struct item *item)
{
	while (*at && (*at)->key < item->key)
		at = &(*at)->next;
	item->next = *at;
	*at = item;
}

static void scribble(long *keys, int count)
{
	for (int i = 0; i < count; i++)
		keys[i] = 0x1000 + i; /* count is one too many: the last one is the link's */
}

__attribute__((noinline)) long visit(struct item *item, int depth)
{
	visited++;
	deepest = depth > deepest ? depth : deepest;
	if (!item)
		return depth;
	return item->key + visit(item->next, depth + 1);
}

/* Nobody calls these but gdb. */
long sum_of(const struct item *item, double *weight)
{
	static const int signs[] = {1, 1, 1, 1};
	long sum = 0;

	for (; item; item = item->next) {
		sum += signs[item->key % 4] * item->key;
		*weight += item->weight;
	}
	visited = -1;
	return sum;
}

void tell(int number)
{
	char text[32];

	if (write(1, text, (size_t)snprintf(text, sizeof text, "told %d\n", number)) < 0)
		visited = -2;
}

long spin(long count)
{
	volatile long i = 0;

	while (i < count)
		i++;
	return i;
}

long levels(int count)
{
	return (long)level * count;
}

double half(double number)
{
	return number / 2;
}

static jmp_buf back;

static void jump(void)
{
	longjmp(back, 7);
}

int leap(void)
{
	int result = setjmp(back);

	if (!result)
		jump();
	return result;
}

int main(int argc, char **argv)
{
	long sum = 0;

	(void)argv;
	level = 0x100;
	signal(SIGUSR1, note);
	for (long i = 0; i < ITEMS; i++) {
		insert(&list, make((i * 5) % ITEMS));
		if (i == 6)
			raise(SIGUSR1);
		sum += visit(list, 0);
	}
	printf("%ld %ld\n", sum, visited);
	fflush(stdout);
	struct item *item = list;
	while (item->key != 7)
		item = item->next;
	if (argc == 1)
		scribble(&item->key, 4);
	for (int i = 0; i < 1000; i++)
		sum += i ^ (sum >> 3);
	sum += visit(list, 0);
	printf("%ld\n", sum);
	return 0;
}
