#include "explain/quote.h"

#include <string.h>

static bool is_octal_digit(unsigned char c)
{
	return c >= '0' && c <= '7';
}

static void quote_byte(FILE *out, unsigned char c, bool digit_follows)
{
	static const char named[] = "\t\n\v\f\r\"\\", letters[] = "tnvfr\"\\";
	const char *name = c ? strchr(named, c) : NULL;

	if (name)
		fprintf(out, "\\%c", letters[name - named]);
	else if (c >= 0x20 && c < 0x7f)
		fputc(c, out);
	else
		fprintf(out, digit_follows ? "\\%03o" : "\\%o", c);
}

void explain_quoted(FILE *out, const void *bytes, size_t size, bool more)
{
	const unsigned char *at = bytes;

	fputc('"', out);
	for (size_t i = 0; i < size; i++)
		quote_byte(out, at[i], i + 1 < size && is_octal_digit(at[i + 1]));
	fputs(more ? "\"..." : "\"", out);
}

void explain_quoted_hex(FILE *out, const void *bytes, size_t size, bool more)
{
	const unsigned char *at = bytes;

	fputc('"', out);
	for (size_t i = 0; i < size; i++)
		fprintf(out, "\\x%02x", at[i]);
	fputs(more ? "\"..." : "\"", out);
}
