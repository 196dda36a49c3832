#include "recording/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_SIZE    512
#define ERASE_TO_END "\x1b[K"

void progress_set_total(struct progress *progress, uint64_t total)
{
	if (progress)
		__atomic_store_n(&progress->total, total, __ATOMIC_RELAXED);
}

void progress_add(struct progress *progress, uint64_t amount)
{
	if (progress)
		__atomic_fetch_add(&progress->done, amount, __ATOMIC_RELAXED);
}

bool progress_can_show(void)
{
	return isatty(2);
}

static size_t width(void)
{
	struct winsize size;

	return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* In one write, so that nothing comes in between. Ends at the start of the line, for whoever writes next. */
static void put(const char *text, size_t size)
{
	char line[LINE_SIZE + 16];
	int length = snprintf(line, sizeof line, "\r%.*s" ERASE_TO_END "\r", (int)size, text);
	ssize_t ignored = write(2, line, (size_t)length);

	(void)ignored;
}

void progress_show(const char *format, ...)
{
	char text[LINE_SIZE];
	va_list arguments;

	if (!progress_can_show())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	size_t size = strlen(text), most = width() - 1;
	put(text, size < most ? size : most);
}

void progress_clear(void)
{
	if (progress_can_show())
		put("", 0);
}
