/*
 * What seccomp filters are taken to say, against what the kernel makes of them: the same filters, and random
 * ones, are installed in a child that makes the call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/filter_program.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

#define DATA(member)       offsetof(struct seccomp_data, member)
#define LOAD(offset)       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define RETURN(what)       BPF_STMT(BPF_RET | BPF_K, what)
#define EQUALS(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)

static enum filter_answer ask(const struct sock_filter *program, uint32_t count, int number)
{
	return filter_asked(program, count, &(struct filter_question){.number = number});
}

static void lists(void **state)
{
	const struct sock_filter program[] = {
	        LOAD(DATA(arch)),
	        EQUALS(AUDIT_ARCH_X86_64, 1, 0),
	        RETURN(SECCOMP_RET_KILL_PROCESS),
	        LOAD(DATA(nr)),
	        EQUALS(SYS_read, 3, 0),
	        EQUALS(SYS_getpid, 3, 0),
	        EQUALS(SYS_gettid, 3, 0),
	        RETURN(SECCOMP_RET_KILL_PROCESS),
	        RETURN(SECCOMP_RET_ALLOW),
	        RETURN(SECCOMP_RET_ERRNO | EPERM),
	        RETURN(SECCOMP_RET_ERRNO),
	};

	(void)state;
	assert_int_equal(ask(program, LENGTH(program), SYS_read), FILTER_PERMITS);
	assert_int_equal(ask(program, LENGTH(program), SYS_getpid), FILTER_REFUSES);
	assert_int_equal(ask(program, LENGTH(program), SYS_gettid), FILTER_FORBIDS); /* it pretends */
	assert_int_equal(ask(program, LENGTH(program), SYS_write), FILTER_FORBIDS);
}

/* As systemd's MemoryDenyWriteExecute= does: by an argument. */
static void arguments(void **state)
{
	const struct sock_filter program[] = {
	        LOAD(DATA(nr)),
	        EQUALS(SYS_mprotect, 0, 3),
	        LOAD(DATA(args[2])),
	        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
	        RETURN(SECCOMP_RET_ERRNO | EPERM),
	        RETURN(SECCOMP_RET_ALLOW),
	};
	struct filter_question question = {.number = SYS_mprotect, .known = 4};

	(void)state;
	question.arguments[2] = 3;
	assert_int_equal(filter_asked(program, LENGTH(program), &question), FILTER_PERMITS);
	question.arguments[2] = 5;
	assert_int_equal(filter_asked(program, LENGTH(program), &question), FILTER_REFUSES);
	question.known = 0;
	assert_int_equal(filter_asked(program, LENGTH(program), &question), FILTER_REFUSES);
	question.number = SYS_mmap;
	assert_int_equal(filter_asked(program, LENGTH(program), &question), FILTER_PERMITS);
}

/* Whence a call comes is not known. */
static void places(void **state)
{
	const struct sock_filter program[] = {
	        LOAD(DATA(instruction_pointer)),
	        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0x1000, 0, 1),
	        RETURN(SECCOMP_RET_ALLOW),
	        RETURN(SECCOMP_RET_TRAP),
	};

	(void)state;
	assert_int_equal(ask(program, LENGTH(program), SYS_read), FILTER_FORBIDS);
}

static void nonsense(void **state)
{
	const struct sock_filter beyond[] = {
	        BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), RETURN(SECCOMP_RET_ALLOW)};
	const struct sock_filter endless[] = {LOAD(0)};
	const struct sock_filter bytes[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), RETURN(SECCOMP_RET_ALLOW)};
	const struct sock_filter far[] = {LOAD(64), RETURN(SECCOMP_RET_ALLOW)};
	const struct sock_filter memory[] = {BPF_STMT(BPF_ST, BPF_MEMWORDS), RETURN(SECCOMP_RET_ALLOW)};

	(void)state;
	assert_int_equal(ask(beyond, 2, 0), FILTER_FORBIDS);
	assert_int_equal(ask(endless, 1, 0), FILTER_FORBIDS);
	assert_int_equal(ask(endless, 0, 0), FILTER_FORBIDS);
	assert_int_equal(ask(bytes, 2, 0), FILTER_FORBIDS);
	assert_int_equal(ask(far, 2, 0), FILTER_FORBIDS);
	assert_int_equal(ask(memory, 2, 0), FILTER_FORBIDS);
}

/* ---- against the kernel ---- */

static uint64_t seed = 7;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static uint32_t interesting(void)
{
	static const uint32_t numbers[] = {0, 1, 3, 4, 8, 31, 33, SYS_getpriority, AUDIT_ARCH_X86_64,
	        0x7fffffff, 0x80000000, 0xffffffff, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | 7};

	return numbers[draw(LENGTH(numbers))];
}

static struct sock_filter random_instruction(uint32_t left)
{
	static const uint16_t alu[] = {
	        BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH};
	static const uint16_t jumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	uint16_t source = draw(3) ? BPF_K : BPF_X;

