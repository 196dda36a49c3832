/* Numbers for people: "812", "12.3 million", "214 KB". */
#ifndef BUGNET_RECORDING_AMOUNT_H
#define BUGNET_RECORDING_AMOUNT_H

#include <stdint.h>

#define AMOUNT_TEXT_SIZE 32

/* Into the buffer, which they return. */
const char *amount_text(uint64_t number, char text[AMOUNT_TEXT_SIZE]);
const char *size_text(uint64_t bytes, char text[AMOUNT_TEXT_SIZE]);
const char *duration_text(uint64_t nanoseconds, char text[AMOUNT_TEXT_SIZE]);

#endif
