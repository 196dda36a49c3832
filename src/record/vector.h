/*
 * Growing arrays. Running out of memory ends the supervisor, which the programs
 * survive: they go on natively.
 */
#ifndef BUGNET_RECORD_VECTOR_H
#define BUGNET_RECORD_VECTOR_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR(type)                                                                                         \
	struct {                                                                                             \
		type *items;                                                                                 \
		uint32_t count, capacity;                                                                    \
	}

static inline void *vector_grow(void *items, uint32_t *capacity, uint32_t needed, size_t size)
{
	if (needed <= *capacity)
		return items;
	uint32_t larger = *capacity ? *capacity : 64;
	while (larger < needed)
		larger *= 2;
	items = realloc(items, larger * size);
	if (!items)
		abort();
	*capacity = larger;
	return items;
}

/* Appends one item and evaluates to its index. */
#define vector_push(vector, ...)                                                                             \
	((vector)->items = vector_grow(                                                                      \
	         (vector)->items, &(vector)->capacity, (vector)->count + 1, sizeof *(vector)->items),        \
	        (vector)->items[(vector)->count] = (__VA_ARGS__), (vector)->count++)

#define vector_free(vector)                                                                                  \
	(free((vector)->items), (vector)->items = NULL, (vector)->count = (vector)->capacity = 0)

/* Gives `copy` (a shallow copy of another vector) items of its own. */
#define vector_unshare(copy)                                                                                 \
	do {                                                                                                 \
		size_t bytes_ = (copy)->capacity * sizeof *(copy)->items;                                    \
		void *items_ = malloc(bytes_ ? bytes_ : 1);                                                  \
		if (!items_)                                                                                 \
			abort();                                                                             \
		if (bytes_)                                                                                  \
			memcpy(items_, (copy)->items, (copy)->count * sizeof *(copy)->items);                \
		(copy)->items = items_;                                                                      \
	} while (0)

#endif
