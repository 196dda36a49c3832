/*
 * Recordings made by hand, and replayed: a few instructions whose every effect is known,
 * with patches in the middle of blocks, a system call, results, signals, code that is
 * replaced, output, and then all of that with something wrong in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/encode.h"
#include "recording/meta.h"
#include "recording/stretch.h"
#include "replay/replayer.h"

#define CODE   0x401000ul
#define DATA   0x600000ul
#define FLAGS  0x202ul
#define TIME   77
#define SECOND 2 /* where a second stretch begins */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R11 = 11, R12, R13 };

/* clang-format off */
__asm__(
".intel_syntax noprefix\n"
".text\n"
"made_start:\n"
"	mov rax, [rbx]; add rax, 1; mov rcx, [rbx+64]; add rax, rcx; mov [rbx+8], rax; mov edi, 1; mov eax, 39\n"
"	syscall\n"
"made_called:\n"
"	mov r12, rax; rdtsc; mov r13, rax; mov rdx, [rbx+8]; mov eax, 60; syscall\n"
"made_end:\n"

"repeat_start: rep stosb; mov eax, 60; syscall\n"
"repeat_handler: mov rsi, [rbx]; mov eax, 39; syscall\n"
"repeat_called: mov eax, 15; syscall\n"
"repeat_end:\n"

"loop_start: call rbx; sub ecx, 1; jnz loop_start; mov eax, 60; syscall\n"
"loop_end:\n"

"write_start: mov eax, 1; mov edi, 1; mov rsi, rbx; mov edx, 6; syscall; mov eax, 60; syscall\n"
"write_end:\n"
".att_syntax\n");
/* clang-format on */

extern const uint8_t made_start[], made_called[], made_end[], repeat_start[], repeat_handler[],
        repeat_called[], repeat_end[], loop_start[], loop_end[], write_start[], write_end[];

/* ---- making a recording ---- */

struct making {
	struct coder coder;
	struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	uint8_t bytes[16 * ENCODE_MAXIMUM], *at;
	uint8_t *second; /* where another stretch begins, or NULL */
	bool first_is_lost;
	struct code_history history;
	char segments[64];
};

static struct making making;
static char directory[] = "/tmp/bugnet-replay-XXXXXX", path[64];
static struct replay_result result;

static void begin(const struct event_registers *registers)
{
	const struct event_keyframe keyframe = {.registers = *registers};

	code_history_deinit(&making.history);
	making.second = NULL;
	making.first_is_lost = false;
	coder_init(&making.coder, making.entries, 6);
	making.at = encode_keyframe(&making.coder, making.bytes, 0, &keyframe);
	snprintf(making.segments, sizeof making.segments, "7e0000000000 40000000");
}

/* The rest is another stretch, whose keyframe leans on so many. */
static void begin_second(uint64_t position, const struct event_registers *registers, uint32_t leans_on)
{
	const struct event_keyframe keyframe = {.registers = *registers, .leans_on = leans_on};

	making.second = making.at;
	making.at = encode_keyframe(&making.coder, making.at, position, &keyframe);
}

static void add_code(uint64_t address, const uint8_t *start, const uint8_t *end)
{
	const struct code_piece piece = {
	        .address = address, .size = (uint64_t)(end - start), .file = EVENT_FILE_NONE, .bytes = start};

	assert_true(code_history_add(&making.history, &piece));
}

static void put_patch(uint64_t position, uint64_t address, uint64_t word)
{
	uint64_t line[8] = {word};

	making.at = encode_patch(&making.coder, making.at, position, address, 1, line);
}

static void put_call(uint64_t position, const struct event_registers *at, uint64_t number, int64_t value)
{
	struct event_syscall call = {.registers = *at, .result = value};

	call.registers.gpr[RAX] = number;
	call.registers.flags &= EVENT_CALL_FLAGS;

	making.at = encode_syscall(&making.coder, making.at, position, &call);
}

static void put_time(uint64_t position, uint64_t low, uint64_t high)
{
	const struct event_result event = {
	        .changes = {.mask = 1 << RAX | 1 << RDX, .gpr = {[RAX] = low, [RDX] = high}}};

	making.at = encode_result(&making.coder, making.at, position, &event);
}

static void put_end(uint64_t position, const struct event_registers *registers)
{
	const struct event_end event = {.kind = END_EXIT, .registers = *registers};

	making.at = encode_end(&making.coder, making.at, position, &event);
}

/* Nothing is known of how far the thread came but what the events tell. */
static void write_stretch(
        struct writer *writer, uint32_t number, uint64_t first, const uint8_t *from, const uint8_t *to)
{
	assert_int_equal(
	        stretch_write(writer, 0, number, first, first, from, (size_t)(to - from)), RECORDING_OK);
}

