/* expect: signal 11 */
/* cause: a node is freed but stays in a list */
/* symptom: its memory has other content when the list is walked */
#include "bug.h"

struct node {
	struct node *next;
	long value;
};

int main(void)
{
	struct node *volatile second = calloc(1, sizeof *second), *volatile first = calloc(1, sizeof *first);
	long sum = 0;

	first->next = second;
	first->value = 1;
	ROOT_CAUSE();
	free(second);
#ifdef FIXED
	first->next = NULL;
#endif
	char *volatile text = malloc(sizeof *second);
	memset(text, 'x', sizeof *second);
	bug_work(20000);
	for (struct node *node = first; node; node = node->next)
		sum += node->value;
	return sum != 1;
}
