/*
 * Packets of gdb's remote protocol: $text#checksum, acknowledged by + until both sides agree to do
 * without, and a byte 3 from a gdb that wants the program to stop. What comes may be anything.
 */
#ifndef BUGNET_DEBUG_GDB_PACKET_H
#define BUGNET_DEBUG_GDB_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/buffer.h"

#define GDB_PACKET_MAXIMUM 0x4000 /* bytes of one from gdb; what we send may be as long */

struct gdb_link {
	int fd;
	bool acknowledges;
	bool interrupted; /* there was a byte 3 */
	bool closed;
	uint8_t input[GDB_PACKET_MAXIMUM];
	size_t input_start, input_end;
	struct buffer output;
};

void gdb_link_open(struct gdb_link *link, int fd);
void gdb_link_close(struct gdb_link *link); /* and the descriptor */

/* The next packet, ended by a zero, which is not counted; an interrupt is an empty one with link->interrupted
 * set. False: gdb is gone. */
bool gdb_link_receive(struct gdb_link *link, char text[GDB_PACKET_MAXIMUM], size_t *size);
void gdb_link_send(struct gdb_link *link, const char *text, size_t size);

/* Does gdb want us to stop? Does not wait. */
bool gdb_link_wants_stop(struct gdb_link *link);

#endif
