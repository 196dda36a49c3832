/*
 * What a thread is stopped for that its log tells of: signals, system calls where they are entered and where
 * they come back, processes that it makes, and libraries that come and go. Nothing is replayed to find it.
 */
#ifndef BUGNET_DEBUG_CATCHES_H
#define BUGNET_DEBUG_CATCHES_H

#include "debug/chronicle.h"
#include "debug/loads.h"

/* In the order in which they come at one place. */
enum caught_kind {
	CAUGHT_LOAD,      /* behind a call by which a library has come or gone */
	CAUGHT_FORK,      /* a process was made; the thread is behind the call */
	CAUGHT_RETURN,    /* behind a call */
	CAUGHT_SIGNAL,    /* one comes */
	CAUGHT_CALL,      /* about to make a call */
	CAUGHT_LOAD_BACK, /* going back: before what CAUGHT_LOAD is behind */
};

struct catches {
	bool passes[65]; /* signals that do not stop */
	bool calls;
	VECTOR(uint64_t) numbers; /* of the calls that do; none: all */
	bool forks;
	const struct loads *loads; /* or NULL: they are not caught */
};

struct caught {
	enum caught_kind kind;
	struct place place;
	const struct happening *happening;
};

/* What comes behind the place. Of what comes at the place itself what is behind `told` there, which may be
 * CAUGHT_NOTHING: it was come to in another way. */
#define CAUGHT_NOTHING (-1)
bool catches_next(const struct catches *catches, struct chronicle *chronicle, uint32_t thread,
        struct place place, int told, struct caught *caught);
/* What came before the place, or before `told` at the place. */
bool catches_previous(const struct catches *catches, struct chronicle *chronicle, uint32_t thread,
        struct place place, int told, struct caught *caught);

bool catches_signal(const struct catches *catches, const struct happening *signal);
void catches_clear(struct catches *catches);

#endif
