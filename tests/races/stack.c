/*
 * A lock-free stack that pushes without compare and exchange.
 *
 * race: head
 */
#include "race.h"

struct node {
	struct node *next;
	int value;
};
static struct node *IF_FIXED(_Atomic) head;

static NOINLINE void *push(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct node *node = malloc(sizeof *node);
		node->value = i;
		IF_FIXED(node->next = atomic_load(&head);)
		IF_FIXED(while (!atomic_compare_exchange_weak(&head, &node->next, node));)
		IF_RACING(node->next = head;)
		IF_RACING(head = node;)
	}
	return unused;
}

int main(void)
{
	run_two(push, push);
	int count = 0;
	for (struct node *node = head; node; node = node->next)
		count++;
	printf("%d\n", count > 0);
	return 0;
}
