/*
 * What is known about a recording as a whole: a list of keys with a number, a text or a
 * list of texts each. Keys that a reader does not know are kept and do no harm.
 */
#ifndef BUGNET_RECORDING_META_H
#define BUGNET_RECORDING_META_H

#include "recording/reader.h"
#include "recording/writer.h"

/* The keys that bugnet writes; docs/format.md says what each means. */
#define META_BUGNET_VERSION "bugnet-version" /* text */
#define META_PROGRAM        "program"        /* text: the path that was executed */
#define META_ARGUMENTS      "arguments"      /* texts, the program's name first */
#define META_ENVIRONMENT    "environment"    /* texts; only if the user wants it inside */
#define META_DIRECTORY      "directory"      /* text */
#define META_HOST           "host"           /* text */
#define META_KERNEL         "kernel"         /* text: release */
#define META_CPU            "cpu"            /* text: model name */
#define META_CPU_LEVEL      "cpu-level"      /* text: what the program was offered, "x86-64-v3" */
#define META_UID            "uid"
#define META_PID            "pid"
#define META_FORKED_FROM    "forked-from"   /* pid: the recording begins behind its fork */
#define META_START          "start"         /* ns since 1970 */
#define META_DURATION       "duration"      /* ns */
#define META_END_KIND       "end-kind"      /* enum event_end_kind */
#define META_END_STATUS     "end-status"    /* exit status or signal */
#define META_DICTIONARY     "dictionary"    /* entries of the dictionary */
#define META_CPU_FLAGS      "cpu-flags"     /* text, with cpu-level "native" */
#define META_SEGMENTS       "segments"      /* texts, "BASE SIZE" in hex: of the code cache */
#define META_INTERVAL       "interval"      /* instructions from one keyframe to the next; 0: not by them */
#define META_INTERVAL_TIME  "interval-time" /* ns from one keyframe to the next; 0: not by time */
#define META_BOUND          "bound"         /* stretches that a keyframe may lean on */
#define META_RING           "ring"          /* bytes of the ring; not there: everything was kept */
#define META_DROPPED        "dropped"       /* instructions that the ring has lost */
#define META_UNRECORDED     "unrecorded"    /* threads that ran natively, from their starts or later */
#define META_SAVE_KIND      "save-kind"     /* text: who wanted the file, see docs/format.md */
#define META_SAVE_REASON    "save-reason"   /* text, for people */
#define META_SAVE_TIME      "save-time"     /* ns since 1970 */
#define META_SAVE_THREAD    "save-thread"   /* id of the thread that asked for it, */
#define META_SAVE_POSITION  "save-position" /* where it was */

enum meta_type { META_NUMBER = 1, META_TEXT, META_TEXTS };

#define META_KEY_MAXIMUM 255
#define META_MAXIMUM     1000 /* entries of a recording, as far as they are read */

struct meta_entry {
	char *key;
	enum meta_type type;
	uint64_t number;
	char **texts; /* META_TEXT: one; ended by NULL */
	uint32_t count;
};

struct meta {
	struct meta_entry *entries;
	size_t count;
};

void meta_deinit(struct meta *meta);

/*
 * Setting a key again replaces what it had. Keys have 1 to META_KEY_MAXIMUM bytes. False
 * means out of memory, and the entry is as it was.
 */
bool meta_set_number(struct meta *meta, const char *key, uint64_t number);
bool meta_set_text(struct meta *meta, const char *key, const char *text);
bool meta_set_texts(struct meta *meta, const char *key, const char *const *texts, uint32_t count);

/* What a key has, or false or NULL when it is not there or of another type. */
bool meta_number(const struct meta *meta, const char *key, uint64_t *number);
const char *meta_text(const struct meta *meta, const char *key);
char *const *meta_texts(const struct meta *meta, const char *key, uint32_t *count);

void meta_encode(const struct meta *meta, struct buffer *buffer);
enum recording_status meta_write(struct writer *writer, const struct meta *meta);

/*
 * Add what the bytes, or all the recording's sections of this kind, say; later ones
 * replace what earlier ones said, so that a recorder can begin with what it knows. After
 * a failure, what came before it is there.
 */
enum recording_status meta_decode(struct meta *meta, const uint8_t *bytes, size_t size);
enum recording_status meta_read(struct reader *reader, struct meta *meta);

#endif
