/*
 * The way in: a process that stands at the first instruction of a new image,
 * stopped by ptrace, gets its code cache and the stub, and is set on its way. The same for one
 * that is stopped wherever it was: see attach.h.
 */
#ifndef BUGNET_RECORD_INJECT_H
#define BUGNET_RECORD_INJECT_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/memory.h"
#include "record/space.h"

struct injection {
	bool children;      /* follow execve */
	bool announce_exit; /* the stub waits for us before exit_group */
	bool count;         /* count instructions */
	uint64_t cache;     /* see struct launch_options */
	uint32_t cpu_level; /* see cpu_level.h */
	bool record;
	bool replay; /* see inject_at */
	uint32_t dictionary_bits;
	uint64_t interval;                  /* instructions between keyframes, */
	bool puts_off;                      /* more where they are costly */
	uint32_t bound;                     /* of stretches that one may lean on */
	bool pages;                         /* whole pages are logged as long as that will do */
	const struct save_call *save_calls; /* that are told before they are made */
	uint32_t save_call_count;
	const struct attachment *attachment; /* of a program that is running already, or NULL */
};

/*
 * Returns the new space, or NULL after filling `why`: the process is as it was.
 * The caller detaches from it.
 */
struct space *inject(
        pid_t pid, struct memory *memory, const struct injection *options, char *why, size_t why_size);
/* The same with segments at given places, for replay. */
struct space *inject_at(pid_t pid, struct memory *memory, const struct segment_layout *layouts,
        unsigned count, uint64_t threads, const struct injection *options, char *why, size_t why_size);
/* The stub's image, which begins with its header. */
const uint8_t *inject_stub(void);
/* Where the process has its vdso, or 0. */
uint64_t inject_vdso(pid_t pid);
/* Ends a process that stands at its first instruction. */
void inject_exit(pid_t pid, struct memory *memory, int status);

#endif
