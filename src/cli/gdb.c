#include "cli/gdb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/error.h"
#include "cli/janitor.h"
#include "cli/position.h"
#include "debug/debugger.h"
#include "debug/gdb_server.h"
#include "debug/live.h"
#include "debug/places.h"
#include "debug/present.h"
#include "recording/packed_file.h"

#define ARGUMENTS_MAXIMUM 64 /* of our own */

extern const char gdb_script[], gdb_script_end[];

struct gdb {
	const struct gdb_options *options;
	struct recorded recorded;
	struct debugger debugger;
	char directory[PATH_MAX - 64]; /* ours alone: socket, script, packed files; "" if there is none */
	struct janitor janitor;        /* of it */
	bool packed;                   /* files that gdb needs are in there */
	char path[PATH_MAX];           /* of the recording */
	int listener;
	pid_t pid; /* of gdb, or 0 */
};

static bool fail(const struct gdb *gdb, const char *what, const char *why)
{
	error_print(gdb->options->command, "%s: %s%s", gdb->options->path, what, why);
	return false;
}

/* ---- opening ---- */

static bool make_directory(struct gdb *gdb)
{
	const char *parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

	for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
		/* The name of a socket in it has to fit into a sockaddr_un. */
		if (!parents[i] || !*parents[i] || strlen(parents[i]) > 64)
			continue;
		snprintf(gdb->directory, sizeof gdb->directory, "%s/bugnet-gdb-XXXXXX", parents[i]);
		if (mkdtemp(gdb->directory)) {
			janitor_begin(&gdb->janitor, gdb->directory);
			return true;
		}
	}
	gdb->directory[0] = 0;
	return fail(gdb,
	        "cannot make a directory for gdb in /tmp (TMPDIR may name another, of at most 64 "
	        "characters): ",
	        strerror(errno));
}

static bool go_to_start(struct gdb *gdb)
{
	struct debugger *d = &gdb->debugger;
	const char *at = gdb->options->at;
	struct stop stop;
	uint64_t position;
	char why[256];

	if (!at || strcmp(at, "end") == 0)
		return true;
	if (!place_parse(d, d->current, at, &position, why, sizeof why))
		return fail(gdb, "--at: ", why);
	debugger_seek(d, d->current, position, &stop);
	return stop.kind != STOP_FAILED || fail(gdb, "", stop.why);
}

static bool start_program(struct gdb *gdb)
{
	const struct gdb_program *program = gdb->options->program;
	char why[512];

	if (!make_directory(gdb) || !program->start(program->context, gdb->directory))
		return false;
	if (!live_begin(program->live, why, sizeof why))
		return fail(gdb, "", why);
	present_open(&gdb->debugger, program->live, gdb->directory);
	return true;
}

static bool open_recording(struct gdb *gdb)
{
	const struct gdb_options *options = gdb->options;
	char why[1024] = "";

	if (options->program)
		return start_program(gdb);
	if (!recorded_open(&gdb->recorded, options->path, options->sysroot, options->binary, why, sizeof why))
		return fail(gdb, "", why);
	if (*gdb->recorded.warning)
		error_print(gdb->options->command, "warning: %s: %s; what comes before is used",
		        options->path, gdb->recorded.warning);
	if (!recorded_leave_lost_ends(&gdb->recorded))
		return fail(gdb, "", "out of memory");
	for (size_t i = 0; i < gdb->recorded.lost_count; i++) {
		const struct lost_end *lost = &gdb->recorded.lost[i];
		error_print(gdb->options->command,
		        "warning: %s: thread %u, positions %lu to %lu are lost: %s; what comes before is "
		        "used",
		        options->path, lost->thread, lost->first, lost->last, lost->why);
	}
	if (!debugger_open(&gdb->debugger, &gdb->recorded, why, sizeof why))
		return fail(gdb, "", why);
	gdb->debugger.path = realpath(options->path, gdb->path);
	return go_to_start(gdb);
}

/* ---- what gdb needs ---- */

static bool write_file(struct gdb *gdb, const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wxe");
	bool written = file && fwrite(bytes, 1, size, file) == size;

	if (file)
		written &= fclose(file) == 0;
	return written || fail(gdb, "cannot write a file for gdb: ", strerror(errno));
}

/* Makes the directories of a path that has one of ours in front. */
static bool make_parents(char *path, size_t own)
{
	for (char *slash = path + own; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		int result = mkdir(path, 0700);
		*slash = '/';
		if (result < 0 && errno != EEXIST)
			return false;
	}
	return true;
}

