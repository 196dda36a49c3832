#include "replay/recorded.h"

#include <stdlib.h>

#include "record/why.h"
#include "replay/cpu_level.h"
#include "replay/target.h"

static bool fail_to_read(const struct recorded *recorded, char *why, size_t why_size)
{
	const struct recording_error *error = &recorded->reader.error;
	char text[128];

	return fail_because(why, why_size, "%s%s", recording_error_text(error, text, sizeof text),
	        recording_next_step(error));
}

/* What is missing is told where it is needed. */
static bool is_readable(enum recording_status status)
{
	return status == RECORDING_OK || status == RECORDING_MISSING;
}

bool recorded_has_thread(const struct recorded *recorded, uint32_t id)
{
	for (size_t i = 0; i < recorded->timeline.count; i++) {
		if (stretch_thread(recorded->timeline.stretches[i]) == id)
			return true;
	}
	return false;
}

/* A program that was let go right after it was attached to has executed nothing meanwhile. */
static bool executes(const struct timeline *timeline)
{
	bool any = false;

	for (size_t i = 0; i < timeline->count; i++)
		any |= timeline->stretches[i]->last > timeline->stretches[i]->first;
	return any;
}

static bool read_recording(struct recorded *recorded, const char *path, char *why, size_t why_size)
{
	if (reader_open(&recorded->reader, path) != RECORDING_OK)
		return fail_to_read(recorded, why, why_size);
	if (recorded->reader.end.status)
		recording_error_text(&recorded->reader.end, recorded->warning, sizeof recorded->warning);
	if (!is_readable(meta_read(&recorded->reader, &recorded->meta)) ||
	        !is_readable(codelog_read(&recorded->reader, &recorded->codelog)) ||
	        !is_readable(code_history_read(&recorded->reader, &recorded->history)))
		return fail_to_read(recorded, why, why_size);
	if (!timeline_read(&recorded->timeline, &recorded->reader))
		return fail_because(why, why_size, "out of memory");
	if (!recorded->timeline.count)
		return fail_because(
		        why, why_size, "there is nothing in it to replay; 'bugnet info' tells what there is");
	if (!recorded->history.count && executes(&recorded->timeline))
		return fail_because(why, why_size,
		        "its code history is missing, so there is no code to replay; 'bugnet events "
		        "--no-replay' lists what was logged");
	return true;
}

bool recorded_open(struct recorded *recorded, const char *path, const char *sysroot, const char *binary,
        char *why, size_t why_size)
{
	*recorded = (struct recorded){.reader = {.fd = -1}};
	if (!read_recording(recorded, path, why, why_size))
		return false;
	struct code_files_options files = {
	        .sysroot = sysroot,
	        .binary = binary,
	        .program = meta_text(&recorded->meta, META_PROGRAM),
	};
	if (!cpu_level_suffices(&recorded->meta, why, why_size) ||
	        !code_files_open(&recorded->files, &recorded->reader, &recorded->codelog, &recorded->history,
	                &files, why, why_size))
		return false;
	recorded->segment_count = target_segments(&recorded->meta, recorded->segments, why, why_size);
	return recorded->segment_count > 0;
}

static bool is_lost(struct recorded *recorded, const struct section *stretch)
{
	uint8_t *bytes;

	if (stretch_read(&recorded->reader, stretch, &bytes))
		return true;
	free(bytes);
	return false;
}

bool recorded_leave_lost_ends(struct recorded *recorded)
{
	struct timeline *timeline = &recorded->timeline;
	size_t kept = 0;

	recorded->lost = calloc(timeline->threads + 1, sizeof *recorded->lost);
	if (!recorded->lost)
		return false;
	for (size_t first = 0, next; first < timeline->count; first = next) {
		struct lost_end *lost = &recorded->lost[recorded->lost_count];
		next = timeline_next_thread(timeline, first);
		size_t end = next;
		while (end > first + 1 && is_lost(recorded, timeline->stretches[end - 1])) {
			end--;
			recording_error_text(&recorded->reader.error, lost->why, sizeof lost->why);
		}
		if (end < next) {
			lost->thread = stretch_thread(timeline->stretches[first]);
			lost->first = timeline->stretches[end]->first;
			lost->last = timeline->stretches[next - 1]->last;
			recorded->lost_count++;
		}
		for (size_t i = first; i < end; i++)
			timeline->stretches[kept++] = timeline->stretches[i];
	}
	timeline->count = kept;
	return true;
}

const struct lost_end *recorded_lost_end(const struct recorded *recorded, uint32_t thread)
{
	for (size_t i = 0; i < recorded->lost_count; i++) {
		if (recorded->lost[i].thread == thread)
			return &recorded->lost[i];
	}
	return NULL;
}

void recorded_close(struct recorded *recorded)
{
	free(recorded->lost);
	code_files_close(&recorded->files);
	timeline_deinit(&recorded->timeline);
	code_history_deinit(&recorded->history);
	codelog_deinit(&recorded->codelog);
	meta_deinit(&recorded->meta);
	reader_deinit(&recorded->reader);
}
