/* expect: signal 11 */
/* cause: a list is closed to a circle */
/* symptom: the recursion along it overflows the stack */
#include "bug.h"

struct node {
	struct node *volatile next;
};

static __attribute__((noinline)) int depth(const struct node *node)
{
	volatile char frame[200];

	frame[0] = 1;
	return node ? frame[0] + depth(node->next) : 0;
}

int main(void)
{
	static struct node nodes[3];

	nodes[0].next = &nodes[1];
	nodes[1].next = &nodes[2];
	ROOT_CAUSE();
#ifndef FIXED
	nodes[2].next = &nodes[0];
#endif
	return depth(nodes) != 3;
}
