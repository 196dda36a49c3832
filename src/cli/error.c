#define _GNU_SOURCE 1

#include "cli/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The line is built in memory so that it reaches a shared stderr in one write. */
static void print_line(const char *command, const char *message)
{
	char *line = NULL;
	size_t size;
	FILE *stream = open_memstream(&line, &size);

	if (!stream) {
		fprintf(stderr, "bugnet: out of memory\n");
		return;
	}
	fprintf(stream, command ? "bugnet %s: " : "bugnet: ", command);
	for (const unsigned char *c = (const unsigned char *)message; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			fprintf(stream, "\\x%02x", *c);
		else
			fputc(*c, stream);
	}
	fputc('\n', stream);
	if (fclose(stream) == 0)
		fwrite(line, 1, size, stderr);
	free(line);
}

void error_print(const char *command, const char *format, ...)
{
	char *message;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&message, format, arguments) < 0)
		message = NULL;
	va_end(arguments);
	print_line(command, message ? message : "out of memory");
	free(message);
}
