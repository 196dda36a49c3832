/*
 * Pieces of code run natively and translated, and compared: registers, flags
 * and memory at the end, and the program state that the records give at every
 * single step of the translated code. Each runs in four settings: cache near
 * or far from the code, sites linked or not, and with self-checking blocks.
 */
#include "translate_harness.h"

/* clang-format off */
__asm__(
".intel_syntax noprefix\n"
".section .data\n"
"run_words: .quad 11, 22, 33, 44, 0x1122334455667788, 66, 77, 88\n"
".text\n"

"run_straight:\n"
"	add rax, rbx; adc rcx, 5; mov [rdi], rax; xor edx, edx; mov r8, [rdi]; inc r8\n"
"	mov [rsp-16], r9; mov r10, [rsp-16]; sbb r11, r12; lea r13, [rax+rbx*4+8]; ret\n"

"run_branches:\n"
"	mov ecx, 10; xor eax, eax\n"
"1:	add rax, rcx; test cl, 1; jz 2f; add rax, 100; jmp 3f\n"
"2:	sub rax, 1; cmp rax, 300; ja 4f\n"
"3:	dec ecx; jnz 1b\n"
"4:	setc dl; ret\n"

"run_loops:\n"
"	mov ecx, 5; xor eax, eax\n"
"1:	add eax, 3; loop 1b\n"
"	jrcxz 2f; add eax, 1000\n"
"2:	mov ecx, 7; mov rdx, 1; shl rdx, 40; or rcx, rdx\n"
"	addr32 loop 2f\n"
"2:	add eax, 1; cmp eax, 100; loopne 2b\n"
"	mov ecx, 3; cmp eax, eax\n"
"3:	loope 3b; mov rcx, rdx; jecxz 4f; add eax, 5000\n"
"4:	jrcxz 4b; mov ecx, 1; jrcxz 4b; loop 4b; ret\n"

"run_calls:\n"
"	mov ecx, 6; call 1f; call 2f; call run_external; mov rbx, rax; call run_external; stc; call 5f; jc 6f; ud2\n"
"6:	ret\n"
"1:	cmp ecx, 1; jbe 3f; push rcx; dec ecx; call 1b; pop rcx; imul rax, rcx; ret\n"
"3:	mov eax, 1; ret\n"
"2:	push rbp; mov rbp, rsp; sub rsp, 64; mov [rbp-8], rax; mov rax, [rbp-8]; leave; ret\n"
"5:	ret\n"
"run_external:\n"
"	add rax, 17; push 1; push 2; push 3; call 4f; ret\n"
"4:	lea rax, [rax+2]; ret 24\n"

"run_indirect:\n"
"	lea rdx, [rip+1f]; xor ecx, ecx\n"
"	call rdx; mov rax, rdx; call rax; mov rcx, rdx; call rcx\n"
"	mov [rsp-64], rdx; mov rax, rsp; call [rsp-64]; call [rax-64]; mov rcx, 1; call [rax+rcx*8-72]\n"
"	lea r12, [rsp-64]; call [r12]; mov r13, r12; call [r13]; call r12_helper\n"
"	xor ebx, ebx\n"
"2:	lea rax, [rip+run_table]; movsxd rcx, dword ptr [rax+rbx*4]; add rcx, rax; jmp rcx\n"
"run_case0: add r8, 1; jmp 3f\n"
"run_case1: add r8, 20; jmp 3f\n"
"run_case2: add r8, 300\n"
"3:	inc ebx; cmp ebx, 3; jb 2b\n"
"	lea rax, [rip+4f]; push rax; ret\n"
"	ud2\n"
"4:	call 5f\n"
"5:	pop rax; lea rcx, [rip+5b]; sub rax, rcx; jmp [rip+run_pointer]\n"
"1:	inc rcx; ret\n"
"r12_helper: mov r11, rdx; mov rdx, r11; jmp r11\n"
"run_last: mov rdx, 9; bnd jmp [rip+run_pointer2]\n"
"run_last2: ret\n"
".balign 4\n"
"run_table: .long run_case0-run_table, run_case1-run_table, run_case2-run_table\n"
".section .data\n"
"run_pointer: .quad run_last\n"
"run_pointer2: .quad run_last2\n"
".text\n"

"run_rip:\n"
"	mov rax, [rip+run_words]; mov ecx, [rip+run_words+8]; add rax, [rip+run_words+16]\n"
"	mov [rip+run_words+24], rax; cmp qword ptr [rip+run_words+32], 5; setb dl\n"
"	mov qword ptr [rip+run_words+40], 0x1234; imul rbx, [rip+run_words+40], 3; mov r9, [rip+run_words]\n"
"	lea r10, [rip+run_words]; lea r11d, [rip+run_words]; lea r12w, [rip+run_words]; lea ax, [rip+run_words]\n"
"	mov ah, [rip+run_words+33]; mov [rip+run_words+34], ah; xchg [rip+run_words+8], rdx; movdqu xmm1, [rip+run_words+32]\n"
"	movq rdx, xmm1; vmovdqu xmm2, [rip+run_words]; vpaddq xmm8, xmm2, [rip+run_words+16]; vmovq rsi, xmm8\n"
"	push [rip+run_words]; pop [rip+run_words+48]; bts qword ptr [rip+run_words+48], 5; setc bl\n"
"	mov r14, 77; bts [rip+run_words], r14; lock xadd [rip+run_words+56], r14; mov r8, 1; shld [rip+run_words+56], r8, 7\n"
"	cvttsd2si r15, [rip+run_words]; movzx ebp, byte ptr [rip+run_words+35]; crc32 rbp, qword ptr [rip+run_words]\n"
"	mov rsp, rsp; andn r13, r14, [rip+run_words]; pxor mm0, [rip+run_words]; movq r14, mm0; emms\n"
"	cmpxchg16b [rip+run_words]; cmp byte ptr [rip+run_words+5], 0x7f; test dword ptr [rip+run_words], 0x12345678; ret\n"

"run_gs:\n"
"	mov rax, gs:[rsi]; mov gs:[rsi+8], rax; add rcx, gs:[rsi+16]; mov rbx, 2\n"
"	mov rdx, gs:[rsi+rbx*8]; mov r15, rsi; xchg rdx, gs:[r15+rbx*8+4]; .byte 0x65, 0x4c, 0x8d, 0x46, 0x04\n"
"	push gs:[rsi]; pop gs:[rsi+40]; mov r9, rsp; mov r12, rsi; mov rsp, rsi; add rsp, 1024; pop gs:[rsp+16]; push gs:[rsp+8]\n"
"	mov rsp, r9; mov r8d, r14d\n"
"	mov byte ptr gs:[rsi+3], 0x42; mov ah, gs:[rsi+5]; mov gs:[rsi+6], bh; bts gs:[rsi], rbx\n"
"	mov rdi, rsi; add rdi, 300; mov ecx, 9; cld; rep movsb byte ptr es:[rdi], byte ptr gs:[rsi]\n"
"	lods al, byte ptr gs:[rsi]; mov rbx, rsi; xlat byte ptr gs:[rbx]; mov rdi, rsi; add rdi, 100; mov ecx, 50; repe cmpsb\n"
"	mov ecx, 50; gs repe cmpsb\n"
"	mov rsi, r12; movdqu xmm0, gs:[rsi]; pxor xmm1, xmm1; movdqu gs:[rsi+160], xmm0\n"
"	lea rdi, [r12+200]; gs maskmovdqu xmm0, xmm0\n"
"	vpcmpeqd xmm3, xmm3, xmm3; vpxor xmm2, xmm2, xmm2; vpgatherdd xmm4, gs:[r12+xmm2*4+8], xmm3; vmovq rax, xmm4\n"
"	mov rax, 5; mov rdx, 6; mov rbx, 7; mov rcx, 8; lock cmpxchg16b gs:[rsi]; mov rsi, r12\n"
"	rdgsbase r14; wrgsbase rsi; .byte 0x65, 0x48, 0xa1; .quad 0x20\n" /* mov rax, gs:[0x20] */
"	.byte 0x65, 0x67, 0xa3; .long 0x28\n" /* the same with a 32-bit address, mov gs:[0x28], eax */
"	mov ecx, 0x30; mov edx, gs:[ecx]; mov rbx, 0xffffffff00000030; mov rdi, gs:[ebx]; wrgsbase r14\n"
"	vmovdqu ymm9, gs:[r12+r14*1]; vmovdqu gs:[r12+64], ymm9; vzeroupper; ret\n"

"run_fs:\n"
"	mov rax, fs:[0]; mov rcx, fs:[0x28]; rdfsbase rdx; xor ebx, ebx; mov rbx, fs:[rbx]; ret\n"

"run_strings:\n"
"	mov ecx, 100; rep movsb; mov ecx, 20; mov rax, 0x1234; rep stosq; std; mov ecx, 8; rep movsd; cld\n"
"	mov ecx, 0; rep stosb; mov ecx, 30; repne scasb; mov rsi, rdi; mov ecx, 5; repe cmpsb; lodsq; ret\n"

"run_flags:\n"
"	stc; call 1f; adc rax, 0; cmc; call 1f; adc rax, 0; mov eax, 0x7fffffff; add eax, 1; call 1f; seto al; pushfq; pop rdx\n"
"	and rdx, 0xfffffffffffffeff; lea rdx, [rip+1f]; std; call rdx; cld; cmp rax, rax; call rdx; je 2f; ud2\n"
"2:	ret\n"
"1:	ret\n"

"run_overlap:\n"
"	xor ecx, ecx\n"
"	jmp 1f+2\n"
"2:	jmp 1f\n"
"1:	.byte 0x48, 0xb8, 0xff, 0xc1, 0xeb, 0x06, 0x90, 0x90, 0x90, 0x90\n" /* mov rax, ...; inside: inc ecx; jmp */
"	cmp ecx, 5; jae 3f; jmp 1b+2\n"
"3:	inc ecx; cmp ecx, 20; jb 2b; ret\n"
/* 1b+2: ff c1 = inc ecx; eb 06 jumps to 1b+12 */

"run_system:\n"
"	mov eax, 39; syscall; mov rbx, rax; xor r11d, r11d; xor ecx, ecx; mov eax, 186; stc; syscall; setc dl; xor ecx, ecx; xor r11d, r11d; ret\n"

"run_emulated:\n"
"	mov eax, 7; xor ecx, ecx; cpuid; mov r8, rax; xor ecx, ecx; xgetbv; push 0x8d5; popfq; setc r9b; cld\n"
"	fld1; fnstenv [rsi]; fldenv [rsi]; fstp st; mov dword ptr [rsi+12], 0; mov dword ptr [rsi+16], 0; mov dword ptr [rsi+20], 0\n"
"	mov dword ptr [rsi+24], 0; mov word ptr [rsi+18], 0\n"
"	lea rdi, [rsi+1536]; mov ecx, 8; xor eax, eax; rep stosq; lea rdi, [rsi+1024]; mov eax, 3; xor edx, edx; xsave [rdi]; mov ecx, 7; xsavec64 [rdi+rcx*8-56]; xrstor [rdi]\n"
"	fxsave [rip+run_image]; fxrstor [rip+run_image]; mov eax, [rip+run_image+24]\n"
"	mov qword ptr [rdi+8], 0; mov qword ptr [rdi+16], 0; mov word ptr [rdi+6], 0; mov qword ptr [rdi+512], 0; ret\n"
".section .bss\n"
".balign 64\n"
"run_image: .space 1024\n"
".text\n"
".att_syntax\n");
/* clang-format on */

