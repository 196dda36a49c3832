#include "debug/executed.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "recording/event.h"
#include "recording/meta.h"

#define PATH_SHOWN 200

/* The address of the path that the thread is about to execute; 0: another one does. */
static uint64_t path_of(const struct standing *standing)
{
	const uint64_t *gpr = standing->state.registers.gpr;

	return gpr[RAX] == SYS_execve ? gpr[RDI] : gpr[RAX] == SYS_execveat ? gpr[RSI] : 0;
}

bool executed_at_end(struct debugger *d, uint32_t thread)
{
	const struct happening *end = chronicle_end(&d->chronicle, d->threads[thread].recorded->id);
	uint64_t kind;

	/* The whole program's end is no news of a thread that is not known up to there. */
	return end && end->kind == HAPPENED_CUT &&
	       !recorded_lost_end(d->recorded, d->threads[thread].recorded->id) &&
	       meta_number(&d->recorded->meta, META_END_KIND, &kind) && kind == END_EXEC;
}

bool executed_text(struct debugger *d, uint32_t thread, char *text, size_t size)
{
	char path[PATH_SHOWN + 1] = "", why[512];

	if (!executed_at_end(d, thread))
		return false;
	const struct standing *standing = debugger_look(d, thread, why, sizeof why);
	uint64_t address = standing ? path_of(standing) : 0;
	/* Where not all is known of it, it ends in what is. */
	path[address ? debugger_read(d, thread, address, path, PATH_SHOWN) : 0] = 0;
	for (char *c = path; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
	if (*path)
		snprintf(text, size, "The program executed %s here.", path);
	else
		snprintf(text, size, "The program executed another one here%s.",
		        address ? "" : ", in another thread");
	return true;
}
