/* bugnet pack: put the files that the program ran into the recording, so that it replays without them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/recorded_file.h"
#include "cli/recording.h"
#include "cli/ticker.h"
#include "recording/amount.h"
#include "recording/packed_file.h"

struct pack_values {
	const char *output;
};

static const struct option_spec pack_options[] = {
        {
                .name = "output",
                .letter = 'o',
                .type = OPTION_PATH,
                .offset = offsetof(struct pack_values, output),
                .value = "OUT",
                .help = "write another recording and leave FILE as it is",
        },
        {0},
};

struct packing {
	struct recording recording;
	struct writer writer;
	const char *out;
	uint32_t added;
	struct ticker ticker;
	FILE *report; /* what was added, printed when all of it is */
};

static bool fail_to_write(const struct packing *packing)
{
	char text[128];

	error_print("pack", "cannot write %s: %s; %s is as it was", packing->out,
	        recording_error_text(&packing->writer.error, text, sizeof text), packing->recording.path);
	return false;
}

/* ---- what there is ---- */

/* Sections that are damaged stay behind. */
static bool copy_section(struct packing *packing, const struct section *section)
{
	struct recording *recording = &packing->recording;
	char text[128];
	uint8_t *stored;

	if (reader_load_stored(&recording->reader, section, &stored)) {
		recording_warn(recording, "a part is left out: %s",
		        recording_error_text(&recording->reader.error, text, sizeof text));
		return true;
	}
	enum recording_status status = writer_add_stored(&packing->writer, section, stored);
	free(stored);
	return status ? fail_to_write(packing) : true;
}

static bool copy_sections(struct packing *packing)
{
	const struct reader *reader = &packing->recording.reader;

	for (size_t i = 0; i < reader->count; i++) {
		if (!copy_section(packing, &reader->sections[i]))
			return false;
		progress_add(&packing->ticker.progress, reader->sections[i].stored_size);
	}
	return true;
}

/* ---- files ---- */

static void say_changed(const struct packing *packing, const struct codelog_file *file, int fd)
{
	char recorded[BUILD_ID_TEXT_SIZE], here[BUILD_ID_TEXT_SIZE];
	struct build_id id = build_id_of(fd);

	build_id_text(&file->build_id, recorded);
	build_id_text(&id, here);
	error_print("pack",
	        "%s: recorded with %s build id %s, but the file here has %s%s; put the file that was "
	        "recorded "
	        "in its place",
	        packing->recording.path, file->path, *recorded ? recorded : "(none)", *here ? here : "(none)",
	        strcmp(recorded, here) == 0 ? " and another content" : "");
}

/* Is what was packed what was recorded? */
static bool check(const struct packing *packing, const struct codelog_file *file, int fd)
{
	switch (recorded_file_check(file, fd)) {
	case RECORDED_FILE_SAME:
		return true;
	case RECORDED_FILE_MISSING:
		error_print("pack", "%s: cannot read %s: %s; it is needed as it was when it was recorded",
		        packing->recording.path, file->path, strerror(errno));
		return false;
	case RECORDED_FILE_CHANGED:
		say_changed(packing, file, fd);
		return false;
	case RECORDED_FILE_UNKNOWN:
		error_print("pack",
		        "%s: the recording was cut off before it had a checksum of %s, which has no build "
		        "id; "
		        "check that it is the same, and keep a copy of it",
		        packing->recording.path, file->path);
		return false;
	}
	return false;
}

static bool add_file(struct packing *packing, const struct codelog_file *file)
{
	char size[AMOUNT_TEXT_SIZE], stored[AMOUNT_TEXT_SIZE];
	uint64_t before = packing->writer.size;
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	/* it is checked after it was read, so that what is inside is what was checked */
	bool added = fd >= 0 && !packed_file_write(&packing->writer, file->number, fd);
	if (fd >= 0 && !added) {
		fail_to_write(packing);
	} else if (check(packing, file, fd)) {
		char *name = recording_quoted(file->path);
		fprintf(packing->report, "added %s: %s (%s in the recording)\n", name ? name : "",
		        size_text(file->size, size), size_text(packing->writer.size - before, stored));
		free(name);
		packing->added++;
	} else {
		added = false;
	}
	if (fd >= 0)
		close(fd);
	return added;
}