extern const char run_straight[], run_branches[], run_loops[], run_calls[], run_indirect[], run_rip[],
        run_gs[], run_fs[], run_strings[], run_flags[], run_overlap[], run_system[], run_emulated[];
extern uint64_t run_words[8];

struct setting {
	bool near, link, self_check;
	uint64_t xstate_mask;
};

static const struct setting settings[] = {
        {true, true, false, 0},
        {true, false, false, 0},
        {false, true, false, 7},
        {false, false, true, 0},
        {true, true, true, 0},
};

static void run_all_settings(const char *code, bool step, void (*prepare)(struct cpu *, struct harness *))
{
	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		for (unsigned budget = 1; budget < 1000; budget *= 6) {
			struct harness harness;
			struct cpu cpu;

			harness_init(&harness, settings[i].near ? run_straight : NULL);
			harness.data = run_words;
			harness.data_size = sizeof(run_words);
			harness.link = settings[i].link;
			harness.request.self_check = settings[i].self_check;
			harness.request.xstate_mask = settings[i].xstate_mask;
			harness.request.max_instructions = budget;
			program_fill();
			program_start(&cpu, code);
			if (prepare)
				prepare(&cpu, &harness);
			/* The second time everything is linked. */
			for (unsigned round = 0; round < 2; round++) {
				compare_runs(&harness, &cpu, false);
				if (step)
					compare_runs(&harness, &cpu, true);
			}
			if (step)
				assert_true(trace_checked > 0);
			harness_deinit(&harness);
		}
	}
}

