/*
 * Memory for gdb, of which parts may be unknown. Its protocol cannot tell of parts: a structure with a field
 * that nobody touched, or only with padding, would be an error as a whole. So what is unknown beside what is
 * known is filled with bytes that look like nothing, and our Python, which asks what is known, shows
 * <unavailable> there. What is as small as a number is never made up.
 */
#include <string.h>

#include "debug/gdb_session.h"

#define MEMORY_MAXIMUM (GDB_PACKET_MAXIMUM / 2 - 8)
#define NUMBER         8
#define LARGE          1024 /* what comes behind a packet of this size may be the rest of the same object */

void gdb_memory_read(struct gdb_session *session, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	if (!gdb_calls_read(session, address, to, known, size))
		debugger_read_known(session->debugger, session->general, address, to, known, size);
}

static bool is_watched(const struct debugger *d, uint64_t address, uint64_t size)
{
	for (uint32_t i = 0; i < d->watches.count; i++) {
		const struct watch *watch = &d->watches.items[i];
		if (address - watch->address < watch->size &&
		        size <= watch->size - (address - watch->address))
			return true;
	}
	return false;
}

/* Is it a part of something larger, of which parts are known? */
static bool is_part(const struct gdb_session *session, uint64_t address, const uint8_t *known, size_t size)
{
	return memchr(known, 1, size) || (address && address == session->read_end) ||
	       (size > NUMBER && is_watched(session->debugger, address, size));
}

void gdb_memory_packet(struct gdb_session *session, const char *text)
{
	uint64_t address, size;
	uint8_t bytes[MEMORY_MAXIMUM], known[MEMORY_MAXIMUM];
	char hex[2 * MEMORY_MAXIMUM];

	if (!gdb_hex(&text, &address) || !gdb_skip(&text, ',') || !gdb_hex(&text, &size) || *text) {
		gdb_reply(session, "E01");
		return;
	}
	if (size > sizeof bytes)
		size = sizeof bytes;
	if (size > -address && address)
		size = -address;
	gdb_memory_read(session, address, bytes, known, size);
	if (!is_part(session, address, known, size) && size) {
		gdb_reply(session, "E01");
		return;
	}
	for (size_t i = 0; i < size; i++)
		bytes[i] = known[i] ? bytes[i] : GDB_FILLER;
	session->read_end = size >= LARGE ? address + size : 0;
	gdb_put_hex(hex, bytes, size);
	gdb_reply_bytes(session, hex, 2 * size);
}
