/*
 * From a recording to the feed: decodes the events of one thread after the other, stretch
 * by stretch, and writes the records that the stub applies (target/feed.h).
 *
 * It feeds what it takes from the schedule. Of the stretches that a keyframe leans on it feeds
 * the patches, whoever replays them; and who replays a stretch also compares what it comes to
 * with the keyframe behind it.
 *
 * Where the replayer has to look at the thread, a report record stands in the feed, and a
 * notice says what it is for.
 */
#ifndef BUGNET_REPLAY_FEEDER_H
#define BUGNET_REPLAY_FEEDER_H

#include "record/vector.h"
#include "recording/decode.h"
#include "replay/code_source.h"
#include "replay/schedule.h"
#include "replay/state.h"
#include "replay/timeline.h"

enum notice_kind {
	NOTICE_KEYFRAME, /* the thread must be as the keyframe says */
	NOTICE_END,      /* the thread ends, and must be as recorded */
	NOTICE_CUT,      /* the log goes no further */
	NOTICE_STOP,     /* the position up to which replay was wanted */
	NOTICE_OUTPUT,   /* the program wrote something */
	NOTICE_EVENT,    /* a signal comes, or a system call has had its effect */
	NOTICE_FINISHED, /* all has been replayed */
	NOTICE_HOLD,     /* the place where the thread is to be held, see struct feeder_hold */
};

struct notice {
	enum notice_kind kind;
	uint32_t thread;
	size_t stretch;     /* that is being replayed, or ends here */
	uint64_t start;     /* position of the keyframe that replay came from */
	struct state state; /* keyframe, end: as recorded */
	struct event event; /* end, event; without its XSAVE image */
	int32_t fd;         /* output */
	uint32_t size;
	uint8_t bytes[];
};

struct feeder_options {
	uint64_t from, to; /* positions; 0 and UINT64_MAX: all */
	uint32_t thread;   /* its id, or FEEDER_ALL_THREADS */
	bool output;       /* tell of what is written to descriptors 1 and 2 */
	bool events;       /* tell of system calls, before and behind them, and of signals */
};
#define FEEDER_ALL_THREADS UINT32_MAX

/*
 * A thread can be held anywhere, and gone on with: about to execute the instruction at a position,
 * with all signals that come before it delivered; or where the first of these comes. If the log
 * ends before, it is held where it does.
 */
struct feeder_hold {
	bool wanted;
	bool held; /* nothing is fed until somebody changes that */
	uint64_t position;
	uint32_t signals; /* that come at this position and are to be delivered before */
	uint32_t passed;  /* of these */
};

struct stretch_bytes; /* of one stretch, for all feeders that are in it */

struct feeder {
	struct reader *reader;
	const struct timeline *timeline;
	const struct code_source *source;
	const struct segment_layout *segments; /* where nothing may be patched */
	unsigned segment_count;
	struct feeder_options options;
	struct schedule *schedule;
	size_t stretch, until;         /* the next one to load; behind the last one to begin with */
	const struct section *section; /* the one that is being decoded, or NULL */
	struct stretch_bytes *bytes;
	struct feeder_hold hold;
	struct decoder decoder;
	struct decoder before;              /* of the stretches that the keyframe leans on */
	size_t before_stretch;              /* which of them it is at, */
	size_t before_end;                  /* and where they end */
	struct stretch_bytes *before_bytes; /* or NULL: it is to be loaded */
	struct event event;                 /* the next one */
	enum decode_status status;
	bool running; /* the thread is somewhere, and goes on with the next event */
	bool finished;
	bool failed;
	size_t failure;           /* the stretch that makes no sense */
	uint64_t start, position; /* of the keyframe; behind the last record */
	uint64_t output_position; /* of the last output event + 1 */
	bool called;              /* there was a system call that is still to be told of: */
	struct event call;
	uint32_t pieces;                 /* of the code history that are in force */
	uint8_t *at, *end;               /* the buffer that is being filled */
	VECTOR(struct notice *) notices; /* NULL: taken */
	uint64_t keyframes;              /* fed so far */
	uint64_t skipped;                /* stretches that lean on lost ones */
	char error[256];
};

void feeder_init(struct feeder *feeder, struct reader *reader, const struct timeline *timeline,
        struct schedule *schedule, const struct code_source *source, const struct segment_layout *segments,
        unsigned segment_count, const struct feeder_options *options);
void feeder_deinit(struct feeder *feeder);

/* For one who holds threads: the next to be fed is this stretch and those behind it, of the same thread. */
void feeder_begin(struct feeder *feeder, size_t stretch);
/* A buffer in which nothing happens but that the thread, which is nowhere yet, is held. */
void feeder_first(struct feeder *feeder, uint8_t *buffer);
/* From where it is held, or begins: on to that place. */
void feeder_hold(struct feeder *feeder, uint64_t position, uint32_t signals);
/* A feeder at the same place, for as long as the reader lives. Only where it is held. */
void feeder_copy(struct feeder *copy, const struct feeder *feeder);

/* Writes records, the last of which is FEED_MORE. If feeder->failed is set then, the recording makes no sense
 * behind them; see feeder->error. */
void feeder_fill(struct feeder *feeder, uint8_t *buffer, size_t size);

/* The notice of report `number`, which the caller frees, or NULL. */
struct notice *feeder_notice(struct feeder *feeder, uint64_t number);

#endif