static bool is_packed(struct gdb *gdb, const struct codelog_file *file)
{
	return reader_find(&gdb->recorded.reader, SECTION_FILE, file->number, NULL) != NULL;
}

/* Files that are in the recording are put where gdb can find them; the others are linked to. */
static bool unpack(struct gdb *gdb)
{
	const struct images *images = &gdb->debugger.images;
	const char *sysroot = gdb->options->sysroot ? gdb->options->sysroot : "";
	char path[2 * PATH_MAX], link[PATH_MAX];

	for (uint32_t i = 0; i < images->items.count; i++)
		gdb->packed |= is_packed(gdb, images->items.items[i].file);
	for (uint32_t i = 0; gdb->packed && i < images->items.count; i++) {
		const struct image *image = &images->items.items[i];
		if (image->file->path[0] != '/' || strstr(image->file->path, "/../"))
			continue;
		snprintf(path, sizeof path, "%s/root%s", gdb->directory, image->file->path);
		snprintf(link, sizeof link, "%s%s", sysroot, image->file->path);
		if (!make_parents(path, strlen(gdb->directory)))
			return fail(gdb, "cannot unpack its files for gdb: ", strerror(errno));
		if (!is_packed(gdb, image->file)) {
			if (symlink(link, path) < 0)
				return fail(gdb, "cannot unpack its files for gdb: ", strerror(errno));
		} else if (!write_file(gdb, path, image->bytes->bytes, image->bytes->size)) {
			return false;
		}
	}
	return true;
}

/* ---- listening ---- */

/* What was executed; or NULL. */
static const char *program_path(const struct gdb *gdb)
{
	const struct image *program = gdb->options->program ? NULL : images_program(&gdb->debugger.images);

	return gdb->options->program ? gdb->options->program->path : program ? program->file->path : NULL;
}

static bool listen_privately(struct gdb *gdb)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", gdb->directory);
	gdb->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (gdb->listener >= 0 && bind(gdb->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
	        listen(gdb->listener, 1) == 0)
		return true;
	return fail(gdb, "cannot make a socket for gdb: ", strerror(errno));
}

/* On this machine only: whoever connects can read what the program had in memory. */
static bool listen_on_port(struct gdb *gdb)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	uint64_t port = 0;
	int one = 1;

	if (!number_parse(gdb->options->command, "server", gdb->options->server, 0, UINT16_MAX, &port))
		return false;
	address.sin_port = htons((uint16_t)port);
	gdb->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (gdb->listener < 0 || setsockopt(gdb->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
	        bind(gdb->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
	        listen(gdb->listener, 1) < 0 ||
	        getsockname(gdb->listener, (struct sockaddr *)&address, &size) < 0)
		return fail(gdb, "--server: cannot listen: ", strerror(errno));
	printf("Waiting for gdb: gdb %s -ex 'target remote localhost:%u'\n",
	        program_path(gdb) ? program_path(gdb) : "PROGRAM", ntohs(address.sin_port));
	fflush(stdout);
	return true;
}

/* ---- gdb ---- */

static const char *gdb_program(void)
{
	const char *program = getenv("BUGNET_GDB");

	return program && *program ? program : "gdb";
}

static const char *format(const char *form, const char *a, const char *b)
{
	char *text;

	if (asprintf(&text, form, a, b) < 0)
		abort();
	return text;
}

/* In the child, which is gdb then: what it gets is never freed. */
static _Noreturn void become_gdb(const struct gdb *gdb, int null)
{
	const struct gdb_options *options = gdb->options;
	const char *program = program_path(gdb);
	size_t count = 0, more = 0;
	const char *root = gdb->packed ? format("%s/root%s", gdb->directory, "") : options->sysroot;

	while (options->arguments[more])
		more++;
	const char **arguments = calloc(ARGUMENTS_MAXIMUM + more + 1, sizeof *arguments);
	if (!arguments)
		abort();
	arguments[count++] = gdb_program();
	arguments[count++] = "-q";
	if (options->batch)
		arguments[count++] = "-batch";
	const char *first[] = {"set unwindonsignal on", format("set sysroot %s%s", root ? root : "/", ""),
	        "set remotetimeout 3600", "set tcp auto-retry off", "set print thread-events off",
	        "set print inferior-events off", "set startup-with-shell off"};
	for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
		arguments[count++] = "-iex";
		arguments[count++] = first[i];
	}
	if (program && options->binary && !gdb->packed)
		arguments[count++] = options->binary;
	else if (program)
		arguments[count++] = format("%s%s", root ? root : "", program);
	arguments[count++] = "-ex";
	arguments[count++] = format("source %s/%s", gdb->directory, "bugnet.py");
	arguments[count++] = "-ex";
	arguments[count++] = format("bugnet-connect %s/%s", gdb->directory, "socket");
	for (size_t i = 0; i < more; i++)
		arguments[count++] = options->arguments[i];
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (options->program)
		options->program->has_gdb(options->program->context, getpid());
	signal(SIGTTOU, SIG_DFL);
	if (null >= 0)
		dup2(null, 0);
	execvp(arguments[0], (char **)arguments);
	_exit(errno == ENOENT ? 127 : 126);
}

