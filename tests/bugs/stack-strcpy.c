/* expect: signal 11 */
/* cause: strcpy of a word that is longer than the array on the stack */
/* symptom: the function returns to an address made of letters */
#include "bug.h"

static __attribute__((noinline)) int open_file(const char *word)
{
	char name[16];

#ifdef FIXED
	snprintf(name, sizeof name, "%s", word);
#else
	ROOT_CAUSE();
	strcpy(name, word);
#endif
	bug_work(5000);
	return name[0] + (int)bug_sink * 0;
}

int main(int argc, char **argv)
{
	char word[200];

	(void)argv;
	memset(word, 'A' + argc - 1, sizeof word - 1);
	word[sizeof word - 1] = 0;
	return open_file(word) == 'B';
}
