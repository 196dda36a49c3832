/*
 * SA_RESTART against EINTR: read and write on pipes, nanosleep, poll, select, futex, wait, sem_wait,
 * connect-like calls.
 */
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static struct shared {
	volatile int handled, returned;
} * shared;
static int pipe_fds[2];

static void handler(int sig)
{
	(void)sig;
	shared->handled++;
}

/*
 * Forks a child that sends signals to this process until the call returned. One may come before the call
 * begins, so there are many. For calls that restart it ends the wait after some.
 */
static pid_t interrupter(int finish)
{
	pid_t parent = getpid(), child = fork();
	CHECK(child >= 0);
	if (child)
		return child;
	while (!shared->returned) {
		usleep(5000);
		kill(parent, SIGUSR1);
		if (finish && shared->handled >= 5) {
			finish = 0;
			if (write(pipe_fds[1], "x", 1) != 1)
				_exit(1);
		}
	}
	_exit(0);
}

static void reap(pid_t child)
{
	int status;
	shared->returned = 1;
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void report(const char *name, long result, int error)
{
	printf("  %s: %ld%s%s\n", name, result, result < 0 ? " " : "", result < 0 ? strerror(error) : "");
}

#define TRY(name, finish, call)                                                                              \
	do {                                                                                                 \
		shared->handled = shared->returned = 0;                                                      \
		pid_t child = interrupter(finish);                                                           \
		errno = 0;                                                                                   \
		long result = (long)(call);                                                                  \
		int error = errno;                                                                           \
		reap(child);                                                                                 \
		report(name, result, error);                                                                 \
	} while (0)

static void drain(void)
{
	char byte;
	fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
	while (read(pipe_fds[0], &byte, 1) == 1)
		;
	fcntl(pipe_fds[0], F_SETFL, 0);
}

static void all(int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	int restart = flags & SA_RESTART;
	char byte;
	struct timespec pause_for = {20, 0}, rest; /* long enough to be interrupted on any machine */
	struct pollfd poll_fd = {pipe_fds[0], POLLIN, 0};
	static uint32_t word;
	static sem_t semaphore;

	printf("%s\n", restart ? "SA_RESTART" : "no SA_RESTART");
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	TRY("read", restart, read(pipe_fds[0], &byte, 1));
	TRY("nanosleep", 0, nanosleep(&pause_for, &rest));
	CHECK(rest.tv_sec < pause_for.tv_sec && (rest.tv_sec > 0 || rest.tv_nsec > 0));
	TRY("clock_nanosleep", 0, -clock_nanosleep(CLOCK_MONOTONIC, 0, &pause_for, &rest));
	TRY("poll", 0, poll(&poll_fd, 1, 20000));
	TRY("ppoll", 0, ppoll(&poll_fd, 1, NULL, NULL));
	fd_set set;
	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	TRY("select", 0, select(pipe_fds[0] + 1, &set, NULL, NULL, NULL));
	int epoll = epoll_create1(0);
	struct epoll_event event;
	TRY("epoll_wait", 0, epoll_wait(epoll, &event, 1, 20000));
	close(epoll);
	TRY("pause", 0, pause());
	struct timespec short_time = {20, 0};
	TRY("futex with timeout", 0, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &short_time, NULL, 0));
	if (!restart)
		TRY("futex", 0, syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
	CHECK(!sem_init(&semaphore, 0, 0));
	if (!restart)
		TRY("sem_wait", 0, sem_wait(&semaphore));
	int pair[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!restart)
		TRY("recv", 0, recv(pair[0], &byte, 1, 0));
	struct timeval limit = {20, 0};
	CHECK(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	TRY("recv with timeout", 0, recv(pair[0], &byte, 1, 0));
	close(pair[0]);
	close(pair[1]);
	if (!restart) {
		int queue = msgget(IPC_PRIVATE, 0600);
		if (queue >= 0) {
			struct {
				long type;
				char text[8];
			} message;
			TRY("msgrcv", 0, msgrcv(queue, &message, 8, 0, 0));
			msgctl(queue, IPC_RMID, NULL);
		}
	}
	/* Ends when the call was interrupted: for good, or often enough. */
	shared->handled = shared->returned = 0;
	pid_t sleeper = fork();
	if (sleeper == 0) {
		while (restart ? shared->handled < 5 : !shared->returned)
			usleep(2000);
		_exit(7);
	}
	int status = 0;
	TRY("waitpid", 0, waitpid(sleeper, &status, 0) == sleeper ? 0 : -1);
	printf("  status %#x\n", status);
	if (!status)
		while (waitpid(sleeper, &status, 0) < 0)
			;
	/* write to a full pipe; the reader takes it after the signal */
	int full[2];
	CHECK(!pipe(full));
	fcntl(full[1], F_SETFL, O_NONBLOCK);
	static char block[4096];
	while (write(full[1], block, sizeof block) > 0)
		;
	fcntl(full[1], F_SETFL, 0);
	if (!restart)
		TRY("write", 0, write(full[1], block, sizeof block));
	close(full[0]);
	close(full[1]);
	drain();
}

int main(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK(!pipe(pipe_fds));
	setvbuf(stdout, NULL, _IONBF, 0);
	all(0);
	all(SA_RESTART);
	/* Without a handler (ignored, or default ignored) nothing is interrupted. */
	signal(SIGUSR1, SIG_IGN);
	struct timespec pause_for = {0, 100 * 1000 * 1000};
	TRY("nanosleep, signal ignored", 0, nanosleep(&pause_for, NULL));
	return done();
}
