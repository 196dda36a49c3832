/* build: -Wno-unused-result */
/*
 * calls: system calls of many kinds, with arguments of all kinds, for a listing of them to be compared with strace's.
 * Nothing in it depends on when things happen. It ends by SIGABRT.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int pipes[2];

static void handler(int signal)
{
	(void)signal;
}

static void files(void)
{
	static const char *const arguments[] = {"a", "b c\n", NULL};
	char text[4096];
	struct stat status;
	struct statx more;

	stat("/etc/passwd", &status);
	stat("/dev/null", &status);
	statx(AT_FDCWD, "/etc/passwd", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more);
	if (!getcwd(text, sizeof text))
		abort();
	syscall(SYS_readlink, "/etc/passwd", text, 100);
	syscall(SYS_readlink, "/proc/self/exe", text, 10);
	mkdir("/nonexistent/\1\2003\n", 0755);
	syscall(SYS_open, "/nonexistent/x", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	syscall(SYS_open, (char *)0x123, O_WRONLY | O_APPEND);
	umask(022);
	access("/etc", R_OK | X_OK);
	access("/etc", F_OK);
	execve("/nonexistent/program", (char **)arguments, (char **)arguments);
	utimensat(AT_FDCWD, "/nonexistent/x", NULL, 0);
	syscall(SYS_rename, "/nonexistent/a", "/nonexistent/b");
	int folder = open("/", O_RDONLY | O_DIRECTORY);
	syscall(SYS_getdents64, folder, text, sizeof text);
	lseek(folder, 0, SEEK_SET);
	close(folder);
}

static void pipes_and_waiting(void)
{
	struct iovec vectors[] = {{"abc", 3}, {"a text that is too long to be shown with all it has", 51}};
	struct pollfd polled[2];
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct flock lock = {.l_type = F_WRLCK, .l_len = 10};
	struct timeval second = {1, 0};
	fd_set in, out;
	int number, epoll;
	char text[100];

	pipe2(pipes, O_CLOEXEC);
	polled[0] = (struct pollfd){pipes[0], POLLIN, 0};
	polled[1] = (struct pollfd){pipes[1], POLLOUT, 0};
	poll(polled, 1, 0);
	write(pipes[1], "hello\n\1\00023\377", 11);
	poll(polled, 2, 10);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	event.data.fd = pipes[0];
	epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
	epoll_wait(epoll, &event, 1, 100);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(pipes[0], &in);
	FD_SET(pipes[1], &out);
	select(pipes[1] + 1, &in, &out, NULL, &second);
	ioctl(pipes[0], FIONREAD, &number);
	writev(pipes[1], vectors, 2);
	read(pipes[0], text, sizeof text);
	fcntl(pipes[0], F_SETLK, &lock);
	fcntl(pipes[0], F_GETFL);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	fcntl(pipes[0], F_SETFD, FD_CLOEXEC);
	fcntl(pipes[0], F_GETFD);
	read(pipes[0], text, sizeof text);
	dup2(pipes[0], 20);
}

static void network(void)
{
	struct sockaddr_un local = {AF_UNIX, "/nonexistent/socket"};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage found;
	struct iovec vectors[] = {{"abc", 3}, {"defg", 4}}, into;
	struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
	socklen_t size = sizeof found;
	int one = 1, pair[2];
	char text[100];

	connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&local, sizeof local);
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	bind(server, (struct sockaddr *)&address, sizeof address);
	getsockname(server, (struct sockaddr *)&found, &size);
	size = sizeof one;
	getsockopt(server, SOL_SOCKET, SO_ERROR, &one, &size);
	listen(server, 5);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	sendmsg(pair[0], &message, 0);
	into = (struct iovec){text, sizeof text};
	message = (struct msghdr){.msg_iov = &into, .msg_iovlen = 1};
	recvmsg(pair[1], &message, 0);
	sendto(pair[0], "xyz", 3, MSG_DONTWAIT, NULL, 0);
	recvfrom(pair[1], text, sizeof text, 0, NULL, NULL);
	shutdown(pair[0], SHUT_RDWR);
}

/* It takes its time, so that somebody has to wait for it. */
static void *thread(void *argument)
{
	usleep(50000);
	return argument;
}

static void processes(void)
{
	struct utsname name;
	struct sysinfo system_info;
	struct rusage usage;
	struct rlimit limit;
	struct tms ticks;
	siginfo_t info;
	pthread_t other;
	int status;

	uname(&name);
	sysinfo(&system_info);
	getrusage(RUSAGE_SELF, &usage);
	times(&ticks);
	getrlimit(RLIMIT_NOFILE, &limit);
	prctl(PR_SET_NAME, "renamed");
	if (!fork())
		_exit(3);
	wait(&status);
	if (!fork())
		_exit(4);
	waitid(P_ALL, 0, &info, WEXITED);
	waitpid(-1, &status, WNOHANG);
	pthread_create(&other, NULL, thread, NULL);
	pthread_join(other, NULL);
}

static void time_and_signals(void)
{
	struct timespec moment = {0, 1000}, now;
	struct itimerval timer = {{0, 0}, {100, 0}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	siginfo_t info;
	sigset_t set;

	nanosleep(&moment, NULL);
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	setitimer(ITIMER_REAL, &timer, NULL);
	alarm(0);
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGINT);
	moment.tv_sec = 1;
	sigtimedwait(&set, &info, &moment);
	sigaltstack(&stack, NULL);
}

int main(void)
{
	files();
	pipes_and_waiting();
	network();
	time_and_signals();
	processes();
	abort();
}
