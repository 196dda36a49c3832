#include "record/why.h"

#include <stdarg.h>
#include <stdio.h>

bool fail_because(char *why, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, size, format, arguments);
	va_end(arguments);
	return false;
}
