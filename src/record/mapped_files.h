/*
 * The files whose code the program runs, as the code log tells them: found by the
 * mappings of the program, kept open so that what they hold can be compared.
 */
#ifndef BUGNET_RECORD_MAPPED_FILES_H
#define BUGNET_RECORD_MAPPED_FILES_H

#include <sys/types.h>

#include "record/kept_code.h"
#include "record/maps.h"
#include "record/vector.h"
#include "recording/codelog.h"

struct mapped_file {
	uint32_t device_major, device_minor; /* as /proc/PID/maps tells them */
	uint64_t inode;
	char *path;
	int fd;                 /* -1: it cannot be used, and is not in the code log */
	uint32_t number;        /* in the code log */
	uint32_t mappings_told; /* how many of its mappings mapped_files_news has told */
};

/* Code is looked at in small stretches that lie close together: a page is read once for many of them. */
#define MAPPED_FILES_PAGE  4096u
#define MAPPED_FILES_PAGES 128u

struct mapped_page {
	int file; /* its descriptor + 1; 0: nothing is here */
	uint64_t offset;
	uint32_t size;
	uint8_t bytes[MAPPED_FILES_PAGE];
};

struct mapped_files {
	pid_t pid;
	struct mapped_page *pages; /* MAPPED_FILES_PAGES of them, or NULL */
	struct codelog log;
	VECTOR(struct mapped_file) files;
	VECTOR(struct gone_mapping) gone; /* that nobody has taken yet */
	uint64_t order;                   /* of the next mapping */
	uint32_t told;                    /* files of the log that mapped_files_news has told */
	bool news;
};

void mapped_files_deinit(struct mapped_files *files);

/*
 * The number of the file that this private mapping shows, or EVENT_FILE_NONE where there
 * is none that replay could be given: memory of nobody's, the vdso, deleted and
 * unreadable files, and shared mappings, whose content may change.
 */
uint32_t mapped_files_find(struct mapped_files *files, const struct mapping *mapping);

/* Note all mappings of the file that there are now and were not known. */
void mapped_files_note(struct mapped_files *files, uint32_t number, const struct maps *maps);

/*
 * Nothing is mapped there any more, as of so many pieces of the code history: mappings go from the log to
 * `gone`. For a ring alone: what was told as it came (mapped_files_news) stays in the log.
 */
void mapped_files_gone(struct mapped_files *files, uint64_t start, uint64_t end, uint32_t as_of);

/* Does the file have these bytes there? */
bool mapped_files_have(
        struct mapped_files *files, uint32_t number, uint64_t offset, const uint8_t *bytes, uint32_t size);
/* As many of its bytes as there are. */
uint32_t mapped_files_read(
        struct mapped_files *files, uint32_t number, uint64_t offset, uint8_t *bytes, uint32_t size);

uint64_t mapped_files_size(const struct mapped_files *files, uint32_t number);
int mapped_files_fd(const struct mapped_files *files, uint32_t number);

/* Append to the buffer what the code log gained since the last call, as a section's content; false if
 * nothing. */
bool mapped_files_news(struct mapped_files *files, struct buffer *buffer);

#endif
