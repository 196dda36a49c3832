#include "cli/json.h"

#include <inttypes.h>

void json_print_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c >= 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void begin_member(struct json *json, const char *key)
{
	if (json->filled)
		fputc(',', json->out);
	if (json->depth)
		fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
	if (key) {
		json_print_text(json->out, key);
		fputs(": ", json->out);
	}
	json->filled = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
	begin_member(json, key);
	fputc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

void json_close(struct json *json, char bracket)
{
	json->depth--;
	if (json->filled)
		fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
	fputc(bracket, json->out);
	json->filled = true;
	if (!json->depth)
		fputc('\n', json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
	begin_member(json, key);
	if (text)
		json_print_text(json->out, text);
	else
		fputs("null", json->out);
}

void json_number(struct json *json, const char *key, uint64_t number)
{
	begin_member(json, key);
	fprintf(json->out, "%" PRIu64, number);
}

void json_signed(struct json *json, const char *key, int64_t number)
{
	begin_member(json, key);
	fprintf(json->out, "%" PRId64, number);
}

void json_real(struct json *json, const char *key, double number)
{
	begin_member(json, key);
	fprintf(json->out, "%.6g", number);
}

void json_bool(struct json *json, const char *key, bool truth)
{
	begin_member(json, key);
	fputs(truth ? "true" : "false", json->out);
}

void json_hex(struct json *json, const char *key, uint64_t number)
{
	begin_member(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", number);
}