static bool add_files(struct packing *packing)
{
	const struct codelog *log = &packing->recording.codelog;

	for (uint32_t i = 0; i < log->count; i++) {
		if (reader_find(&packing->recording.reader, SECTION_FILE, i, NULL))
			continue;
		if (!add_file(packing, &log->files[i]))
			return false;
		progress_add(&packing->ticker.progress, log->files[i].size);
	}
	return true;
}

/* ---- the command ---- */

/* Who may read the recording may read it with the files inside. */
static void keep_mode(const struct packing *packing)
{
	struct stat status;

	if (fstat(packing->recording.reader.fd, &status) == 0 &&
	        fchmod(packing->writer.fd, status.st_mode & 0777) < 0) {
		/* then only the owner may */
	}
}

static bool write_all(struct packing *packing)
{
	const struct reader *reader = &packing->recording.reader;

	if (writer_init_required(&packing->writer, packing->out, reader->header.required,
	            reader->header.optional | CONTAINER_OPTIONAL_FILES))
		return fail_to_write(packing);
	keep_mode(packing);
	bool done = copy_sections(packing) && add_files(packing);
	if (done && writer_finish(&packing->writer))
		done = fail_to_write(packing);
	writer_deinit(&packing->writer);
	return done;
}

static bool is_complete(const struct packing *packing)
{
	const struct codelog *log = &packing->recording.codelog;

	for (uint32_t i = 0; i < log->count; i++) {
		if (!reader_find(&packing->recording.reader, SECTION_FILE, i, NULL))
			return false;
	}
	return true;
}

/* Bytes to be read. */
static uint64_t work_in(const struct packing *packing)
{
	const struct reader *reader = &packing->recording.reader;
	const struct codelog *log = &packing->recording.codelog;
	uint64_t work = 0;

	for (size_t i = 0; i < reader->count; i++)
		work += reader->sections[i].stored_size;
	for (uint32_t i = 0; i < log->count; i++)
		work += reader_find(reader, SECTION_FILE, i, NULL) ? 0 : log->files[i].size;
	return work;
}

static bool pack(struct packing *packing)
{
	char size[AMOUNT_TEXT_SIZE], *report = NULL;
	size_t report_size;

	if (packing->out == packing->recording.path && is_complete(packing)) {
		printf("all files are in the recording already: %u\n", packing->recording.codelog.count);
		return true;
	}
	packing->report = open_memstream(&report, &report_size);
	if (!packing->report) {
		error_print("pack", "out of memory");
		return false;
	}
	packing->ticker = (struct ticker){.command = "pack", .doing = "packing", .unit = TICKER_BYTES};
	progress_set_total(&packing->ticker.progress, work_in(packing));
	ticker_begin(&packing->ticker);
	bool done = write_all(packing);
	ticker_end(&packing->ticker);
	fclose(packing->report);
	if (done) {
		char *name = recording_quoted(packing->out);
		printf("%s%s: %u file%s added, now %s\n", report, name ? name : "", packing->added,
		        packing->added == 1 ? "" : "s", size_text(packing->writer.size, size));
		free(name);
	}
	free(report);
	return done;
}

static bool output_is_free(const char *path)
{
	struct stat status;

	if (lstat(path, &status) && errno == ENOENT)
		return true;
	error_print("pack", "%s: there is such a file already; remove it or give another name", path);
	return false;
}

static int pack_main(int argc, char **argv)
{
	struct pack_values values = {0};
	struct packing packing = {0};
	int status;
	const char *file = options_parse_file(&pack_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (values.output && !output_is_free(values.output))
		return STATUS_FAILED;
	if (!recording_open(&packing.recording, "pack", file))
		return STATUS_FAILED;
	packing.out = values.output ? values.output : file;
	bool done = pack(&packing);
	recording_close(&packing.recording);
	return done ? 0 : STATUS_FAILED;
}

const struct command pack_command = {
        .name = "pack",
        .summary = "put the program's files into a recording",
        .synopsis = "pack FILE [-o OUT]",
        .description =
                "Put the program and the libraries that it used into the recording FILE, so that it replays\n"
                "on a machine that has none of them. Each is checked to be what was recorded. FILE is\n"
                "replaced when all of it is done, and stays as it was when something fails.\n"
                "\n"
                "Exit status: 0, or 125 when something failed.\n",
        .options = pack_options,
        .function = pack_main,
};
