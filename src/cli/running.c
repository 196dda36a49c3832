#include "cli/running.h"

#include <stdio.h>
#include <string.h>

#include "record/control.h"

/* See recorded_process_tell. */
static bool parse(char *line, struct running *running)
{
	int size = 0;

	if (sscanf(line, "%d %u %lu %lu %lu %lu %lu %lu %lu %lf %lu %lu %n", &running->pid, &running->threads,
	            &running->age, &running->ring, &running->used, &running->instructions, &running->window,
	            &running->dropped, &running->pieces, &running->slowdown, &running->memory,
	            &running->interval, &size) != 12)
		return false;
	running->program = line + size;
	return true;
}

struct visit {
	void (*found)(void *context, const struct running *running);
	void *context;
	pid_t wanted; /* or 0 */
	char *socket;
	pid_t silent;
};

static bool ask(void *context, const char *path)
{
	struct visit *visit = context;
	char answer[CONTROL_PACKET], *rest = answer, *line;

	pid_t silent;

	if (!control_ask(path, "state", answer, NULL, &silent)) {
		visit->silent = silent ? silent : visit->silent;
		return false;
	}
	strsep(&rest, "\n"); /* "ok" */
	while ((line = strsep(&rest, "\n"))) {
		struct running running;
		if (!parse(line, &running))
			continue;
		if (visit->found)
			visit->found(visit->context, &running);
		if (visit->wanted == running.pid) {
			snprintf(visit->socket, PATH_MAX, "%s", path);
			return true;
		}
	}
	return false;
}

void running_each(void (*found)(void *context, const struct running *running), void *context, pid_t *silent)
{
	struct visit visit = {.found = found, .context = context};

	control_each(ask, &visit);
	*silent = visit.silent;
}

bool running_find(pid_t pid, char socket[PATH_MAX], pid_t *silent)
{
	struct visit visit = {.wanted = pid, .socket = socket};

	bool found = control_each(ask, &visit);
	*silent = visit.silent;
	return found;
}
