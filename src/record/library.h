/*
 * The library: translations of file code, kept for the next process that maps
 * the same file. Processes of a tree run the same programs and libraries over
 * and over, at other addresses each time; a translation is relative to its pc
 * and fits them all. Whoever takes one checks that the bytes it was made from
 * are those in the process, so nothing here depends on files staying unchanged.
 */
#ifndef BUGNET_RECORD_LIBRARY_H
#define BUGNET_RECORD_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "record/maps.h"
#include "translate/translate.h"

struct library;

struct library *library_create(void);
/* A translation made for the same place in the same file, or NULL. It stays the library's. */
const struct translation *library_find(
        const struct library *library, const struct mapping *mapping, uint64_t pc);
/*
 * In which order code is asked for: what one process did, the next one will
 * mostly do again, so it can be made before it is asked for.
 */
#define LIBRARY_NONE UINT32_MAX
/* The number of a place, whether there is a translation or not. indirect: it was asked for by an indirect
 * branch. */
uint32_t library_number(struct library *library, const struct mapping *mapping, uint64_t pc, bool indirect);
/* `then` was asked for next after `first`; only the first word on it counts. */
void library_follows(struct library *library, uint32_t first, uint32_t then);
uint32_t library_next(const struct library *library, uint32_t number);
bool library_indirect(const struct library *library, uint32_t number);
/* Where it lies in a process with these mappings; 0: nowhere. */
uint64_t library_pc(const struct library *library, uint32_t number, const struct maps *maps);
/* Takes the translation over, in any case. */
void library_keep(
        struct library *library, const struct mapping *mapping, uint64_t pc, struct translation *translation);

#endif
