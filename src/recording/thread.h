/* One thread of a recording: who it was, when it lived, how it ended. */
#ifndef BUGNET_RECORDING_THREAD_H
#define BUGNET_RECORDING_THREAD_H

#include "recording/event.h"
#include "recording/reader.h"
#include "recording/writer.h"

#define THREAD_NAME_SIZE  16
#define THREAD_NO_PARENT  UINT32_MAX
#define THREAD_STILL_RUNS UINT32_MAX /* when the recording ended */

struct thread_record {
	uint32_t id; /* in this recording, from 0; a tid may come again, an id does not */
	int32_t tid;
	uint32_t parent;   /* id of the thread that made it, or THREAD_NO_PARENT */
	uint32_t end_kind; /* enum event_end_kind, or THREAD_STILL_RUNS */
	int32_t end_status;
	uint64_t start_time, end_time;          /* monotonic, ns */
	uint64_t first_position, last_position; /* of what was kept */
	char name[THREAD_NAME_SIZE];            /* as in /proc/PID/comm, ended by a zero */
};

void thread_record_encode(const struct thread_record *record, struct buffer *buffer);
enum recording_status thread_record_decode(struct thread_record *record, const uint8_t *bytes, size_t size);

/* The section's id is the thread's. Of several with the same id, the last one counts. */
enum recording_status thread_record_write(struct writer *writer, const struct thread_record *record);
enum recording_status thread_record_read(
        struct reader *reader, const struct section *section, struct thread_record *record);

#endif
