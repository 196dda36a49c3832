/*
 * Bytes to events.
 *
 * The bytes may be hostile: nothing outside them is read, nothing is allocated, and what
 * encode.h cannot have written is an error that says what is wrong and where. A log that
 * was cut off gives all its whole events first and DECODE_TRUNCATED then.
 */
#ifndef BUGNET_RECORDING_DECODE_H
#define BUGNET_RECORDING_DECODE_H

#include <stddef.h>

#include "recording/coder.h"
#include "recording/cursor.h"

enum decode_status {
	DECODE_EVENT, /* there is one */
	DECODE_END,   /* the bytes end behind a whole event */

	DECODE_TRUNCATED,   /* the bytes end inside an event */
	DECODE_NO_KEYFRAME, /* the first event is not a keyframe */
	DECODE_KIND,        /* no such kind of event */
	DECODE_FLAGS,       /* bits of the first byte that this kind does not use */
	DECODE_OVERLONG,    /* a variable number of more than 64 bits */
	DECODE_POSITION,    /* a position beyond 64 bits */
	DECODE_DICTIONARY,  /* a dictionary larger than there are, or a place that it does not have */
	DECODE_LINE,        /* a line outside the address space */
	DECODE_WORDS,       /* a patch of no words, or in no known form */
	DECODE_RANGE,       /* a number beyond its field */
	DECODE_SIZE,        /* more bytes than an event of this kind may carry */
};

struct decoder {
	struct coder coder;
	struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	const uint8_t *start;
	struct cursor cursor;
	bool begun;                /* there was a keyframe */
	enum decode_status status; /* an error stays */
	size_t event_offset;       /* of the event just decoded, or of the one that has an error */
	size_t error_offset;       /* of what is wrong in it */
};

/* The bytes must live as long as the decoder and its events. */
void decoder_init(struct decoder *decoder, const uint8_t *bytes, size_t size);

/* The log goes on with these bytes; those before have all been decoded. Offsets count from here. */
void decoder_continue(struct decoder *decoder, const uint8_t *bytes, size_t size);

/* A decoder that goes on from here by itself, with the same bytes. */
void decoder_copy(struct decoder *decoder, const struct decoder *from);

/* The next event. Anything but DECODE_EVENT leaves *event without meaning. */
enum decode_status decoder_next(struct decoder *decoder, struct event *event);

/* For messages: "the log ends inside an event". */
const char *decode_status_text(enum decode_status status);

#endif
