/* bugnet doctor: what this machine allows, and how to mend what it does not. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/checks.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/json.h"
#include "cli/version.h"

struct doctor_values {
	bool json;
};

static const struct option_spec doctor_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct doctor_values, json),
                .help = "print one JSON object instead of text",
        },
        {0},
};

static const struct {
	const char *name;
	void (*function)(struct finding *finding);
} checks[] = {
        {"cpu", check_cpu},
        {"fsgsbase", check_fsgsbase},
        {"xsave", check_xsave},
        {"avx2", check_avx2},
        {"bmi2", check_bmi2},
        {"avx512", check_avx512},
        {"kernel", check_kernel},
        {"sandbox", check_sandbox},
        {"ptrace", check_ptrace},
        {"memfd", check_memfd},
        {"memfd-exec", check_memfd_exec},
        {"process-vm", check_process_vm},
        {"pidfd", check_pidfd},
        {"proc", check_proc},
        {"proc-mem", check_proc_mem},
        {"seccomp", check_seccomp},
        {"vsyscall", check_vsyscall},
        {"user-namespace", check_user_namespace},
        {"address-space", check_address_space},
        {"processes", check_processes},
        {"open-files", check_open_files},
        {"file-size", check_file_size},
        {"overcommit", check_overcommit},
        {"map-count", check_map_count},
        {"memory", check_memory},
        {"disk", check_disk},
        {"core-pattern", check_core_pattern},
        {"gdb", check_gdb},
        {"perf", check_perf},
};

#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static const char *const result_names[] = {
        [CHECK_OK] = "ok",
        [CHECK_WARN] = "warn",
        [CHECK_FAIL] = "FAIL",
};

void finding_what(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->what, sizeof(finding->what), format, arguments);
	va_end(arguments);
}

void finding_mend(struct finding *finding, enum check_result result, const char *format, ...)
{
	va_list arguments;

	finding->result = result;
	va_start(arguments, format);
	vsnprintf(finding->mend, sizeof(finding->mend), format, arguments);
	va_end(arguments);
}

static void print_text(const char *name, const struct finding *finding)
{
	printf("%-5s %-15s ", result_names[finding->result], name);
	/* Settings of the system end up in here: no control characters on the terminal. */
	for (const unsigned char *c = (const unsigned char *)finding->what; *c; c++)
		putchar(*c < 0x20 || *c == 0x7f ? '?' : *c);
	if (*finding->mend)
		printf("; %s", finding->mend);
	putchar('\n');
}

static void print_json(const struct finding findings[CHECKS], bool failed)
{
	printf("{\n  \"version\": \"%s\",\n  \"ok\": %s,\n  \"checks\": [\n", BUGNET_VERSION,
	        failed ? "false" : "true");
	for (size_t i = 0; i < CHECKS; i++) {
		printf("    {\"name\": \"%s\", \"result\": \"%s\", \"what\": ", checks[i].name,
		        result_names[findings[i].result]);
		json_print_text(stdout, findings[i].what);
		printf(", \"mend\": ");
		json_print_text(stdout, findings[i].mend);
		printf("}%s\n", i + 1 < CHECKS ? "," : "");
	}
	printf("  ]\n}\n");
}

static int doctor_main(int argc, char **argv)
{
	struct doctor_values values = {0};
	struct finding findings[CHECKS] = {0};
	bool failed = false;
	int status;
	int first = options_parse(&doctor_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if (first < argc) {
		error_print("doctor", "unexpected argument '%s'; the only option is --json", argv[first]);
		return STATUS_FAILED;
	}
	for (size_t i = 0; i < CHECKS; i++) {
		checks[i].function(&findings[i]);
		failed |= findings[i].result == CHECK_FAIL;
		if (!values.json)
			print_text(checks[i].name, &findings[i]);
	}
	if (values.json)
		print_json(findings, failed);
	return failed ? 1 : 0;
}

const struct command doctor_command = {
        .name = "doctor",
        .summary = "say what this machine allows and how to mend what it does not",
        .synopsis = "doctor [--json]",
        .description =
                "Check the processor, the kernel, permissions and limits that bugnet depends on. Each line\n"
                "says ok, warn or FAIL, what was found, and how to mend it.\n"
                "\n"
                "Exit status: 0 when nothing failed, 1 otherwise.\n",
        .options = doctor_options,
        .function = doctor_main,
};
