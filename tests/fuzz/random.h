#ifndef FUZZ_RANDOM_H
#define FUZZ_RANDOM_H
/*
 * The generator of random numbers: splitmix64. Every sequence has a stream of its own, made from the seed and
 * the number of the sequence, so that any sequence can be repeated without running those before it.
 */
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline struct rng rng_stream(uint64_t seed, uint64_t number)
{
	return (struct rng){mix64(mix64(seed + 0x9e3779b97f4a7c15u) ^ (number * 0xd1342543de82ef95u + 1))};
}

static inline uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return mix64(r->state);
}

/* A number from 0 to n - 1; n is at most 2^32. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

static inline int64_t rng_between(struct rng *r, int64_t low, int64_t high)
{
	return low + rng_below(r, (uint32_t)(high - low + 1));
}

/* True in `percent` of 100 cases. */
static inline int rng_chance(struct rng *r, unsigned percent)
{
	return rng_below(r, 100) < percent;
}

#endif
