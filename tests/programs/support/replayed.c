/*
 * replayed [crash|loop|killed|threads]: a program with every kind of input: arguments, environment, a file, its folder and
 * user, the clock, a network connection, another thread. What it read and what it worked out go to stdout and
 * stderr. The word 0x1122334455667788 of the file goes through a register of a system call; with `crash`, only
 * through one that the end of the recording has; with `threads`, through one of each of several threads.
 */
#include "../check.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

static uint64_t input[8];

static void read_file(void)
{
	int fd = open("input", O_RDONLY);
	CHECK(fd >= 0);
	CHECK_EQ(read(fd, input, sizeof input), sizeof input);
	close(fd);
}

/* One message to ourselves over the loopback device. */
static void use_network(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	char text[32] = "";
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(server, (struct sockaddr *)&address, size) && !listen(server, 1));
	CHECK(!getsockname(server, (struct sockaddr *)&address, &size));
	CHECK(!connect(client, (struct sockaddr *)&address, size));
	int peer = accept(server, NULL, NULL);
	CHECK_EQ(write(client, "over the network", 16), 16);
	CHECK_EQ(read(peer, text, sizeof text), 16);
	printf("%s, port %d\n", text, ntohs(address.sin_port));
	close(peer);
	close(client);
	close(server);
}

static void *other_thread(void *arg)
{
	*(uint64_t *)arg = compute(input[1], 1000);
	return NULL;
}

static void *calling_thread(void *arg)
{
	uint64_t sum = 0;
	for (int i = 0; i < 4; i++) {
		sum += compute(input[1], 50000);
		syscall(SYS_getppid, *(volatile uint64_t *)input);
	}
	*(uint64_t *)arg = sum;
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[6];
	uint64_t results[6];
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_create(&threads[i], NULL, calling_thread, &results[i]));
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(threads[i], NULL));
	printf("threads %016llx\n", (unsigned long long)(results[0] + results[5]));
}

static void show_surroundings(int argc, char **argv)
{
	struct timespec now;
	char folder[4096], date[64];
	CHECK(!clock_gettime(CLOCK_REALTIME, &now) && getcwd(folder, sizeof folder));
	strftime(date, sizeof date, "%c %Z", localtime(&now.tv_sec));
	printf("%d arguments, the last is %s\n", argc, argv[argc - 1]);
	printf("HOME %s, folder %s, user %d, pid %d\n", getenv("HOME"), folder, getuid(), getpid());
	printf("time %ld.%09ld, %s\n", (long)now.tv_sec, now.tv_nsec, date);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct iovec parts[] = {{"to stderr ", 10}, {"in parts\n", 9}};
	pthread_t thread;
	uint64_t result;

	read_file();
	show_surroundings(argc, argv);
	use_network();
	CHECK(!pthread_create(&thread, NULL, other_thread, &result) && !pthread_join(thread, NULL));
	printf("sum %016llx\n", (unsigned long long)result);
	fflush(stdout);
	CHECK_EQ(writev(2, parts, 2), 19);
	if (!strcmp(how, "loop")) {
		/* Keyframes are made where a thread comes to the stub: at system calls, for one. */
		for (int i = 0; i < 40; i++) {
			result += compute(input[2] + (uint64_t)i, 50000);
			syscall(SYS_getppid, 0);
		}
		printf("loop %016llx\n", (unsigned long long)result);
	}
	if (!strcmp(how, "killed")) {
		result = compute(input[2], 300000);
		CHECK(result);
		raise(SIGKILL);
	}
	if (!strcmp(how, "crash"))
		__asm__ volatile("ud2" : : "b"(*(volatile uint64_t *)input));
	if (!strcmp(how, "threads"))
		run_threads();
	else
		syscall(SYS_getppid, *(volatile uint64_t *)input);
	fprintf(stderr, "the end\n");
	return 7;
}
