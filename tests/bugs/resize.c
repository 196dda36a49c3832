/* expect: signal 11 */
/* cause: the handler of SIGWINCH frees the screen that the program is drawing */
/* symptom: the rest is drawn through a pointer that the allocator has overwritten */
#include "bug.h"

struct screen {
	char **rows;
	int count;
};

static struct screen *volatile screen;
static volatile sig_atomic_t resized;

static struct screen *make_screen(int count)
{
	struct screen *made = malloc(sizeof *made);

	made->rows = calloc((size_t)count, sizeof *made->rows);
	for (int i = 0; i < count; i++)
		made->rows[i] = calloc(1, 80);
	made->count = count;
	return made;
}

static void resize(int number)
{
	(void)number;
#ifdef FIXED
	resized = 1;
#else
	ROOT_CAUSE();
	memset(screen->rows, 0x55, (size_t)screen->count * sizeof *screen->rows);
	free(screen->rows);
	screen = make_screen(10);
#endif
}

int main(void)
{
	signal(SIGWINCH, resize);
	screen = make_screen(24);
	struct screen *drawn = screen;
	for (int i = 0; i < 24; i++) {
		if (i == 12)
			raise(SIGWINCH);
		bug_work(3000);
		drawn->rows[i][0] = '~';
	}
	return 0;
}
