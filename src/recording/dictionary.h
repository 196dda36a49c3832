/*
 * The dictionary of frequent values (BugNet 4.3): a value that is in it is coded as its
 * place there.
 *
 * Encoder and decoder have one each and keep them in step by showing both the same
 * values. A value has one place only, given by its hash, so that a look-up costs a
 * multiplication and a compare. Each place remembers how often its value was met again;
 * another value has to come as often before it gets the place, so that a stream of
 * values that come once, a file being read, does not wash the frequent ones out.
 *
 * Freestanding.
 */
#ifndef BUGNET_RECORDING_DICTIONARY_H
#define BUGNET_RECORDING_DICTIONARY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DICTIONARY_DEFAULT_BITS  6  /* 64 entries */
#define DICTIONARY_MAXIMUM_BITS  10 /* 1024 entries */
#define DICTIONARY_MAXIMUM       (1u << DICTIONARY_MAXIMUM_BITS)
#define DICTIONARY_MULTIPLIER    0x9e3779b97f4a7c15u /* 2^64 divided by the golden ratio */
#define DICTIONARY_HIGH_STRENGTH 3

struct dictionary_entry {
	uint64_t value;
	uint64_t strength;
};

struct dictionary {
	struct dictionary_entry *entries; /* 1 << bits of them */
	unsigned bits;                    /* 1 to DICTIONARY_MAXIMUM_BITS, or 0: no dictionary, no entries */
};

static inline void dictionary_reset(struct dictionary *dictionary)
{
	if (dictionary->bits)
		memset(dictionary->entries, 0, sizeof *dictionary->entries << dictionary->bits);
}

static inline unsigned dictionary_index_bytes(const struct dictionary *dictionary)
{
	return dictionary->bits <= 8 ? 1 : 2;
}

/* Values that take no more room than an index are not worth a place. */
static inline bool dictionary_wants(const struct dictionary *dictionary, uint64_t value)
{
	return dictionary->bits && value >> (8 * dictionary_index_bytes(dictionary));
}

/* Only where there is a dictionary. */
static inline unsigned dictionary_place(const struct dictionary *dictionary, uint64_t value)
{
	return (unsigned)(value * DICTIONARY_MULTIPLIER >> (64 - dictionary->bits));
}

/* Show the value to its place: is it the one that is there? */
static inline bool dictionary_learn(struct dictionary_entry *entry, uint64_t value)
{
	if (entry->value == value) {
		if (entry->strength < DICTIONARY_HIGH_STRENGTH)
			entry->strength++;
		return true;
	}
	if (entry->strength)
		entry->strength--;
	else
		entry->value = value;
	return false;
}

#endif