static bool start_gdb(struct gdb *gdb)
{
	char path[PATH_MAX];

	if ((!*gdb->directory && !make_directory(gdb)) || !unpack(gdb) || !listen_privately(gdb))
		return false;
	snprintf(path, sizeof path, "%s/bugnet.py", gdb->directory);
	if (!write_file(gdb, path, gdb_script, (size_t)(gdb_script_end - gdb_script)))
		return false;
	fflush(NULL);
	pid_t parent = getpid();
	gdb->pid = fork();
	if (gdb->pid == 0) {
		/* Without us it is of no use, and would keep the terminal. */
		prctl(PR_SET_PDEATHSIG, SIGHUP);
		if (getppid() == parent)
			become_gdb(gdb, -1);
		_exit(0);
	}
	if (gdb->pid < 0)
		return fail(gdb, "cannot start gdb: ", strerror(errno));
	/* The terminal's signals are gdb's, or the program's while that runs. */
	if (gdb->options->program) {
		gdb->options->program->has_gdb(gdb->options->program->context, gdb->pid);
		return true;
	}
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return true;
}

static int wait_for_gdb(struct gdb *gdb)
{
	int status;

	while (waitpid(gdb->pid, &status, 0) < 0 && errno == EINTR)
		;
	gdb->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		error_print(gdb->options->command,
		        "gdb was not found; install it (apt install gdb), or name it in BUGNET_GDB");
		return STATUS_NOT_FOUND;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The next one that connects; -1: gdb has ended. */
static int accept_gdb(struct gdb *gdb, int ended)
{
	struct pollfd fds[2] = {{.fd = gdb->listener, .events = POLLIN}, {.fd = ended, .events = POLLIN}};

	for (;;) {
		if (poll(fds, ended >= 0 ? 2 : 1, -1) < 0 && errno != EINTR)
			return -1;
		int fd = fds[0].revents & POLLIN ? accept4(gdb->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		/* An acknowledgement and a reply are two small parts, of which the second would wait. It is
		 * an error for a private socket, which does not matter. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		if (fd >= 0)
			return fd;
		if (fds[1].revents)
			return -1;
	}
}

/* The program has ended, or was let go. */
static bool is_over(const struct gdb *gdb)
{
	return gdb->options->program && gdb->options->program->live->state == LIVE_ENDED;
}

/* gdb has left: what it has started goes with it. */
static void leave_program(const struct gdb *gdb)
{
	struct live *live = gdb->options->program->live;

	if (live->attached)
		live_leave(live);
	else if (!is_over(gdb))
		live_kill(live);
}

static int serve(struct gdb *gdb)
{
	int ended = gdb->pid ? (int)syscall(SYS_pidfd_open, gdb->pid, 0) : -1, fd;
	bool more = true;

	while (more && (fd = accept_gdb(gdb, ended)) >= 0)
		more = (gdb_serve(&gdb->debugger, fd) || (gdb->pid && !gdb->options->program)) &&
		       !is_over(gdb);
	if (ended >= 0)
		close(ended);
	if (gdb->options->program)
		leave_program(gdb);
	return gdb->pid ? wait_for_gdb(gdb) : 0;
}

int gdb_debug(const struct gdb_options *options)
{
	struct gdb gdb = {.options = options, .listener = -1};
	int status = STATUS_FAILED;

	if (options->program)
		options->program->live->link = options->program->live->memory = -1;
	if (open_recording(&gdb) && (options->server ? listen_on_port(&gdb) : start_gdb(&gdb)))
		status = serve(&gdb);
	if (gdb.listener >= 0)
		close(gdb.listener);
	if (gdb.debugger.recorded || gdb.debugger.live)
		debugger_close(&gdb.debugger);
	if (options->program)
		live_close(options->program->live);
	else
		recorded_close(&gdb.recorded);
	if (*gdb.directory)
		janitor_end(&gdb.janitor, gdb.directory);
	return status;
}
