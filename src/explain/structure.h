/* The structures that system calls read and write, as strace prints them. */
#ifndef BUGNET_EXPLAIN_STRUCTURE_H
#define BUGNET_EXPLAIN_STRUCTURE_H

#include <stdint.h>
#include <stdio.h>

#include "recording/signatures.h"

/* `bytes`: structure_sizes[structure] of them. */
void explain_structure(FILE *out, enum structure structure, const uint8_t *bytes);
/* "[INT CHLD]", "~[RT_1]" */
void explain_signal_set(FILE *out, uint64_t set);
/* "{sa_family=AF_UNIX, sun_path="/run/x"}", of so many bytes. */
void explain_socket_address(FILE *out, const uint8_t *bytes, uint32_t size);
/* "S_IFREG|0644" */
void explain_file_mode(FILE *out, uint32_t mode);

#endif
