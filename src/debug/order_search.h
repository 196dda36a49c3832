/* The search for an order, see order.h: what its parts share. */
#ifndef BUGNET_DEBUG_ORDER_SEARCH_H
#define BUGNET_DEBUG_ORDER_SEARCH_H

#include "debug/order.h"

#define NOBODY UINT32_MAX

/* A thread's accesses to a word. */
struct visitor {
	uint32_t word, thread;
	uint32_t next_of_word; /* visitor + 1, or 0 */
	uint32_t next_living;  /* the same, without some whose threads have ended */
	VECTOR(uint32_t) steps;
	uint32_t next; /* of `steps` */
};

/* Operations that must take place in the order of their stamps. */
struct queue_entry {
	uint64_t stamp;
	uint32_t thread, step;
};

struct queue {
	VECTOR(struct queue_entry) entries;
	uint32_t next;
	VECTOR(struct queue_entry) loose; /* of the entries, those whose stamp only bounds them */
	uint32_t next_loose;              /* those before have taken place */
};

struct word_state {
	uint64_t value;
	uint8_t known;   /* bytes */
	uint32_t writer; /* thread, or NOBODY */
	bool stored;     /* to, by a thread or from outside */
	/* + 1, or 0; in the order of threads. Those before the living one have ended. */
	uint32_t first_visitor, last_visitor, living_visitor;
};

struct runner {
	uint32_t next;            /* step */
	uint32_t stamped;         /* the first one from there on with a stamp, as far as looked for */
	VECTOR(uint32_t) delayed; /* stores that others did not see at once, oldest first */
	uint32_t seen;            /* so many of them they see by now */
	bool forced;              /* what it waits for cannot be: it goes on without */
	uint32_t wanted;          /* goals for it: one to go on, others for stores that have taken place */
};

/* Why a thread is to go on, for the thread of the goal below. */
enum goal_reason {
	GOAL_STAMP,    /* it has the next stamp, or makes that one */
	GOAL_STORE,    /* that one loads what it stores */
	GOAL_LOAD,     /* it loads what that one's store will overwrite */
	GOAL_FIRST,    /* its store is to be overwritten by that one's */
	GOAL_DECISION, /* decided when something else had failed, see order_decisions.c */
};

/* A thread is to go on until a step has taken place and, if it is a store, is visible. */
struct goal {
	uint32_t thread, until;
	uint32_t wanted;   /* the step itself; until: all of its instruction */
	uint8_t reason;    /* enum goal_reason */
	bool visible;      /* all that it has stored until then */
	uint32_t store;    /* GOAL_LOAD: the step of the thread below that stores */
	uint32_t decision; /* GOAL_DECISION */
};

/* Where there is a store of the value that a load has, and another store to the word: it comes before the
 * one, or after the load. */
enum decision_state {
	STORE_AFTER_LOAD,
	STORE_BEFORE_SOURCE,
	SOURCE_LATER,    /* anywhere: the load has the value of a store to come */
	DECISION_FAILED, /* neither can be */
};

struct place_in_thread {
	uint32_t thread, step;
};

struct decision {
	struct place_in_thread store, load,
	        source;  /* source.thread is NOBODY: the value was there from the start */
	uint8_t state;   /* enum decision_state */
	uint8_t changes; /* so many times it was decided otherwise */
};

/* A store that others do not see before something of another thread has taken place. */
struct edge {
	uint32_t decision;
	uint8_t state;   /* of the decision, if the edge holds */
	uint32_t before; /* the edge before of the same store + 1, or 0 */
};

/* Of the last so many events is known how to go back over them. */
#define UNDONE_MOST (1u << 18)

struct word_before {
	uint64_t value;
	uint32_t writer;
	uint8_t known;
	bool stored;
};

struct candidate {
	uint64_t stamp;
	uint32_t thread;
};

struct search {
	const struct accesses *accesses;
	struct order *order;
	struct runner *runners;
	struct word_state *words;
	VECTOR(struct visitor) visitors;
	struct index visitor_index;
	struct queue *lines, calls;
	VECTOR(struct goal) goals;
	/* A heap of threads that have not ended, by what their next stamp was when they were put there. */
	VECTOR(struct candidate) candidates;
	const char *contradiction;
	/* bits for values that were stored, see order_values.c */
	uint64_t *values, value_mask;
	/* what was in the words before each of the last events, */
	struct word_before *before;
	/* and what was learnt from those that failed: */
	VECTOR(struct decision) decisions;
	struct index decision_index; /* store and load -> the decision */
	VECTOR(struct edge) edges;
	struct index edge_index; /* store -> the last of its edges */
	struct index impatient;  /* stores that wait no more for those that they are to overwrite */
	uint64_t undone;         /* events */
};

static inline const struct step *step_at(const struct search *s, uint32_t thread, uint32_t step)
{
	return &s->accesses->threads[thread].steps.items[step];
}

static inline uint64_t byte_mask(uint8_t bytes)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 8; i++)
		mask |= bytes >> i & 1 ? 0xfful << 8 * i : 0;
	return mask;
}

static inline bool is_call(const struct step *step)
{
	return step->kind >= STEP_CALL;
}

/* ---- order.c ---- */

/* A word as a thread sees it: `own` are bytes that others do not see yet. */
struct view {
	uint64_t value;
	uint8_t known, own;
};

struct view view_of(const struct search *s, uint32_t thread, uint32_t word);
/* That of operations which the step is one of, or NULL. */
struct queue *queue_of(struct search *s, const struct step *step);
struct visitor *visitor_of(struct search *s, uint32_t word, uint32_t thread);
void fill_candidates(struct search *s);
void drop_goals(struct search *s);

/* ---- order_values.c ---- */

void values_collect(struct search *s);
/* False: no thread has ever stored what the load has, or not all of it. */
bool values_may_have(const struct search *s, const struct step *load);

/* ---- order_decisions.c ---- */

#define CHANGES_MOST 8 /* of one decision */

/* Keeps what is in the word, for the event that comes next. */
void keep_word(struct search *s, uint32_t word);

/* Something that the thread's store has to wait for, by what was decided. */
bool find_decided(const struct search *s, uint32_t thread, uint32_t store, struct place_in_thread *place,
        uint32_t *decision);

/* Need the store not wait for the load, which has the value of a later one? */
bool is_waived(const struct search *s, struct place_in_thread store, struct place_in_thread load);

/* Has it waited in vain for one that it was to overwrite? */
bool is_impatient(const struct search *s, uint32_t thread, uint32_t store);

/*
 * The thread's load, or its store that `goal` is about, fails. What led to it is decided otherwise, and the
 * search goes on from there: all goals are gone. `coming`: there is a store to come that the load waits for.
 * False: it cannot be, or has been tried.
 */
bool reconsider_load(struct search *s, uint32_t thread, uint32_t number, bool coming);
/* How often that for which a goal is there was decided otherwise. */
unsigned goal_changes(const struct search *s, const struct goal *goal, uint32_t storer);
bool reconsider_goal(struct search *s, const struct goal *goal, uint32_t storer);
bool reconsider_decision(struct search *s, uint32_t decision);

void decisions_deinit(struct search *s);

#endif
