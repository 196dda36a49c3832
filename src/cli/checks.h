/*
 * What `bugnet doctor` looks at. A check tries the thing itself where it can: what a
 * setting means is for the kernel to say, and containers and security modules add
 * rules of their own.
 */
#ifndef BUGNET_CLI_CHECKS_H
#define BUGNET_CLI_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

enum check_result {
	CHECK_OK,
	CHECK_WARN, /* bugnet works, but something is missing or may surprise */
	CHECK_FAIL, /* bugnet cannot work here */
};

struct finding {
	enum check_result result;
	char what[512]; /* what was found */
	char mend[256]; /* how to mend it; empty when there is nothing to mend */
};

/* Fill in one part of a finding. A finding starts as CHECK_OK with both texts empty. */
__attribute__((format(printf, 2, 3))) void finding_what(struct finding *finding, const char *format, ...);
__attribute__((format(printf, 3, 4))) void finding_mend(
        struct finding *finding, enum check_result result, const char *format, ...);

/* checks_cpu.c */
void check_cpu(struct finding *finding);
void check_fsgsbase(struct finding *finding);
void check_xsave(struct finding *finding);
void check_avx2(struct finding *finding);
void check_bmi2(struct finding *finding);
void check_avx512(struct finding *finding);
bool fsgsbase_enabled(void);

/* checks_kernel.c: what the kernel lets us do */
void check_kernel(struct finding *finding);
void check_sandbox(struct finding *finding);
void check_memfd(struct finding *finding);
void check_memfd_exec(struct finding *finding);
void check_process_vm(struct finding *finding);
void check_pidfd(struct finding *finding);
void check_ptrace(struct finding *finding);
void check_seccomp(struct finding *finding);
void check_vsyscall(struct finding *finding);
void check_user_namespace(struct finding *finding);
void check_perf(struct finding *finding);

/* checks_system.c: settings, limits and room */
void check_proc(struct finding *finding);
void check_proc_mem(struct finding *finding);
void check_address_space(struct finding *finding);
void check_processes(struct finding *finding);
void check_open_files(struct finding *finding);
void check_file_size(struct finding *finding);
void check_overcommit(struct finding *finding);
void check_map_count(struct finding *finding);
void check_memory(struct finding *finding);
void check_disk(struct finding *finding);
void check_core_pattern(struct finding *finding);
void check_gdb(struct finding *finding);

/* The first line of a file without its newline; false when it cannot be read. */
bool read_first_line(const char *path, char *line, size_t size);
/* The text behind "NAME:" in a file such as /proc/self/status. */
bool read_field(const char *path, const char *name, char *value, size_t size);

#endif
