/*
 * Levels of the x86-64 ABI: sets of instructions that a CPU has all or not. A
 * recording is made for a level, of which the program is told (target/cpuid.c), and
 * can be replayed where the CPU has it. With CPU_NATIVE the program is told of all
 * that bugnet offers here.
 */
#ifndef BUGNET_RECORD_CPU_LEVEL_H
#define BUGNET_RECORD_CPU_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_NATIVE      0
#define CPU_LEVEL_LEAST 2
#define CPU_LEVEL_MOST  3

/* The highest level that this machine has, kernel included: 1, 2, 3. */
unsigned cpu_level_of_this_machine(void);
/* The first thing of the level that this machine lacks, by its name in /proc/cpuinfo; NULL: none. */
const char *cpu_level_missing(unsigned level);
/* "native", "x86-64-v2", "x86-64-v3" */
const char *cpu_level_name(unsigned level);
/* Also without "x86-64-"; false: the text names no level. */
bool cpu_level_parse(const char *text, unsigned *level);
/* Which vector registers a program has, with a level on this machine: VECTORS_*. */
uint64_t cpu_level_vectors(unsigned level);
/* Where the standard form of XSAVE has the three components of AVX-512. */
void cpu_standard_form(uint32_t at[3]);

#endif