static void write_recording(void)
{
	const char *segments[] = {making.segments};
	struct writer writer;
	struct meta meta = {0};

	snprintf(path, sizeof path, "%s/made.bug", directory);
	assert_int_equal(writer_init(&writer, path, 0), RECORDING_OK);
	assert_true(meta_set_texts(&meta, META_SEGMENTS, segments, 1));
	assert_int_equal(meta_write(&writer, &meta), RECORDING_OK);
	assert_int_equal(code_history_write(&writer, &making.history), RECORDING_OK);
	if (!making.first_is_lost)
		write_stretch(&writer, 0, 0, making.bytes, making.second ? making.second : making.at);
	if (making.second)
		write_stretch(&writer, 1, SECOND, making.second, making.at);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	meta_deinit(&meta);
}

/* What is printed about a divergence is not for the tests' output. */
static void replay_made(const struct replay_options *wanted)
{
	struct replay_options options = *wanted;
	int kept = dup(2);

	write_recording();
	options.path = path;
	fflush(stderr);
	assert_non_null(freopen("/dev/null", "w", stderr));
	replay(&options, &result);
	fflush(stderr);
	dup2(kept, 2);
	close(kept);
}

static const struct replay_options all = {.to = UINT64_MAX, .thread = UINT32_MAX};

static void expect(enum replay_outcome outcome, const char *message)
{
	replay_made(&all);
	if (result.outcome != outcome || !strstr(result.message, message))
		fail_msg("outcome %d, '%s' instead of %d, '%s'", result.outcome, result.message, outcome,
		        message);
}

/* ---- all kinds of events ---- */

static struct event_registers made_first(void)
{
	return (struct event_registers){.gpr = {[RBX] = DATA, [RSP] = 0x700000}, .pc = CODE, .flags = FLAGS};
}

/* 41 + 1 + 100 leaves an even number of bits in the low byte. */
static struct event_registers made_call(void)
{
	struct event_registers registers = made_first();

	registers.gpr[RAX] = SYS_getpid;
	registers.gpr[RCX] = 100;
	registers.gpr[RDI] = 1;
	registers.pc = CODE + (uint64_t)(made_called - made_start);
	registers.flags |= 4;
	return registers;
}

static struct event_registers made_last(void)
{
	struct event_registers registers = made_call();

	registers.gpr[RCX] = registers.pc;
	registers.gpr[R11] = registers.flags;
	registers.gpr[RAX] = SYS_exit;
	registers.gpr[RDX] = 142;
	registers.gpr[R12] = 1234;
	registers.gpr[R13] = TIME;
	registers.pc = CODE + (uint64_t)(made_end - made_start);
	return registers;
}

static void begin_made(void)
{
	struct event_registers first = made_first();

	begin(&first);
	add_code(CODE, made_start, made_end);
	put_patch(0, DATA, 41);
}

static void finish_made(void)
{
	struct event_registers call = made_call(), last = made_last();

	put_call(7, &call, SYS_getpid, 1234);
	put_time(9, TIME, 5);
	put_end(14, &last);
}

static void test_exact(void **state)
{
	(void)state;
	begin_made();
	put_patch(2, DATA + 64, 100);
	finish_made();
	expect(REPLAY_EXACT, "");
	assert_int_equal(result.instructions, 14);
	assert_int_equal(result.keyframes, 1);
	assert_int_equal(result.threads, 1);
}

/* A patch may come as early as the line was last used, but no later than it is loaded. */
static void test_patch_position(void **state)
{
	(void)state;
	for (uint64_t position = 0; position < 5; position++) {
		begin_made();
		put_patch(position, DATA + 64, 100);
		finish_made();
		if (position <= 2)
			expect(REPLAY_EXACT, "");
		else
			expect(REPLAY_DIVERGED,
			        "at system call getpid rcx differs: recorded 0x64, replayed 0");
	}
}

/* ---- keyframes that lean on others ---- */

/* Before the second load. */
static struct event_registers made_second(void)
{
	struct event_registers registers = made_first();

	registers.gpr[RAX] = 42;
	registers.pc = CODE + 7;
	return registers;
}

