#include "record/control.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/process_facts.h"

#define DIRECTORY_SIZE (sizeof((struct sockaddr_un *)NULL)->sun_path - 32)
#define PATIENCE_MS    100 /* with somebody who does not take his answer */

/* With somebody who gives none: how often he is looked at, and how many looks are enough. */
#define LOOK_MS         500
#define STOPPED_LOOKS   8
#define IDLE_LOOKS      60
#define CONNECT_SECONDS 2

/* ---- where ---- */

static bool is_ours(const char *directory)
{
	struct stat status;

	return lstat(directory, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* A directory that nobody else can put anything into. */
static bool make_directory(char directory[DIRECTORY_SIZE], const char *parent, const char *name)
{
	struct stat status;

	if (snprintf(directory, DIRECTORY_SIZE, "%s/%s", parent, name) >= (int)DIRECTORY_SIZE)
		return false;
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return false;
	return is_ours(directory) && lstat(directory, &status) == 0 && !(status.st_mode & 022);
}

/* DIRECTORY/PREFIX, or DIRECTORY/PREFIX-ANYTHING: calls `found` for each that is ours, until it returns true.
 */
static bool each_of_ours(const char *parent, const char *prefix,
        bool (*found)(void *context, const char *directory), void *context)
{
	DIR *entries = opendir(parent);
	size_t size = strlen(prefix);
	char path[PATH_MAX];
	bool done = false;

	for (struct dirent *entry; entries && !done && (entry = readdir(entries));) {
		if (strncmp(entry->d_name, prefix, size) != 0 ||
		        (entry->d_name[size] && entry->d_name[size] != '-'))
			continue;
		if (snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < PATH_MAX && is_ours(path))
			done = found(context, path);
	}
	if (entries)
		closedir(entries);
	return done;
}

static bool take_directory(void *directory, const char *path)
{
	const char *slash = strrchr(path, '/');

	return strlen(path) < DIRECTORY_SIZE && make_directory(directory, "/tmp", slash + 1);
}

/* Anybody may have made the directory that we would make in /tmp: then it is another one, which no one could
 * know before. */
static bool find_directory(char directory[DIRECTORY_SIZE])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char name[32], users[32];

	if (runtime && *runtime == '/' && is_ours(runtime) && make_directory(directory, runtime, "bugnet"))
		return true;
	snprintf(users, sizeof users, "/run/user/%u", geteuid());
	if (is_ours(users) && make_directory(directory, users, "bugnet"))
		return true;
	snprintf(name, sizeof name, "bugnet-%u", geteuid());
	if (make_directory(directory, "/tmp", name) || each_of_ours("/tmp", name, take_directory, directory))
		return true;
	snprintf(directory, DIRECTORY_SIZE, "/tmp/%s-XXXXXX", name);
	return mkdtemp(directory) != NULL;
}

/* ---- the supervisor's side ---- */

/* A socket that answers from the moment on that it can be seen: one that does not is taken for a dead one's.
 */
static bool bind_and_listen(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (snprintf(address.sun_path, sizeof address.sun_path, "%s.new", path) >=
	        (int)sizeof address.sun_path)
		return false;
	unlink(address.sun_path); /* of another recorder that had this pid */
	mode_t mask = umask(0177);
	bool done = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
	            listen(fd, CONTROL_CALLERS) == 0 && rename(address.sun_path, path) == 0;
	umask(mask);
	return done;
}

static bool watch(const struct control *control, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(control->events, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void tell_unreachable(const char *why)
{
	fprintf(stderr,
	        "bugnet: warning: no place for a socket in XDG_RUNTIME_DIR, /run/user/%u or /tmp: %s; "
	        "'bugnet ps', "
	        "'save' and 'detach' will not find this recording. Set XDG_RUNTIME_DIR to a directory of "
	        "your own\n",
	        geteuid(), why);
}

void control_open(struct control *control)
{
	char directory[DIRECTORY_SIZE];

	*control = (struct control){.fd = -1, .events = -1};
	if (!find_directory(directory)) {
		tell_unreachable(strerror(errno));
		return;
	}
	/* By our own number: two may want the same process, one that is refused, or one that has just let it
	 * go. */
	snprintf(control->path, sizeof control->path, "%s/%d.sock", directory, getpid());
	control->events = epoll_create1(EPOLL_CLOEXEC);
	control->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->events < 0 || control->fd < 0 || !bind_and_listen(control->fd, control->path) ||
	        !watch(control, control->fd)) {
		tell_unreachable(strerror(errno));
		control_close(control);
	}
}

void control_close(struct control *control)
{
	if (control->fd >= 0) {
		unlink(control->path);
		close(control->fd);
	}
	while (control->caller_count > 0)
		close(control->callers[--control->caller_count]);
	if (control->events >= 0)
		close(control->events);
	control->fd = control->events = -1;
}

static bool may_ask(int client)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static void limit_answers(int client)
{
	struct timeval time = {0, PATIENCE_MS * 1000};

	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

static void remove_caller(struct control *control, unsigned number)
{
	epoll_ctl(control->events, EPOLL_CTL_DEL, control->callers[number], NULL);
	control->caller_count--;
	memmove(&control->callers[number], &control->callers[number + 1],
	        (control->caller_count - number) * sizeof *control->callers);
}

/* Who has been silent for longest makes room. */
static void add_caller(struct control *control, int client)
{
	if (control->caller_count == CONTROL_CALLERS) {
		int silent = control->callers[0];

		remove_caller(control, 0);
		close(silent);
	}
	if (!may_ask(client) || !watch(control, client)) {
		close(client);
		return;
	}
	limit_answers(client);
	control->callers[control->caller_count++] = client;
}

int control_next(struct control *control, char request[CONTROL_PACKET])
{
	int client;

	while (control->fd >= 0 && (client = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		add_caller(control, client);
	for (unsigned i = 0; i < control->caller_count;) {
		client = control->callers[i];
		ssize_t size = recv(client, request, CONTROL_PACKET - 1, MSG_DONTWAIT);

		if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
			i++;
			continue;
		}
		remove_caller(control, i);
		if (size > 0) {
			request[size] = 0;
			return client;
		}
		close(client);
	}
	return -1;
}

void control_answer(int client, const char *format, ...)
{
	char text[CONTROL_PACKET];
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (size >= (int)sizeof text)
		size = (int)sizeof text - 1;
	send(client, text, (size_t)size, MSG_NOSIGNAL);
	close(client);
}

void control_tell_progress(int client, uint64_t done, uint64_t total)
{
	char text[64];
	int size = snprintf(text, sizeof text, "progress\n%lu %lu\n", done, total);

	send(client, text, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the other side ---- */

/* Was it only told how far the answer is? */
static bool take_progress(const char *packet, struct progress *progress)
{
	unsigned long done, total;

	if (sscanf(packet, "progress\n%lu %lu\n", &done, &total) != 2)
		return false;
	if (progress) {
		progress_set_total(progress, total);
		progress_add(progress, done > progress->done ? done - progress->done : 0);
	}
	return true;
}

/* How long somebody is waited for who owes an answer. */
struct patience {
	pid_t pid;
	unsigned stopped, idle; /* looks in a row at which he was so */
	uint64_t used;          /* his CPU time */
};

/* To save may take him long, but not without working, or waiting for a disk. */
static bool is_patient(struct patience *patience)
{
	char stat[PROCESS_STAT_SIZE], state;
	unsigned long user, system;

	if (!process_stat(patience->pid, stat) ||
	        sscanf(stat, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system) !=
	                3)
		return true; /* he goes, which is seen */
	bool stopped = state == 'T' || state == 't', idle = user + system == patience->used && state != 'D';
	patience->used = user + system;
	patience->stopped = stopped ? patience->stopped + 1 : 0;
	patience->idle = idle ? patience->idle + 1 : 0;
	return patience->stopped < STOPPED_LOOKS && patience->idle < IDLE_LOOKS;
}

static bool wait_for_packet(int fd, struct patience *patience)
{
	struct pollfd packet = {.fd = fd, .events = POLLIN};
	int ready;

	while ((ready = poll(&packet, 1, LOOK_MS)) <= 0) {
		if (ready < 0 && errno != EINTR)
			return false;
		if (ready == 0 && !is_patient(patience))
			return false;
	}
	return true;
}

/* -1 with ETIMEDOUT: there will be none. */
static ssize_t receive_answer(
        int fd, char answer[CONTROL_PACKET], struct progress *progress, struct patience *patience)
{
	ssize_t size;

	do {
		if (!wait_for_packet(fd, patience)) {
			errno = ETIMEDOUT;
			return -1;
		}
		size = recv(fd, answer, CONTROL_PACKET - 1, 0);
		answer[size > 0 ? size : 0] = 0;
	} while (size > 0 && take_progress(answer, progress));
	return size;
}

/* Whose socket it is, by its name: control_open. */
static pid_t owner_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (pid_t)atoi(slash ? slash + 1 : path);
}

/* As many as may wait do so already: he has not looked for long. */
static bool is_crowded(int error)
{
	return error == EAGAIN;
}

/* What others say of themselves only root wants to hear. */
static bool may_answer(int fd)
{
	return geteuid() == 0 || may_ask(fd);
}

static bool is_our_socket(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_uid == geteuid();
}

bool control_ask(const char *path, const char *request, char answer[CONTROL_PACKET],
        struct progress *progress, pid_t *silent)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct patience patience = {.pid = owner_of(path)};
	struct timeval time = {CONNECT_SECONDS, 0};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t size = -1;

	*silent = 0;
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
		if (may_answer(fd) && send(fd, request, strlen(request), MSG_NOSIGNAL) >= 0)
			size = receive_answer(fd, answer, progress, &patience);
	} else if (errno == ECONNREFUSED && is_our_socket(path)) {
		unlink(path); /* who had it was killed */
	}
	if (size < 0 && (errno == ETIMEDOUT || is_crowded(errno)))
		*silent = patience.pid;
	close(fd);
	return size > 0;
}

static bool each_in(const char *directory, bool (*found)(void *context, const char *path), void *context)
{
	struct stat status;
	bool trusted = lstat(directory, &status) == 0 && S_ISDIR(status.st_mode) &&
	               (status.st_uid == geteuid() || geteuid() == 0);
	DIR *entries = trusted ? opendir(directory) : NULL;
	char path[PATH_MAX];
	bool done = false;

	for (struct dirent *entry; entries && !done && (entry = readdir(entries));) {
		size_t size = strlen(entry->d_name);
		if (size <= 5 || strcmp(entry->d_name + size - 5, ".sock") != 0)
			continue;
		if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < PATH_MAX)
			done = found(context, path);
	}
	if (entries)
		closedir(entries);
	return done;
}

/* DIRECTORY/PREFIX*: as each_in, below "/NAME" of these. For root, who may ask anybody. */
static bool each_user(const char *directory, const char *prefix, const char *name,
        bool (*found)(void *context, const char *path), void *context)
{
	DIR *entries = opendir(directory);
	char path[PATH_MAX];
	bool done = false;

	for (struct dirent *entry; entries && !done && (entry = readdir(entries));) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		if (snprintf(path, sizeof path, "%s/%s%s", directory, entry->d_name, name) < PATH_MAX)
			done = each_in(path, found, context);
	}
	if (entries)
		closedir(entries);
	return done;
}

struct search {
	bool (*found)(void *context, const char *path);
	void *context;
};

static bool search_in(void *context, const char *directory)
{
	const struct search *search = context;

	return each_in(directory, search->found, search->context);
}

bool control_each(bool (*found)(void *context, const char *path), void *context)
{
	struct search search = {found, context};
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (runtime && *runtime == '/') {
		snprintf(path, sizeof path, "%s/bugnet", runtime);
		if (each_in(path, found, context))
			return true;
	}
	if (geteuid() == 0)
		return each_user("/run/user", "", "/bugnet", found, context) ||
		       each_user("/tmp", "bugnet-", "", found, context);
	snprintf(path, sizeof path, "/run/user/%u/bugnet", geteuid());
	if (each_in(path, found, context))
		return true;
	snprintf(path, sizeof path, "bugnet-%u", geteuid());
	return each_of_ours("/tmp", path, search_in, &search);
}

/* Who is saving answers when that is done, by going. */
static bool wait_for(void *context, const char *path)
{
	char answer[CONTROL_PACKET];
	pid_t silent;

	(void)context;
	if (!control_ask(path, "wait", answer, NULL, &silent) && silent)
		fprintf(stderr, "bugnet: warning: " CONTROL_SILENT "\n", silent, silent, silent);
	return false;
}

void control_wait_for_savers(void)
{
	control_each(wait_for, NULL);
}
