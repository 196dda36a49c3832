/*
 * Code that faults: the state that the records give at the fault must be the
 * one a native run shows there, in every register and flag.
 */
#include "translate_harness.h"

/* clang-format off */
__asm__(
".intel_syntax noprefix\n"
".text\n"
"fault_code:\n"
"fault_load: cmp eax, ebx; mov rdx, [rdx]; ret\n"
"fault_rip_load: stc; mov rax, [rip+fault_hole]; ret\n"
"fault_rip_store: stc; mov [rip+fault_hole], rax; ret\n"
"fault_rip_add: mov ecx, 5; add [rip+fault_hole], rcx; ret\n"
"fault_rip_vector: mov ecx, 5; vmovdqu ymm1, [rip+fault_hole]; ret\n"
"fault_gs_load: mov ecx, 5; mov rax, gs:[rax+rcx*8]; ret\n"
"fault_gs_store: mov ecx, 5; mov gs:[rcx+rdx], rsi; ret\n"
"fault_gs_string: mov ecx, 4100; lea rsi, [rip+fault_edge-50]; lods al, gs:[rsi]; rep movsb es:[rdi], gs:[rsi]; ret\n"
"fault_call_memory: call [rax]; ret\n"
"fault_call_rip: call [rip+fault_hole]; ret\n"
"fault_call_gs: call gs:[rcx+8]; ret\n"
"fault_call_stack: mov rsp, 64; call 1f; nop\n1: ret\n"
"fault_call_indirect_stack: mov rsp, 64; lea rax, [rip+fault_load]; call rax; nop\n"
"fault_jump_memory: jmp [rcx+rax*2]\n"
"fault_ret: mov rsp, 64; ret\n"
"fault_ret_n: mov rsp, 64; ret 16\n"
"fault_push: mov rsp, 72; push rax; ret\n"
"fault_div: xor ecx, ecx; stc; div ecx; ret\n"
"fault_ud2: cmp eax, eax; ud2\n"
"fault_hlt: cmp eax, eax; hlt\n"
"fault_in: cmp eax, eax; in al, dx; ret\n"
"fault_int3: cmp eax, eax; int3; ret\n"
"fault_int1: cmp eax, eax; .byte 0xf1; ret\n"
"fault_int5: cmp eax, eax; int 5; ret\n"
"fault_undefined: cmp eax, eax; .byte 0x06; ret\n"
"fault_too_long: cmp eax, eax; .byte 0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x90; ret\n"
"fault_image: stc; fnstenv [rax]; ret\n"
"fault_xsave: stc; mov edx, 1; xsave fs:[rdx+64]; ret\n"
"fault_xrstor: stc; mov ecx, 1; xrstor [rcx+rdx]; ret\n"
"fault_after_call: call 1f; mov rdx, [rdx]; ret\n1: cmp rsp, rax; ret\n"
".section .data\n"
".balign 4096\n"
"fault_hole: .space 4096\n"
".space 4096-50\n"
".space 50\n"
"fault_edge: .space 4096\n"
".space 4096\n"
".text\n"
".att_syntax\n");
/* clang-format on */

/* clang-format off */
#define FAULTS(X) \
	X(load) X(rip_load) X(rip_store) X(rip_add) X(rip_vector) X(gs_load) X(gs_store) \
	X(gs_string) X(call_memory) X(call_rip) X(call_gs) X(call_stack) X(call_indirect_stack) X(jump_memory) \
	X(ret) X(ret_n) X(push) X(div) X(ud2) X(hlt) X(in) \
	X(int3) X(int1) X(int5) X(undefined) X(too_long) X(image) X(xsave) \
	X(xrstor) X(after_call)
/* clang-format on */

#define DECLARE(name) extern const char fault_##name[];
FAULTS(DECLARE)
extern const char fault_code[];
extern uint8_t fault_hole[], fault_edge[];

static struct cpu fault_cpu;
static int fault_signal;

/* Notes the state and makes the code leave by the stop. */
static void on_fault(int signal, siginfo_t *info, void *opaque)
{
	ucontext_t *context = opaque;

	(void)info;
	cpu_from_context(&fault_cpu, context);
	fault_signal = signal;
	context->uc_mcontext.gregs[REG_RIP] = (uint64_t)harness_leave_stop;
}

static void catch_faults(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	static uint8_t stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		assert_int_equal(sigaction(signals[i], &action, NULL), 0);
}

/* harness_run() up to a fault. */
static void run_to_fault(struct harness *harness, struct cpu *cpu)
{
	uint64_t *slots = harness_slots(harness);

	slots[SLOT_PROGRAM_GS] = harness->program_gs;
	for (;;) {
		harness_cpu = *cpu;
		harness_cpu.pc = harness_code_for(harness, cpu->pc);
		harness_enter();
		if (harness_left == LEFT_STOP)
			return;
		*cpu = harness_cpu;
		cpu->pc = cpu->regs[1];
		cpu->regs[1] = slots[SLOT_RCX];
		if (harness_left == LEFT_MISS) {
			cpu->regs[11] = slots[SLOT_R11];
			harness_chain(harness, cpu->pc);
		}
	}
}

static void check_fault(const char *name, const char *code, bool near, bool self_check, uint64_t xstate_mask)
{
	struct harness harness;
	struct cpu cpu, native;
	int native_signal;
	char difference[512];

	harness_init(&harness, near ? fault_code : NULL);
	harness.program_gs = 0x40;
	harness.request.self_check = self_check;
	harness.request.xstate_mask = xstate_mask;
	program_fill();
	program_start(&cpu, code);
	harness_run_native(&cpu, harness.program_gs);
	native = fault_cpu;
	native_signal = fault_signal;
	program_fill();
	program_start(&cpu, code);
	run_to_fault(&harness, &cpu);
	assert_true(harness_rebuild(&harness, &fault_cpu));
	if (fault_signal != native_signal)
		fail_msg("%s: signal %d, natively %d", name, fault_signal, native_signal);
	if (!cpu_equal(&fault_cpu, &native)) {
		cpu_describe(difference, sizeof(difference), &fault_cpu, &native);
		fail_msg("%s: %s", name, difference);
	}
	harness_deinit(&harness);
}

static void test_faults(void **state)
{
	(void)state;
	catch_faults();
	assert_int_equal(mprotect(fault_hole, 4096, PROT_NONE), 0);
	assert_int_equal(mprotect(fault_edge, 4096, PROT_NONE), 0);
#define CHECK(name)                                                                                          \
	check_fault(#name, fault_##name, true, false, 0);                                                    \
	check_fault(#name, fault_##name, false, false, 7);                                                   \
	check_fault(#name, fault_##name, true, true, 0);                                                     \
	check_fault(#name, fault_##name, false, true, 0);
	FAULTS(CHECK)
	assert_int_equal(mprotect(fault_hole, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(fault_edge, 4096, PROT_READ | PROT_WRITE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
