/*
 * Credentials, limits, personality, capabilities, umask, working directory, nice value, timer slack,
 * priorities, mask and ignored signals: as they were given, printed for comparison with the native run.
 */
#include "check.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

int main(void)
{
	uid_t r, e, s;
	gid_t groups[256], gr, ge, gs;
	struct rlimit limit;
	char directory[4096], line[256];

	CHECK(!getresuid(&r, &e, &s));
	CHECK(!getresgid(&gr, &ge, &gs));
	printf("uid %u %u %u gid %u %u %u\n", r, e, s, gr, ge, gs);
	int count = getgroups(256, groups);
	printf("%d groups:", count);
	for (int i = 0; i < count; i++)
		printf(" %u", groups[i]);
	printf("\n");
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		CHECK(!getrlimit(i, &limit));
		printf("limit %d: %lld %lld\n", i, (long long)limit.rlim_cur, (long long)limit.rlim_max);
	}
	printf("personality %#x\n", personality(0xffffffff));
	mode_t mask = umask(0);
	umask(mask);
	printf("umask %o\n", mask);
	CHECK(getcwd(directory, sizeof directory));
	printf("directory %s\n", directory);
	printf("nice %d, scheduler %d, slack %d, dumpable %d, no_new_privs %d, subreaper ", nice(0),
	        sched_getscheduler(0), prctl(PR_GET_TIMERSLACK), prctl(PR_GET_DUMPABLE),
	        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	int reaper;
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &reaper));
	printf("%d, seccomp %d, tsc %d, keepcaps %d\n", reaper, prctl(PR_GET_SECCOMP),
	        prctl(PR_GET_TSC, &count) ? -1 : count, prctl(PR_GET_KEEPCAPS));
	cpu_set_t set;
	CHECK(!sched_getaffinity(0, sizeof set, &set));
	printf("%d processors\n", CPU_COUNT(&set));
	FILE *file = fopen("/proc/self/status", "re");
	CHECK(file);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "Cap", 3) || !strncmp(line, "Uid", 3) || !strncmp(line, "Gid", 3) ||
		        !strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6) ||
		        !strncmp(line, "TracerPid", 9) || !strncmp(line, "Groups", 6) ||
		        !strncmp(line, "Seccomp:", 8))
			fputs(line, stdout);
	fclose(file);
	for (int fd = 0; fd < 3; fd++)
		printf("fd %d: flags %#x, descriptor flags %d, terminal %d\n", fd, fcntl(fd, F_GETFL),
		        fcntl(fd, F_GETFD), isatty(fd));
	file = fopen("/proc/self/oom_score_adj", "re");
	if (file && fgets(line, sizeof line, file))
		printf("oom_score_adj %s", line);
	fclose(file);
	file = fopen("/proc/self/coredump_filter", "re");
	if (file && fgets(line, sizeof line, file))
		printf("coredump_filter %s", line);
	fclose(file);
	return done();
}
