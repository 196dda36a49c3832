/*
 * Replays a recording: every thread from every keyframe, with all that recording left to
 * compare with compared.
 */
#ifndef BUGNET_REPLAY_REPLAYER_H
#define BUGNET_REPLAY_REPLAYER_H

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_SESSIONS_MAXIMUM 64

struct replay_options {
	const char *path;
	const char *sysroot, *binary; /* see code_files.h; may be NULL */
	uint64_t from, to;            /* positions; 0 and UINT64_MAX: all of it */
	uint32_t thread;              /* id, or UINT32_MAX: all */
	unsigned sessions;            /* processes to replay in at once; 0: as many as there are processors */
	bool output;                  /* write what the program wrote to descriptors 1 and 2 */
	bool show;                    /* print the state of each thread where it stops because of `to` */
};

enum replay_outcome {
	REPLAY_EXACT,
	REPLAY_DIVERGED, /* `message` tells how; both states have been printed to stderr. Of several
	                    differences, the one of the first thread at its first position */
	REPLAY_FAILED,   /* it could not be replayed; `message` tells why */
};

struct replay_result {
	enum replay_outcome outcome;
	uint64_t instructions;
	double seconds;
	uint32_t threads;
	uint64_t keyframes; /* that replay began at */
	uint64_t skipped;   /* stretches that lean on others which are lost */
	uint64_t cut;       /* threads whose log just stops */
	char message[1024];
	char warning[256]; /* why there is no more of the recording than was replayed, or "" */
};

void replay(const struct replay_options *options, struct replay_result *result);

#endif
