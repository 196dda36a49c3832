#include "cli/stacks.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/demangle.h"
#include "cli/lines.h"
#include "cli/recorded_file.h"
#include "debug/images.h"
#include "replay/explorer.h"

#define DWARF_REGISTERS 17 /* the general ones and the return address, as the ABI numbers them */

struct stacks {
	struct explorer *explorer;
	Dwfl *dwfl;
	bool attached;
	const struct standing *standing; /* whose frames are looked for */
};

/* ---- what libdwfl asks for ---- */

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

/* There is one thread, the one that was brought to its place. */
static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread_argument)
{
	(void)dwfl;
	if (*thread_argument)
		return 0;
	*thread_argument = argument;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread_argument)
{
	(void)dwfl;
	*thread_argument = argument;
	return tid == 1;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *argument)
{
	struct stacks *stacks = argument;
	uint8_t known[sizeof *word] = {0};

	(void)dwfl;
	explorer_read(stacks->explorer, stacks->standing, address, (uint8_t *)word, known, sizeof known);
	return !memchr(known, 0, sizeof known);
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
	/* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, as the CPU numbers them */
	static const uint8_t order[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	const struct stacks *stacks = argument;
	const struct event_registers *registers = &stacks->standing->state.registers;
	Dwarf_Word words[DWARF_REGISTERS];

	for (unsigned i = 0; i < 16; i++)
		words[i] = registers->gpr[order[i]];
	words[16] = registers->pc;
	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_memory,
        .set_initial_registers = set_registers,
};

/* ---- frames ---- */

static void name_frame(Dwfl *dwfl, struct frame *frame, Dwarf_Addr within)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, within);
	GElf_Off offset = 0;
	GElf_Sym symbol;

	if (!module)
		return;
	const char *name = dwfl_module_addrinfo(module, within, &offset, &symbol, NULL, NULL, NULL);
	if (name)
		frame->function = demangle(name);
	frame->source = line_find(module, within, name ? within - offset : 0, &frame->line);
}

/* The place in the function that called the one that was inlined. */
static void place_call(Dwarf_Die *inlined, Dwarf_Die *unit, struct frame *frame)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) ||
	        dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) ||
	        dwarf_getsrcfiles(unit, &files, &count))
		return;
	const char *source = file < count ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
	frame->source = source ? strdup(source) : NULL;
	frame->line = source ? (int)line : 0;
}

/* A frame is several where functions were inlined: it becomes that of the outermost one. */
static void take_inlined(Dwfl *dwfl, struct stack *stack, Dwarf_Addr within)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, within);
	Dwarf_Addr bias;
	Dwarf_Die *unit = module ? dwfl_module_addrdie(module, within, &bias) : NULL, *scopes = NULL,
	          *chain = NULL;
	int count = unit ? dwarf_getscopes(unit, within - bias, &scopes) : 0;

	count = count > 0 ? dwarf_getscopes_die(&scopes[0], &chain) : 0;
	for (int i = 0; i < count && stack->count < STACK_MAXIMUM; i++) {
		if (dwarf_tag(&chain[i]) != DW_TAG_inlined_subroutine)
			continue;
		struct frame *inner = &stack->frames[stack->count - 1],
		             *outer = &stack->frames[stack->count++];
		const char *name = dwarf_diename(&chain[i]);
		*outer = (struct frame){.pc = inner->pc, .function = inner->function};
		inner->function = name ? strdup(name) : NULL;
		place_call(&chain[i], unit, outer);
	}
	free(scopes);
	free(chain);
}

static int take_frame(Dwfl_Frame *state, void *argument)
{
	struct stack *stack = argument;
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(state));
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || !pc)
		return DWARF_CB_ABORT;
	struct frame *frame = &stack->frames[stack->count++];
	*frame = (struct frame){.pc = pc};
	/* A return address may be that of the next function: the call is before it. */
	name_frame(dwfl, frame, exact ? pc : pc - 1);
	take_inlined(dwfl, stack, exact ? pc : pc - 1);
	return stack->count == STACK_MAXIMUM ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static void report_files(struct stacks *stacks, struct recording *recording, const struct recorded *recorded)
{
	struct images images;

	images_find(&images, recorded);
	dwfl_report_begin(stacks->dwfl);
	for (uint32_t i = 0; i < images.items.count; i++) {
		const struct image *image = &images.items.items[i];
		int fd = recorded_file_open(recording, image->file);
		if (fd >= 0 && !dwfl_report_elf(stacks->dwfl, image->file->path, image->file->path, fd,
		                       image->distance, true))
			close(fd);
	}
	dwfl_report_end(stacks->dwfl, NULL, NULL);
	images_deinit(&images);
}

struct stacks *stacks_open(
        struct recording *recording, const struct recorded *recorded, char *why, size_t why_size)
{
	struct stacks *stacks = calloc(1, sizeof *stacks);

	if (!stacks)
		abort();
	stacks->explorer = explorer_create(recorded, why, why_size);
	if (!stacks->explorer) {
		free(stacks);
		return NULL;
	}
	stacks->dwfl = dwfl_begin(&callbacks);
	if (stacks->dwfl) {
		report_files(stacks, recording, recorded);
		stacks->attached = dwfl_attach_state(stacks->dwfl, NULL, 1, &thread_callbacks, stacks);
	}
	return stacks;
}

void stacks_close(struct stacks *stacks)
{
	if (!stacks)
		return;
	if (stacks->dwfl)
		dwfl_end(stacks->dwfl);
	explorer_destroy(stacks->explorer);
	free(stacks);
}

void stacks_find(struct stacks *stacks, uint32_t thread, uint64_t position, struct stack *stack)
{
	char why[256];

	stack->count = 0;
	if (!stacks->attached)
		return;
	stacks->standing =
	        explorer_go(stacks->explorer, thread, (struct place){.position = position}, why, sizeof why);
	if (!stacks->standing)
		return;
	dwfl_getthread_frames(stacks->dwfl, 1, take_frame, stack);
	explorer_release(stacks->explorer, stacks->standing);
	stacks->standing = NULL;
}

void stack_deinit(struct stack *stack)
{
	for (unsigned i = 0; i < stack->count; i++) {
		free(stack->frames[i].function);
		free(stack->frames[i].source);
	}
	stack->count = 0;
}

/* ---- functions by name ---- */

struct wanted_function {
	const char *name;
	uint64_t *pcs;
	unsigned count, most;
};

static int find_function(
        Dwfl_Module *module, void **user, const char *module_name, Dwarf_Addr start, void *argument)
{
	struct wanted_function *wanted = argument;
	int count = dwfl_module_getsymtab(module);

	(void)user;
	(void)module_name;
	(void)start;
	for (int i = 1; i < count && wanted->count < wanted->most; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
		bool known = false;
		if (!name || symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		        strcmp(name, wanted->name) != 0)
			continue;
		for (unsigned k = 0; k < wanted->count; k++)
			known |= wanted->pcs[k] == address;
		if (!known)
			wanted->pcs[wanted->count++] = address;
	}
	return DWARF_CB_OK;
}

unsigned stacks_functions(struct stacks *stacks, const char *name, uint64_t *pcs, unsigned most)
{
	struct wanted_function wanted = {.name = name, .pcs = pcs, .most = most};

	if (stacks->dwfl)
		dwfl_getmodules(stacks->dwfl, find_function, &wanted, 0);
	return wanted.count;
}

struct explorer *stacks_explorer(struct stacks *stacks)
{
	return stacks->explorer;
}
