/*
 * What --dump shows: the sequence, the registers it starts with, and all that came of it. Two dumps of the
 * same sequence are compared line by line, so every line names one thing.
 */
#include "fuzz.h"
#include <stdio.h>
#include <string.h>

static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9",
        "r10", "r11", "r12", "r13", "r14", "r15"};

static void print_hex(const uint8_t *bytes, unsigned size)
{
	for (unsigned n = 0; n < size; n++)
		printf("%02x", bytes[n]);
}

/* Vectors are printed from their highest byte, as a number would be. */
static void print_number(const uint8_t *bytes, unsigned size)
{
	while (size--)
		printf("%02x", bytes[size]);
}

static void print_machine(const char *prefix, const struct machine *m)
{
	for (unsigned n = 0; n < 16; n++)
		printf("%s%-3s %016lx\n", prefix, names[n], m->gpr[n]);
	printf("%sflags %06lx\n", prefix, m->rflags);
	printf("%sfs %04x base %lx\n%sgs %04x base %lx\n", prefix, m->fs, m->fs_base, prefix, m->gs,
	        m->gs_base);
	printf("%sds %04x es %04x\n", prefix, m->ds, m->es);
	uint16_t word[4];
	uint64_t pointer[2];
	uint32_t mxcsr;
	memcpy(word, m->fx, 8);
	memcpy(pointer, m->fx + 8, 16);
	memcpy(&mxcsr, m->fx + 24, 4);
	printf("%sx87 control %04x status %04x tags %02x\n", prefix, word[0], word[1], m->fx[4]);
	printf("%sx87 opcode %04x instruction %lx data %lx\n", prefix, word[3], pointer[0], pointer[1]);
	printf("%smxcsr %08x\n", prefix, mxcsr);
	for (unsigned n = 0; n < 8; n++) {
		printf("%sst%u ", prefix, n);
		print_number(m->fx + 32 + 16 * n, 10);
		printf("\n");
	}
	for (unsigned n = 0; n < (settings.wide ? 32 : 16); n++) {
		printf("%s%s%-2u ", prefix, settings.wide ? "zmm" : "ymm", n);
		print_number(m->zmm[n], settings.wide ? 64 : 32);
		printf("\n");
	}
	for (unsigned n = 0; n < 8 && settings.wide; n++)
		printf("%sk%u %016lx\n", prefix, n, m->k[n]);
}

static void print_code(const struct sequence *s)
{
	ZydisFormatter formatter;
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	for (unsigned n = 0; n < s->start_count; n++) {
		unsigned at = s->starts[n], end = n + 1 < s->start_count ? s->starts[n + 1] : s->code_length;
		struct instruction i;
		char text[160] = "(not decoded)";
		if (decode(s->code + at, s->code_length - at, &i))
			ZydisFormatterFormatInstruction(&formatter, &i.decoded, i.operands,
			        i.decoded.operand_count_visible, text, sizeof text, s->address + at, NULL);
		printf("  +%-4u %-60s ", at, text);
		print_hex(s->code + at, end - at);
		printf("\n");
	}
	printf("  +%-4u literals ", s->code_length);
	print_hex(s->code + s->code_length, s->length - s->code_length);
	printf("\n");
}

void report_sequence(const struct sequence *s)
{
	static const char *const modes[] = {"written, then protected", "rewritten in place", "two views"};
	printf("seed %lu sequence %lu: arena %#lx, code at %#lx (%s), %s after a fault\n", settings.seed,
	        s->number, arena_base(s->arena), s->address, modes[s->mode], s->resume ? "goes on" : "ends");
	print_code(s);
	print_machine("before ", &s->initial);
}

static void print_memory(const struct sequence *s)
{
	for (const uint16_t *page = arena_changing_pages; *page; page++) {
		const uint8_t *now = (const uint8_t *)(arena_base(s->arena) + *page),
		              *then = arena_original(s, *page);
		for (unsigned n = 0; n < PAGE; n += 8) {
			if (memcmp(now + n, then + n, 8) == 0)
				continue;
			printf("memory %#lx ", arena_base(s->arena) + *page + n);
			print_hex(then + n, 8);
			printf(" -> ");
			print_hex(now + n, 8);
			printf("\n");
		}
	}
}

void report_outcome(const struct sequence *s, const struct outcome *o)
{
	for (unsigned n = 0; n < o->fault_count; n++) {
		const struct fault *f = &o->faults[n];
		printf("fault %u: signal %d (%s) code %d address %#lx\n", n, f->signal, strsignal(f->signal),
		        f->code, f->address);
		printf("fault %u: pc %#lx (+%ld)\n", n, f->at.pc, (long)(f->at.pc - s->address));
		printf("fault %u: trap %lu error %#lx cr2 %#lx\n", n, f->trap, f->error, f->cr2);
		printf("fault %u: segments %016lx\n", n, f->segments);
		printf("fault %u: handler entered with flags %06lx mxcsr %04x control word %04x\n", n,
		        f->handler_flags, f->handler_mxcsr, f->handler_cw);
		char prefix[32];
		snprintf(prefix, sizeof prefix, "fault %u: ", n);
		print_machine(prefix, &f->at);
	}
	if (o->hung)
		printf("the sequence did not end and was ended by the watchdog\n");
	else
		printf("%s\n", o->completed ? "the sequence ran to its end"
		                            : "the sequence ended with the last fault");
	if (o->completed)
		print_machine("after ", &o->final);
	print_memory(s);
	printf("memory hash %016lx\ndigest %016lx\n", o->memory_hash, o->digest);
}
