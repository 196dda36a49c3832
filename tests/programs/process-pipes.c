/* A chain of ten processes joined by pipes; each adds to what it passes on; backpressure, end of file,
 * statuses. */
#include "check.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void read_all(int fd, void *buffer, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t got = read(fd, (char *)buffer + at, size - at);
		CHECK(got > 0);
		at += (size_t)got;
	}
}

int main(void)
{
	int first[2], input;
	pid_t child[10];

	CHECK(!pipe(first));
	input = first[0];
	for (int i = 0; i < 10; i++) {
		int next[2];
		CHECK(!pipe(next));
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i] == 0) {
			uint64_t block[100];
			ssize_t size;
			close(first[1]);
			close(next[0]);
			while ((size = read(input, block, sizeof block)) > 0) {
				while (size % 8) {
					ssize_t more =
					        read(input, (char *)block + size, 8 - (size_t)size % 8);
					CHECK(more > 0);
					size += more;
				}
				for (int k = 0; k < size / 8; k++)
					block[k] = block[k] * 3 + (uint64_t)i;
				CHECK_EQ(write(next[1], block, (size_t)size), size);
			}
			_exit(i);
		}
		close(input);
		close(next[1]);
		input = next[0];
	}
	/* More than the pipes hold: a writer of its own. */
	pid_t writer = fork();
	if (writer == 0) {
		for (uint64_t i = 0; i < 200000; i++)
			CHECK_EQ(write(first[1], &i, 8), 8);
		_exit(0);
	}
	close(first[1]);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t value, expected = i;
		read_all(input, &value, 8);
		for (uint64_t k = 0; k < 10; k++)
			expected = expected * 3 + k;
		CHECK_EQ(value, expected);
		sum = mix(sum, value);
	}
	char byte;
	CHECK_EQ(read(input, &byte, 1), 0);
	int status;
	CHECK_EQ(waitpid(writer, &status, 0), writer);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
		CHECK_EQ(status, i << 8);
	}
	printf("sum %llx\n", (long long)sum);

	/* A descriptor sent over a socket. */
	int pair[2];
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	if (fork() == 0) {
		int fds[2];
		char text = 'x';
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(int))];
		} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
		struct iovec vector = {&text, 1};
		struct msghdr message = {.msg_iov = &vector,
		        .msg_iovlen = 1,
		        .msg_control = &control,
		        .msg_controllen = sizeof control};
		CHECK(!pipe(fds));
		memcpy(CMSG_DATA(&control.header), &fds[0], sizeof(int));
		CHECK_EQ(sendmsg(pair[1], &message, 0), 1);
		CHECK_EQ(write(fds[1], "through a passed descriptor", 27), 27);
		_exit(0);
	}
	char text[64] = "", space[64];
	struct iovec vector = {text, 1};
	struct msghdr message = {
	        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	CHECK_EQ(recvmsg(pair[0], &message, 0), 1);
	int received;
	memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	read_all(received, text, 27);
	printf("%s\n", text);
	wait(NULL);
	return done();
}
