/*
 * Files that gdb asks for (vFile packets): the program and its libraries as they were recorded, and what
 * Linux has in /proc of a process, made from the recording. Nothing of this machine's is read for it, unless
 * the program runs on it: then they are what it has there.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug/gdb_session.h"
#include "debug/live.h"
#include "debug/mappings.h"

/* Numbers of errors as the protocol has them. */
#define FILE_ENOENT 2
#define FILE_EBADF  9
#define FILE_EINVAL 22
#define FILE_EMFILE 24
#define FILE_EROFS  30

#define READ_MAXIMUM (GDB_PACKET_MAXIMUM / 2 - 32)

static void fail(struct gdb_session *session, int error)
{
	gdb_reply(session, "F-1,%x", error);
}

/* ---- what is in /proc ---- */

static void print_maps(struct gdb_session *session, FILE *out)
{
	struct mappings mappings;

	mappings_find(&mappings, session->debugger);
	for (uint32_t i = 0; i < mappings.items.count; i++) {
		const struct mapping *m = &mappings.items.items[i];
		int width = fprintf(out, "%08lx-%08lx %c%c%c%c %08lx 00:00 %lu ", m->start, m->end,
		        m->protection & PROT_READ ? 'r' : '-', m->protection & PROT_WRITE ? 'w' : '-',
		        m->protection & PROT_EXEC ? 'x' : '-', m->shared ? 's' : 'p', m->offset, m->inode);
		fprintf(out, "%*s%s\n", *m->name && width < 73 ? 73 - width : 0, "", m->name);
	}
	mappings_deinit(&mappings);
}

static void print_command_line(struct gdb_session *session, FILE *out)
{
	uint32_t count = 0;
	char *const *arguments = meta_texts(&session->debugger->recorded->meta, META_ARGUMENTS, &count);

	for (uint32_t i = 0; i < count; i++) {
		fputs(arguments[i], out);
		fputc(0, out);
	}
}

static void print_name(struct gdb_session *session, FILE *out)
{
	const struct chronicle_thread *thread = session->debugger->threads[0].recorded;

	fprintf(out, "%s\n", thread->has_record ? thread->record.name : "");
}

static const struct {
	const char *name;
	void (*print)(struct gdb_session *session, FILE *out);
} proc_files[] = {
        {"maps", print_maps},
        {"cmdline", print_command_line},
        {"comm", print_name},
};

/* "/proc/PID/" of this process; what is behind it, or NULL. */
static const char *behind_proc(const struct gdb_session *session, const char *path)
{
	char own[64];
	int size = snprintf(own, sizeof own, "/proc/%d/", session->pid);

	return strncmp(path, own, (size_t)size) == 0 ? path + size : NULL;
}