/* What the first stretch logged is there in the second, without being logged again. */
static void test_leaning(void **state)
{
	struct event_registers second = made_second();
	struct replay_options options = all;

	(void)state;
	for (uint32_t leans_on = 0; leans_on < 2; leans_on++) {
		begin_made();
		put_patch(0, DATA + 64, 100);
		begin_second(SECOND, &second, leans_on);
		finish_made();
		if (leans_on)
			expect(REPLAY_EXACT, "");
		else
			expect(REPLAY_DIVERGED, "rcx differs: recorded 0x64");
	}
	assert_int_equal(result.keyframes, 2);
	assert_int_equal(result.instructions, 14);
	options.from = SECOND + 1; /* nothing of the first stretch is executed */
	replay_made(&options);
	assert_int_equal(result.outcome, REPLAY_EXACT);
	assert_int_equal(result.instructions, 14 - SECOND);
	making.first_is_lost = true;
	replay_made(&all);
	assert_int_equal(result.outcome, REPLAY_EXACT);
	assert_int_equal(result.instructions, 0);
	assert_int_equal(result.skipped, 1);
}

/* The latest patch counts. What the thread stored meanwhile does not: it was not logged. */
static void test_leaning_order(void **state)
{
	struct event_registers second = made_second();

	(void)state;
	begin_made();
	put_patch(0, DATA + 64, 99);
	put_patch(1, DATA + 64, 100);
	begin_second(SECOND, &second, 1);
	finish_made();
	expect(REPLAY_EXACT, "");

	begin_made();
	put_patch(0, DATA + 64, 100);
	put_patch(1, DATA + 64, 99);
	begin_second(SECOND, &second, 1);
	put_patch(2, DATA + 64, 100);
	finish_made();
	expect(REPLAY_EXACT, "");

	struct event_registers call = made_call(), last = made_last();
	begin_made();
	put_patch(2, DATA + 64, 100);
	struct event_registers stored = call; /* behind the store that is loaded at 11 */
	stored.pc -= 2;
	begin_second(7, &stored, 1);
	put_call(7, &call, SYS_getpid, 1234);
	put_time(9, TIME, 5);
	put_end(14, &last);
	expect(REPLAY_DIVERGED, "rdx differs: recorded 0x8e");
}

static void test_to(void **state)
{
	struct replay_options options = all;

	(void)state;
	for (options.to = 0; options.to < 14; options.to++) {
		begin_made();
		put_patch(2, DATA + 64, 100);
		finish_made();
		replay_made(&options);
		assert_int_equal(result.outcome, REPLAY_EXACT);
		assert_int_equal(result.instructions, options.to);
	}
}

static void test_divergence(void **state)
{
	struct event_registers call = made_call(), last = made_last();

	(void)state;
	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(7, &call, SYS_getuid, 1234);
	expect(REPLAY_DIVERGED, "it makes system call getpid, recorded was getuid");

	begin_made();
	put_patch(2, DATA + 64, 101);
	put_call(7, &call, SYS_getpid, 1234);
	expect(REPLAY_DIVERGED, "at system call getpid ");

	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(6, &call, SYS_getpid, 1234);
	expect(REPLAY_DIVERGED, "it went past position 6");

	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(8, &call, SYS_getpid, 1234);
	expect(REPLAY_DIVERGED, "needs the log");

	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(7, &call, SYS_getpid, 1234);
	put_call(9, &call, SYS_getpid, 1234);
	expect(REPLAY_DIVERGED, "needs the log");

	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(7, &call, SYS_getpid, 1234);
	put_time(9, TIME + 1, 5);
	put_end(14, &last);
	expect(REPLAY_DIVERGED, "r13 differs: recorded 0x4d, replayed 0x4e");
}

/* The log just stops: so does replay, having applied all there is. */
static void test_cut(void **state)
{
	struct event_registers call = made_call();

	(void)state;
	begin_made();
	put_patch(2, DATA + 64, 100);
	put_call(7, &call, SYS_getpid, 1234);
	expect(REPLAY_EXACT, "");
	assert_int_equal(result.instructions, 8);
	assert_int_equal(result.cut, 1);
}

static void test_nonsense(void **state)
{
	(void)state;
	begin_made();
	put_patch(2, 0x7e0000000040, 100);
	expect(REPLAY_FAILED, "where the program had no memory");

	begin_made();
	*making.at++ = 0x0f;
	expect(REPLAY_FAILED, "no such kind of event");

	begin_made();
	snprintf(making.segments, sizeof making.segments, "7fffffff0000 40000000");
	expect(REPLAY_FAILED, "which is no place");

	begin_made();
	snprintf(making.segments, sizeof making.segments, "7e0000000000 1000");
	expect(REPLAY_FAILED, "too few");

	struct event_registers lost = made_first();
	lost.pc = 0x12345;
	begin(&lost);
	add_code(CODE, made_start, made_end);
	put_patch(100, DATA, 1);
	expect(REPLAY_DIVERGED, "there is no code at 0x12345");
}

/* ---- signals ---- */

