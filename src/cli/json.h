/* JSON on its way out, one member after the other. */
#ifndef BUGNET_CLI_JSON_H
#define BUGNET_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	unsigned depth;
	bool filled; /* there is a member before the next one */
};

/* A string alone. Bytes beyond ASCII may not be UTF-8: they are written as the code point of their value. */
void json_print_text(FILE *out, const char *text);

/* bracket: '{' or '['. The key is NULL in a list, and at the start. */
void json_open(struct json *json, const char *key, char bracket);
/* bracket: '}' or ']'. The outermost one ends the line. */
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *text); /* NULL: null */
void json_number(struct json *json, const char *key, uint64_t number);
void json_signed(struct json *json, const char *key, int64_t number);
void json_real(struct json *json, const char *key, double number);
void json_bool(struct json *json, const char *key, bool truth);
void json_hex(struct json *json, const char *key, uint64_t number); /* as a string: "0x7f0012345678" */

#endif