#define RUN_TEST(name, step)                                                                                 \
	static void test_##name(void **state)                                                                \
	{                                                                                                    \
		(void)state;                                                                                 \
		run_all_settings(run_##name, step, NULL);                                                    \
	}

RUN_TEST(straight, true)
RUN_TEST(branches, true)
RUN_TEST(loops, true)
RUN_TEST(calls, true)
RUN_TEST(indirect, true)
RUN_TEST(fs, true)
RUN_TEST(strings, true)
RUN_TEST(flags, false)
RUN_TEST(overlap, true)
RUN_TEST(system, false)
RUN_TEST(emulated, false)

static void prepare_gs(struct cpu *cpu, struct harness *harness)
{
	harness->program_gs = 0x40;
	cpu->regs[6] += 0x1000;
}

static void test_gs(void **state)
{
	(void)state;
	run_all_settings(run_gs, true, prepare_gs);
}

RUN_TEST(rip, true)

/* -- more than one piece of code at a time --------------------------------- */

/* Return sites that share a slot of the branch table, one that needs its flags and one that does not. */
static void test_collision(void **state)
{
	/*
	 *  0: call rdi ; test eax,eax ; ret         ; flags dead at the return: compares with cmp
	 *  0x10000: call rdi ; mov rax,[rsp] ; jo .. ; and here they are live
	 */
	static const uint8_t dead[] = {0xff, 0xd7, 0x85, 0xc0, 0xc3};
	static const uint8_t live[] = {0xff, 0xd7, 0x9c, 0x58, 0xc3}; /* call rdi ; pushfq ; pop rax ; ret */
	static const uint8_t leaf[] = {0x48, 0x01, 0xd2, 0xc3};       /* add rdx,rdx ; ret */
	static const uint64_t values[] = {
	        0, 1, 0x4000000000000000, 0x8000000000000000, 0xc000000000000008, 0x7f, 0xff};
	uint8_t *code =
	        mmap(NULL, 0x20000, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code, dead, sizeof(dead));
	memcpy(code + 0x10000, live, sizeof(live));
	memcpy(code + 0x18000, leaf, sizeof(leaf));
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		for (unsigned order = 0; order < 4; order++) {
			struct harness harness;
			struct cpu cpu;

			harness_init(&harness, code);
			program_fill();
			for (unsigned round = 0; round < 4; round++) {
				program_start(&cpu, code + (order >> (round & 1) & 1 ? 0x10000 : 0));
				cpu.regs[7] = (uint64_t)code + 0x18000;
				cpu.regs[2] = values[i];
				compare_runs(&harness, &cpu, false);
			}
			harness_deinit(&harness);
		}
	}
	munmap(code, 0x20000);
}