/* A rep instruction is left after three iterations, and finished after the handler. */
static void test_repeat(void **state)
{
	uint64_t handler = CODE + (uint64_t)(repeat_handler - repeat_start);
	struct event_registers first = {
	        .gpr = {[RAX] = 0x41, [RCX] = 10, [RDI] = DATA, [RBX] = DATA}, .pc = CODE, .flags = FLAGS};
	struct event_registers entered = first, called, back = first, last;

	(void)state;
	entered.pc = handler;
	called = entered;
	called.gpr[RAX] = SYS_getpid;
	called.gpr[RSI] = 0x414141; /* what the handler loads: just so much was stored */
	called.pc = CODE + (uint64_t)(repeat_called - repeat_start);
	back.gpr[RCX] = 7;
	back.gpr[RDI] = DATA + 3;
	last = back;
	last.gpr[RCX] = 0;
	last.gpr[RDI] = DATA + 10;
	last.gpr[RAX] = SYS_exit;
	last.pc = handler;
	begin(&first);
	add_code(CODE, repeat_start, repeat_end);
	const struct event_signal signal = {.number = 14, .iterations = 3, .registers = entered};
	making.at = encode_signal(&making.coder, making.at, 0, &signal);
	put_call(2, &called, SYS_getpid, 1);
	const struct event_sigreturn sigreturn = {.registers = back};
	making.at = encode_sigreturn(&making.coder, making.at, 4, &sigreturn);
	put_end(8, &last);
	expect(REPLAY_EXACT, "");
	assert_int_equal(result.instructions, 8);
}

/* ---- code that is replaced ---- */

static void put_code(uint64_t position, uint32_t pieces)
{
	const struct event_code event = {pieces};

	making.at = encode_code(&making.coder, making.at, position, &event);
}

/* A loop calls a function twice, which is another one the second time, if the log says so. */
static void test_replaced(void **state)
{
	static const uint8_t one[] = {0x48, 0x83, 0xc0, 0x01, 0xc3}, ten[] = {0x48, 0x83, 0xc0, 0x0a, 0xc3};
	struct event_registers first = {
	        .gpr = {[RCX] = 2, [RBX] = CODE + 0x1000, [RSP] = 0x700000}, .pc = CODE, .flags = FLAGS};

	(void)state;
	for (unsigned told = 0; told < 3; told++) {
		struct event_registers last = first;

		begin(&first);
		add_code(CODE, loop_start, loop_end);
		add_code(CODE + 0x1000, one, one + sizeof one);
		add_code(CODE + 0x1000, ten, ten + sizeof ten);
		if (told == 1)
			put_code(6, 3);
		if (told == 2)
			put_code(0, 3);
		last.gpr[RAX] = told == 0 ? 2 : told == 1 ? 11 : 20;
		last.gpr[RCX] = 1;
		last.pc = CODE + 2; /* behind the call */
		last.flags = FLAGS | (told == 0 ? 0 : told == 1 ? 0 : 4);
		put_end(8, &last);
		expect(REPLAY_EXACT, "");
	}
}

/* ---- output ---- */

static void test_output(void **state)
{
	struct event_registers first = {.gpr = {[RBX] = DATA}, .pc = CODE, .flags = FLAGS}, call = first;
	struct replay_options options = all;
	int pipes[2], kept = dup(1);
	char text[16] = "";

	(void)state;
	call.gpr[RAX] = SYS_write;
	call.gpr[RDI] = 1;
	call.gpr[RSI] = DATA;
	call.gpr[RDX] = 6;
	call.pc = CODE + (uint64_t)(write_end - write_start) - 7;
	begin(&first);
	add_code(CODE, write_start, write_end);
	put_patch(0, DATA, 0x0a6f6c6c6568); /* "hello\n" */
	put_call(4, &call, SYS_write, 6);
	assert_int_equal(pipe(pipes), 0);
	fflush(stdout);
	dup2(pipes[1], 1);
	options.output = true;
	replay_made(&options);
	dup2(kept, 1);
	close(kept);
	close(pipes[1]);
	assert_int_equal(result.outcome, REPLAY_EXACT);
	assert_int_equal(read(pipes[0], text, sizeof text), 6);
	assert_string_equal(text, "hello\n");
	close(pipes[0]);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	code_history_deinit(&making.history);
	unlink(path);
	return rmdir(directory);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_exact),
	        cmocka_unit_test(test_patch_position),
	        cmocka_unit_test(test_leaning),
	        cmocka_unit_test(test_leaning_order),
	        cmocka_unit_test(test_to),
	        cmocka_unit_test(test_divergence),
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_nonsense),
	        cmocka_unit_test(test_repeat),
	        cmocka_unit_test(test_replaced),
	        cmocka_unit_test(test_output),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
