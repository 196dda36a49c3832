/* many [at-once|in-turn|thousands]: 64 threads that count together, under a lock and with atomic instructions; or 200,
 * or 5000, one after another. cases: at-once in-turn thousands */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int locked, atomic;
static __thread int own;

static void *work(void *unused)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&mutex);
		locked++;
		pthread_mutex_unlock(&mutex);
		__atomic_fetch_add(&atomic, 1, __ATOMIC_RELAXED);
		own++;
	}
	return own == 10 ? unused : &own;
}

int main(int argc, char **argv)
{
	int thousands = argc > 1 && !strcmp(argv[1], "thousands");
	int in_turn = thousands || (argc > 1 && !strcmp(argv[1], "in-turn"));
	int count = thousands ? 5000 : in_turn ? 200 : 64;
	pthread_t threads[64];
	void *wrong = NULL, *result;

	for (int i = 0; i < count; i++) {
		pthread_create(&threads[in_turn ? 0 : i], NULL, work, NULL);
		if (in_turn && (pthread_join(threads[0], &result), result))
			wrong = result;
	}
	for (int i = 0; i < count && !in_turn; i++) {
		pthread_join(threads[i], &result);
		wrong = result ? result : wrong;
	}
	printf("%d %d %d\n", locked, atomic, wrong != NULL);
	return locked != 10 * count || atomic != 10 * count || wrong;
}