/* Code that changes itself, in its own block and in another. */
static void test_self_modifying(void **state)
{
	static const uint8_t initial[] = {
	        0xc6,
	        0x47,
	        0x05,
	        0x07, /*  0: mov byte [rdi+5], 7    */
	        0xb8,
	        0x01,
	        0x00,
	        0x00,
	        0x00, /*  4: mov eax, 1             */
	        0xff,
	        0xc1, /*  9: inc ecx                */
	        0x88,
	        0x4f,
	        0x05, /* 11: mov [rdi+5], cl        */
	        0x01,
	        0xc2, /* 14: add edx, eax           */
	        0x80,
	        0xf9,
	        0x05, /* 16: cmp cl, 5              */
	        0x72,
	        0xef, /* 19: jb 4                   */
	        0xc3,
	};
	uint8_t *code =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	for (unsigned near = 0; near < 2; near++) {
		struct harness harness;
		struct cpu cpu;

		harness_init(&harness, near ? code : NULL);
		harness.request.self_check = true;
		harness.data = code;
		harness.data_size = sizeof(initial);
		memcpy(code, initial, sizeof(initial));
		program_fill();
		program_start(&cpu, code);
		cpu.regs[7] = (uint64_t)code;
		cpu.regs[1] = cpu.regs[2] = 0;
		compare_runs(&harness, &cpu, false);
		compare_runs(&harness, &cpu, true);
		harness_deinit(&harness);
	}
	munmap(code, 4096);
}

