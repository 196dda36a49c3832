/* record: | --children */
/*
 * A daemon by double fork: new session, detached from its parent, every descriptor from 3 up closed, standard
 * ones replaced; it goes on computing, forks again, and reports through a file.
 */
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void daemon_body(void)
{
	struct rlimit limit;
	setsid();
	pid_t child = fork();
	if (child)
		_exit(child < 0);
	umask(0);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	for (int fd = 0; fd < (limit.rlim_cur > 65536 ? 65536 : (int)limit.rlim_cur); fd++)
		close(fd);
	CHECK_EQ(open("/dev/null", O_RDWR), 0);
	CHECK_EQ(dup(0), 1);
	CHECK_EQ(dup(0), 2);
	/* New code after the descriptors are gone. */
	char text[256];
	int out = open("report.new", O_CREAT | O_WRONLY, 0644);
	CHECK_EQ(out, 3);
	int status = 0;
	pid_t grandchild = fork();
	if (grandchild == 0)
		_exit((int)(compute(3, 1000) & 63));
	CHECK_EQ(waitpid(grandchild, &status, 0), grandchild);
	int size = snprintf(text, sizeof text, "session leader %d, sum %llx, grandchild %d, %.3f\n",
	        getsid(0) == getpid(), (long long)compute(8, 10000), WEXITSTATUS(status), 1.0 / 3);
	CHECK_EQ(write(out, text, (size_t)size), size);
	close(out);
	CHECK(!rename("report.new", "report"));
	_exit(0);
}

int main(void)
{
	char text[256] = "";
	int status;
	pid_t child = fork();
	if (child == 0)
		daemon_body();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	int fd = -1;
	for (int i = 0; i < 20000 && fd < 0; i++) {
		usleep(1000);
		fd = open("report", O_RDONLY);
	}
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof text - 1) > 0);
	printf("%s", text);
	return done();
}
