/* Bytes as strace quotes them. */
#ifndef BUGNET_EXPLAIN_QUOTE_H
#define BUGNET_EXPLAIN_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* "\177ELF\2\1": octal escapes, as short as what follows allows. `more`: dots behind it. */
void explain_quoted(FILE *out, const void *bytes, size_t size, bool more);
/* "\x7f\x45": for bytes that are no text at all. */
void explain_quoted_hex(FILE *out, const void *bytes, size_t size, bool more);

#endif