/* A state component outside the mask must be neither stored nor loaded. */
static void test_xstate_mask(void **state)
{
	/* xsave [rsi] ; xrstor [rsi] ; ret */
	static const uint8_t bytes[] = {0x0f, 0xae, 0x26, 0x0f, 0xae, 0x2e, 0xc3};
	uint8_t *code =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	memcpy(code, bytes, sizeof(bytes));
	for (unsigned mask = 1; mask < 8; mask++) {
		struct harness harness;
		struct cpu cpu;

		harness_init(&harness, code);
		harness.request.xstate_mask = mask;
		memset(program_memory.data, 0, sizeof(program_memory.data));
		program_start(&cpu, code);
		memset(program_memory.data + 576, 0xaa, 256);
		/* All components in use: XSTATE_BV of what the harness loads. */
		harness_vectors[512] = 7;
		memset(harness_vectors + 576, 0x77, 256);
		cpu.regs[0] = 0xffffffff00000007;
		cpu.regs[2] = 0x123456700000000;

		struct cpu before = cpu;

		harness_run(&harness, &cpu, (uint64_t)harness_leave_stop);
		assert_int_equal(cpu.regs[0], before.regs[0]);
		assert_int_equal(cpu.regs[2], before.regs[2]);
		assert_int_equal(cpu.regs[1], before.regs[1]);
		assert_int_equal(program_memory.data[512] & ~mask, 0);
		assert_int_equal(program_memory.data[576], mask & 4 ? 0x77 : 0xaa);
		assert_int_equal(harness_vectors[576], 0x77);
		harness_deinit(&harness);
	}
	munmap(code, 4096);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_straight),
	        cmocka_unit_test(test_branches),
	        cmocka_unit_test(test_loops),
	        cmocka_unit_test(test_calls),
	        cmocka_unit_test(test_indirect),
	        cmocka_unit_test(test_rip),
	        cmocka_unit_test(test_fs),
	        cmocka_unit_test(test_strings),
	        cmocka_unit_test(test_flags),
	        cmocka_unit_test(test_overlap),
	        cmocka_unit_test(test_system),
	        cmocka_unit_test(test_emulated),
	        cmocka_unit_test(test_gs),
	        cmocka_unit_test(test_collision),
	        cmocka_unit_test(test_self_modifying),
	        cmocka_unit_test(test_xstate_mask),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
