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
/* Takes the translation over, in any case. */
void library_keep(
        struct library *library, const struct mapping *mapping, uint64_t pc, struct translation *translation);

#endif