	switch (draw(8)) {
	case 0:
	case 1:
		/* not the address of the call */
		return (struct sock_filter)LOAD(draw(2) ? 4 * draw(2) : 16 + 4 * draw(12));
	case 2: {
		uint16_t operation = alu[draw(LENGTH(alu))];
		if (operation == BPF_LSH || operation == BPF_RSH)
			source = BPF_K;
		return (struct sock_filter)BPF_STMT(BPF_ALU | operation | source, draw(31) + 1);
	}
	case 3:
		return (struct sock_filter)BPF_STMT(BPF_ALU | BPF_NEG, 0);
	case 4:
		return (struct sock_filter)BPF_STMT(
		        draw(2) ? BPF_LD | BPF_IMM : BPF_LDX | BPF_IMM, interesting());
	case 5:
		return (struct sock_filter)BPF_STMT(BPF_MISC | (draw(2) ? BPF_TAX : BPF_TXA), 0);
	case 6:
		/* only what was stored before may be loaded: all words are, at the start */
		return (struct sock_filter)BPF_STMT(draw(2)   ? BPF_ST
		                                    : draw(2) ? BPF_LD | BPF_MEM
		                                              : BPF_LDX | BPF_MEM,
		        draw(2));
	default:
		return (struct sock_filter)BPF_JUMP(BPF_JMP | jumps[draw(LENGTH(jumps))] | source,
		        interesting(), (uint8_t)draw(left), (uint8_t)draw(left));
	}
}

/* Two words are stored first; the last four instructions are returns, so that every way ends. */
static uint32_t random_program(struct sock_filter *program)
{
	uint32_t count = 2, end = 6 + draw(24);

	program[0] = (struct sock_filter)BPF_STMT(BPF_ST, 0);
	program[1] = (struct sock_filter)BPF_STMT(BPF_ST, 1);
	for (; count < end; count++)
		program[count] = random_instruction(end - count);
	program[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | 7);
	return count;
}

/* What the call gives under the filter: -1: killed, 2: it was not installed, 1: refused, 0: made. */
static int try_call(const struct sock_filter *program, uint32_t count, const uint64_t *a)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct sock_fprog filter = {(unsigned short)count, (struct sock_filter *)program};
		struct sock_filter guarded[80];
		/* Others pass: it is about this one, and the child has to tell. */
		guarded[0] = (struct sock_filter)LOAD(DATA(nr));
		guarded[1] = (struct sock_filter)EQUALS(SYS_getpriority, 1, 0);
		guarded[2] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
		memcpy(guarded + 3, program, count * sizeof *program);
		filter.len = (unsigned short)(count + 3);
		filter.filter = guarded;
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(2);
		long result = syscall(SYS_getpriority, a[0], a[1], a[2], a[3], a[4], a[5]);
		_exit(result < 0 && errno == 7 ? 1 : result < 0 && errno == ENOSYS ? 3 : 0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void as_the_kernel(void **state)
{
	struct sock_filter program[64];
	unsigned permitted = 0, refused = 0, forbidden = 0;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		uint32_t count = random_program(program);
		struct filter_question question = {.number = SYS_getpriority, .known = 0x3f};
		for (unsigned k = 0; k < 6; k++)
			question.arguments[k] = (uint64_t)interesting() << 32 | interesting();
		question.arguments[0] = 0; /* the process itself, so that the call works */
		question.arguments[1] = 0;
		/* A with the word it has there: guarded, it was the number of the call. */
		struct sock_filter whole[68];
		whole[0] = (struct sock_filter)LOAD(DATA(nr));
		memcpy(whole + 1, program, count * sizeof *program);
		enum filter_answer answer = filter_asked(whole, count + 1, &question);
		if (draw(4) == 0) {
			/* The last return is another one. */
			program[count - 1].k = whole[count].k = SECCOMP_RET_KILL_PROCESS;
			answer = filter_asked(whole, count + 1, &question);
		} else if (draw(2) == 0) {
			program[count - 1].k = whole[count].k = SECCOMP_RET_ALLOW;
			answer = filter_asked(whole, count + 1, &question);
		}
		int outcome = try_call(program, count, question.arguments);
		if (outcome == 2)
			skip();
		int expected = answer == FILTER_PERMITS ? 0 : answer == FILTER_REFUSES ? 1 : -1;
		if (outcome != expected)
			fprintf(stderr, "filter %u: answer %d, outcome %d\n", i, answer, outcome);
		assert_int_equal(outcome, expected);
		permitted += expected == 0;
		refused += expected == 1;
		forbidden += expected == -1;
	}
	assert_true(permitted > 50 && refused > 50 && forbidden > 50);
}

/* Any bytes: it must come back, and reads nothing but the program. */
static void any_bytes(void **state)
{
	struct sock_filter program[40];

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t count = 1 + draw(LENGTH(program));
		for (uint32_t k = 0; k < count; k++)
			program[k] = (struct sock_filter){(uint16_t)(draw(4) ? draw(256) : draw(65536)),
			        (uint8_t)draw(8), (uint8_t)draw(8), draw(2) ? draw(64) : interesting()};
		struct sock_filter *exact = malloc(count * sizeof *exact);
		memcpy(exact, program, count * sizeof *exact);
		ask(exact, count, (int)draw(400));
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(lists),
	        cmocka_unit_test(arguments),
	        cmocka_unit_test(places),
	        cmocka_unit_test(nonsense),
	        cmocka_unit_test(as_the_kernel),
	        cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
