/* Names that strace and others print for the kernel's numbers. */
#ifndef BUGNET_RECORDING_NAMES_H
#define BUGNET_RECORDING_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAME_TEXT_SIZE 96

/* Into the buffer, which they return. "openat", or "syscall_9999" for one that is not known. */
const char *syscall_name(uint64_t number, char text[NAME_TEXT_SIZE]);
/* "SIGSEGV", "SIGRT_3", "SIG99" */
const char *signal_name(uint32_t number, char text[NAME_TEXT_SIZE]);
/* "SEGV_MAPERR", "SI_USER", or the number: codes mean something with their signal only. */
const char *signal_code_name(uint32_t signal, int32_t code, char text[NAME_TEXT_SIZE]);
/* What follows the "=" in strace: "3", "-1 ENOENT (No such file or directory)", "0x7f0000000000". */
const char *syscall_result_text(uint64_t number, int64_t result, char text[NAME_TEXT_SIZE]);
/* How a thread or a process ended (enum event_end_kind): "exited with status 3", "killed by SIGSEGV". */
const char *end_text(uint32_t kind, int32_t status, char text[NAME_TEXT_SIZE]);
#define SIGNAL_INFO_TEXT_SIZE 512
/*
 * "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10}"; `details` are the four words of siginfo behind
 * si_code.
 */
const char *signal_info_text(
        uint32_t signal, int32_t code, const uint64_t details[4], char text[SIGNAL_INFO_TEXT_SIZE]);

#endif