static bool open_proc(struct gdb_session *session, const char *name, struct gdb_file *file)
{
	for (unsigned i = 0; i < sizeof proc_files / sizeof *proc_files; i++) {
		if (strcmp(name, proc_files[i].name) != 0)
			continue;
		FILE *out = open_memstream(&file->made, &file->size);
		if (!out)
			abort();
		proc_files[i].print(session, out);
		if (fclose(out))
			abort();
		file->bytes = (const uint8_t *)file->made;
		return true;
	}
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* By its path; or by its name alone, since a program may name its interpreter by a link. */
static const struct image *find_image(const struct images *images, const char *path)
{
	const struct image *found = NULL;

	for (uint32_t i = 0; i < images->items.count; i++) {
		const struct image *image = &images->items.items[i];
		if (strcmp(image->file->path, path) == 0)
			return image;
		if (strcmp(base_name(image->file->path), base_name(path)) == 0)
			found = image;
	}
	return found;
}

static bool open_recorded(struct gdb_session *session, const char *path, struct gdb_file *file)
{
	const struct image *image = find_image(&session->debugger->images, path);

	if (!image)
		return false;
	file->bytes = image->bytes->bytes;
	file->size = image->bytes->size;
	return true;
}

/* ---- of a program that runs ---- */

/* Is it one that the program has code or data of? */
static bool is_mapped(const struct live *live, const char *path)
{
	char line[PATH_MAX + 128], real[PATH_MAX], maps[64];
	bool found = false;

	snprintf(maps, sizeof maps, "/proc/%d/maps", live->pid);
	FILE *file = realpath(path, real) ? fopen(maps, "re") : NULL;
	while (file && !found && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		const char *name = strchr(line, '/');
		found = name && strcmp(name, real) == 0;
	}
	if (file)
		fclose(file);
	return found;
}

static bool open_live(struct gdb_session *session, const char *path, struct gdb_file *file)
{
	char part[4096];
	size_t size;

	if (!behind_proc(session, path) && !is_mapped(session->debugger->live, path))
		return false;
	FILE *in = fopen(path, "re"), *out = in ? open_memstream(&file->made, &file->size) : NULL;
	if (!out)
		return in && fclose(in) && false;
	while ((size = fread(part, 1, sizeof part, in)) > 0)
		fwrite(part, 1, size, out);
	fclose(in);
	if (fclose(out))
		abort();
	file->bytes = (const uint8_t *)file->made;
	return true;
}

static bool open_any(struct gdb_session *session, const char *path, struct gdb_file *file)
{
	const char *proc = behind_proc(session, path);

	if (session->debugger->live)
		return open_live(session, path, file) || open_recorded(session, path, file);
	return proc ? open_proc(session, proc, file) : open_recorded(session, path, file);
}

/* ---- packets ---- */

static void open_file(struct gdb_session *session, const char *text)
{
	char path[4096];
	uint64_t flags;
	unsigned number = 0;

	if (!gdb_text(&text, path, sizeof path) || *text++ != ',' || !gdb_hex(&text, &flags)) {
		fail(session, FILE_EINVAL);
		return;
	}
	while (number < GDB_FILES && session->files[number].bytes)
		number++;
	if (flags & (O_WRONLY | O_RDWR)) {
		fail(session, FILE_EROFS);
		return;
	}
	if (number == GDB_FILES) {
		fail(session, FILE_EMFILE);
		return;
	}
	struct gdb_file *file = &session->files[number];
	if (open_any(session, path, file))
		gdb_reply(session, "F%x", number + 1);
	else
		fail(session, FILE_ENOENT);
}

/* The open file whose number the text begins with. */
static struct gdb_file *find_file(struct gdb_session *session, const char **text)
{
	uint64_t number;

	if (gdb_hex(text, &number) && number >= 1 && number <= GDB_FILES && session->files[number - 1].bytes)
		return &session->files[number - 1];
	fail(session, FILE_EBADF);
	return NULL;
}

static void reply_data(struct gdb_session *session, const void *bytes, size_t size)
{
	char *reply = malloc(size + 32);

	if (!reply)
		abort();
	size_t head = (size_t)snprintf(reply, 32, "F%zx;", size);
	memcpy(reply + head, bytes, size);
	gdb_reply_bytes(session, reply, head + size);
	free(reply);
}

static void read_file(struct gdb_session *session, const char *text)
{
	struct gdb_file *file = find_file(session, &text);
	uint64_t size, offset;

	if (!file)
		return;
	if (*text++ != ',' || !gdb_hex(&text, &size) || *text++ != ',' || !gdb_hex(&text, &offset) || *text) {
		fail(session, FILE_EINVAL);
		return;
	}
	uint64_t left = offset < file->size ? file->size - offset : 0;
	size = size < left ? size : left;
	reply_data(session, file->bytes + (left ? offset : 0), size < READ_MAXIMUM ? size : READ_MAXIMUM);
}

static void put(uint8_t *to, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		to[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

/* A struct of the protocol's own: numbers of 4 bytes, three of 8, and three times, most significant byte
 * first. */
static void stat_file(struct gdb_session *session, const char *text)
{
	const struct gdb_file *file = find_file(session, &text);
	uint8_t bytes[64] = {0};

	if (!file)
		return;
	put(bytes + 8, S_IFREG | 0444, 4);
	put(bytes + 12, 1, 4);
	put(bytes + 28, file->size, 8);
	put(bytes + 36, 4096, 8);
	put(bytes + 44, (file->size + 511) / 512, 8);
	reply_data(session, bytes, sizeof bytes);
}

static void close_file(struct gdb_session *session, const char *text)
{
	struct gdb_file *file = find_file(session, &text);

	if (!file)
		return;
	free(file->made);
	*file = (struct gdb_file){0};
	gdb_reply(session, "F0");
}

static void read_link(struct gdb_session *session, const char *text)
{
	const struct debugger *d = session->debugger;
	const struct image *program = d->recorded ? images_program(&d->images) : NULL;
	const char *directory = d->recorded ? meta_text(&d->recorded->meta, META_DIRECTORY) : NULL;
	const char *target = NULL, *proc;
	char path[4096], link[PATH_MAX] = "";

	if (!gdb_text(&text, path, sizeof path) || *text) {
		fail(session, FILE_EINVAL);
		return;
	}
	proc = behind_proc(session, path);
	if (proc && d->live && readlink(path, link, sizeof link - 1) > 0)
		target = link;
	else if (proc && strcmp(proc, "exe") == 0)
		target = program ? program->file->path : NULL;
	else if (proc && strcmp(proc, "cwd") == 0)
		target = directory;
	if (target)
		reply_data(session, target, strlen(target));
	else
		fail(session, FILE_ENOENT);
}

void gdb_file_packet(struct gdb_session *session, const char *text)
{
	static const struct {
		const char *name;
		void (*function)(struct gdb_session *session, const char *text);
	} packets[] = {
	        {"open:", open_file},
	        {"pread:", read_file},
	        {"fstat:", stat_file},
	        {"close:", close_file},
	        {"readlink:", read_link},
	};

	for (unsigned i = 0; i < sizeof packets / sizeof *packets; i++) {
		size_t size = strlen(packets[i].name);
		if (strncmp(text, packets[i].name, size) == 0) {
			packets[i].function(session, text + size);
			return;
		}
	}
	if (strncmp(text, "setfs:", 6) == 0)
		gdb_reply(session, "F0");
	else if (strncmp(text, "unlink:", 7) == 0 || strncmp(text, "pwrite:", 7) == 0)
		fail(session, FILE_EROFS);
	else
		gdb_reply(session, "%s", "");
}

void gdb_close_files(struct gdb_session *session)
{
	for (unsigned i = 0; i < GDB_FILES; i++)
		free(session->files[i].made);
}
