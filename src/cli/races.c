/* bugnet races: accesses of two threads that nothing orders. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "cli/command.h"
#include "cli/demangle.h"
#include "cli/error.h"
#include "cli/json.h"
#include "cli/shared_options.h"
#include "cli/stacks.h"
#include "cli/symbols.h"
#include "cli/variables.h"
#include "debug/allocations.h"
#include "debug/call_accesses.h"
#include "debug/origins.h"
#include "debug/races.h"
#include "recording/names.h"

#define STATUS_RACES 1
#define WITH_STACKS  64 /* races whose stacks are looked for; each has to be replayed to */

struct races_values {
	bool json, all;
	struct place_values place;
};

static const struct option_spec races_options[] = {
        {
                .name = "json",
                .type = OPTION_FLAG,
                .offset = offsetof(struct races_values, json),
                .help = "print one JSON object instead of text",
        },
        {
                .name = "all",
                .type = OPTION_FLAG,
                .offset = offsetof(struct races_values, all),
                .help = "also those inside the C library",
        },
        PLACE_OPTIONS(struct races_values),
        {0},
};

struct listing {
	struct recording *recording;
	const struct accesses *accesses;
	struct variables *variables;
	struct json *json;     /* or NULL: text */
	struct stacks *stacks; /* or NULL */
	unsigned told;
	struct allocations allocations; /* which take two replays more */
};

/* ---- what is told ---- */

static bool is_system_library(const char *file)
{
	const char *name = file ? strrchr(file, '/') : NULL;

	return name && (!strncmp(name, "/libc.so", 8) || !strncmp(name, "/ld-linux", 9) ||
	                       !strncmp(name, "/libpthread", 11) || !strncmp(name, "/libc-", 6));
}

/* Copies and comparisons are made for the program. */
static bool works_for_others(const struct symbol *symbol)
{
	return symbol->name && (strstr(symbol->name, "mem") || strstr(symbol->name, "str"));
}

static bool is_for_others(const struct symbol *symbol, const struct step *step)
{
	return works_for_others(symbol) || step->kind == STEP_CALL_LOADS || step->kind == STEP_CALL_STORES;
}

/* The library's own business: it knows what its data can bear. */
static bool is_internal(
        const struct symbol *first, const struct step *a, const struct symbol *second, const struct step *b)
{
	return is_system_library(first->file) && is_system_library(second->file) &&
	       !(is_for_others(first, a) && is_for_others(second, b));
}

static const struct step *step_of(const struct listing *listing, struct race_access access)
{
	return &listing->accesses->threads[access.thread].steps.items[access.step];
}

static const char *doing(const struct step *step)
{
	switch (step->kind) {
	case STEP_FREE:
		return "frees it";
	case STEP_CALL_UNMAPS:
		return step->arguments[0] == SYS_madvise ? "empties it" : "unmaps it";
	case STEP_CALL_LOADS:
		return "has it read";
	case STEP_CALL_STORES:
		return "has it written";
	default:
		break;
	}
	if (step->locked)
		return "changes, locked";
	return step->reads && step->writes ? "loads and stores" : step->writes ? "stores" : "loads";
}

static bool is_call(const struct step *step)
{
	return step->kind >= STEP_BESIDE && step->kind != STEP_FREE;
}

/* The bytes that both access, as a number. */
static uint64_t common_value(uint64_t word, uint8_t bytes)
{
	unsigned first = (unsigned)__builtin_ctz(bytes), count = (unsigned)__builtin_popcount(bytes);

	word >>= 8 * first;
	return count == 8 ? word : word & ((1ul << 8 * count) - 1);
}

/* The stamp of the thread's next operation: what was mapped later was so after the access. */
static uint64_t stamp_behind(const struct listing *listing, struct race_access access)
{
	const struct accessing_thread *thread = &listing->accesses->threads[access.thread];

	for (uint32_t i = access.step; i < thread->steps.count; i++) {
		if (thread->steps.items[i].kind != STEP_ACCESS)
			return thread->steps.items[i].stamp;
	}
	return UINT64_MAX;
}

/* Those whose result is what they return. Others, operator new among them, call one of these. */
static const struct {
	const char *name;
	enum allocator_kind kind;
} allocator_names[] = {
        {"malloc", ALLOCATES_FIRST},
        {"calloc", ALLOCATES_PRODUCT},
        {"realloc", ALLOCATES_SECOND},
        {"aligned_alloc", ALLOCATES_SECOND},
        {"memalign", ALLOCATES_SECOND},
        {"valloc", ALLOCATES_FIRST},
        {"pvalloc", ALLOCATES_FIRST},
        {"free", FREES_FIRST},
};

#define ALLOCATORS       32
#define ALLOCATORS_ALIKE 4

static void seek_allocations(struct listing *listing)
{
	struct allocator allocators[ALLOCATORS];
	unsigned count = 0;
	char why[256];

	for (unsigned i = 0; i < sizeof allocator_names / sizeof *allocator_names; i++) {
		uint64_t pcs[ALLOCATORS_ALIKE];
		unsigned found =
		        stacks_functions(listing->stacks, allocator_names[i].name, pcs, ALLOCATORS_ALIKE);
		for (unsigned k = 0; k < found; k++)
			allocators[count++] = (struct allocator){pcs[k], allocator_names[i].kind};
	}
	if (count && !allocations_find(&listing->allocations, listing->accesses,
	                     stacks_explorer(listing->stacks), allocators, count, why, sizeof why))
		error_print("races", "what was allocated is not known: %s", why);
}

/* The block of the heap that the race is about, or NULL. */
static const struct allocation *find_allocation(struct listing *listing, const struct race *race)
{
	struct variable variable = variables_find(listing->variables, race->address);

	if (variable.file || !listing->stacks)
		return NULL;
	return allocations_last(&listing->allocations, listing->accesses, race->first.thread,
	        race->first.step, race->address);
}

static void describe_origin(const struct listing *listing, const struct race *race, char *text, size_t size)
{
	struct origin origin =
	        origin_find(listing->accesses, race->address, stamp_behind(listing, race->first));

	switch (origin.kind) {
	case ORIGIN_HEAP:
		snprintf(text, size, "the heap");
		break;
	case ORIGIN_MAPPED:
		snprintf(text, size, "memory that thread %u mapped at position %lu (%#lx, %lu bytes)",
		        origin.thread, origin.position, origin.start, origin.size);
		break;
	case ORIGIN_STACK:
		snprintf(text, size, "the stack of thread %u", origin.thread);
		break;
	case ORIGIN_UNKNOWN:
		snprintf(text, size, "memory of no file");
		break;
	}
}

static void describe_place(const struct listing *listing, const struct race *race,
        const struct allocation *allocation, unsigned bytes, char *text, size_t size)
{
	struct variable variable = variables_find(listing->variables, race->address);
	char *name = variable.name ? demangle(variable.name) : NULL;

	if (name && variable.offset)
		snprintf(text, size, "%s+%lu", name, variable.offset);
	else if (name)
		snprintf(text, size, "%s", name);
	else if (variable.file)
		snprintf(text, size, "%s+%#lx", variable.file, variable.offset);
	else if (allocation)
		snprintf(text, size, "a block of %lu bytes+%lu", allocation->size,
		        race->address - allocation->start);
	else
		describe_origin(listing, race, text, size);
	free(name);
	size_t used = strlen(text);
	snprintf(
	        text + used, size - used, ", %u byte%s at %#lx", bytes, bytes == 1 ? "" : "s", race->address);
}

/* The function that has the code, of which no symbol tells. */
static void print_inlined(const struct listing *listing, const struct stack *stack)
{
	if (stack->count < 2 || stack->frames[0].pc != stack->frames[1].pc || !stack->frames[0].function)
		return;
	if (listing->json)
		json_text(listing->json, "inlined", stack->frames[0].function);
	else
		printf("    in %s, inlined\n", stack->frames[0].function);
}

/* Who called: all but the innermost frame, which is told already. */
static void print_stack(const struct listing *listing, uint32_t thread, uint64_t position)
{
	struct stack stack;

	if (!listing->stacks || listing->told >= WITH_STACKS)
		return;
	stacks_find(listing->stacks, thread, position, &stack);
	print_inlined(listing, &stack);
	if (listing->json)
		json_open(listing->json, "callers", '[');
	for (unsigned i = 1; i < stack.count; i++) {
		const struct frame *frame = &stack.frames[i];
		if (listing->json) {
			json_open(listing->json, NULL, '{');
			json_hex(listing->json, "pc", frame->pc);
			json_text(listing->json, "function", frame->function);
			json_text(listing->json, "source", frame->source);
			json_number(listing->json, "line", (uint64_t)frame->line);
			json_close(listing->json, '}');
		} else if (frame->source) {
			printf("    called by %s (%s:%d)\n", frame->function ? frame->function : "?",
			        frame->source, frame->line);
		} else {
			printf("    called by %s\n", frame->function ? frame->function : "?");
		}
	}
	if (listing->json)
		json_close(listing->json, ']');
	stack_deinit(&stack);
}

static void print_access(const struct listing *listing, struct race_access access, uint8_t bytes,
        const struct symbol *symbol, const char *key)
{
	const struct step *step = step_of(listing, access);
	uint32_t thread = listing->accesses->threads[access.thread].id;
	char *place = symbol_text(symbol), call[NAME_TEXT_SIZE];
	bool has_values = step->kind < STEP_BESIDE;

	if (listing->json) {
		json_open(listing->json, key, '{');
		json_number(listing->json, "thread", thread);
		json_number(listing->json, "position", step->position);
		json_hex(listing->json, "pc", step->pc);
		json_text(listing->json, "function", symbol->name);
		json_text(listing->json, "source", symbol->source);
		json_number(listing->json, "line", (uint64_t)symbol->line);
		json_text(listing->json, "file", symbol->file);
		json_text(listing->json, "does", doing(step));
		if (is_call(step))
			json_text(listing->json, "call", syscall_name(step->arguments[0], call));
		if (step->reads && has_values)
			json_hex(listing->json, "loaded", common_value(step->before, bytes));
		if (step->writes && has_values)
			json_hex(listing->json, "stored", common_value(step->after, bytes));
		print_stack(listing, thread, step->position);
		json_close(listing->json, '}');
	} else {
		printf("  thread %u %s", thread, doing(step));
		if (is_call(step))
			printf(" by %s", syscall_name(step->arguments[0], call));
		if (step->reads && has_values)
			printf(" %#lx", common_value(step->before, bytes));
		if (step->reads && step->writes)
			printf(", then");
		if (step->writes && has_values)
			printf(" %#lx", common_value(step->after, bytes));
		printf(" at position %lu, pc %#lx, %s\n", step->position, step->pc, place ? place : "?");
		print_stack(listing, thread, step->position);
	}
	free(place);
}

static void print_allocation(const struct listing *listing, const struct allocation *allocation)
{
	uint32_t thread = listing->accesses->threads[allocation->thread].id;

	if (listing->json) {
		json_open(listing->json, "allocation", '{');
		json_hex(listing->json, "start", allocation->start);
		json_number(listing->json, "size", allocation->size);
		json_number(listing->json, "thread", thread);
		json_number(listing->json, "position", allocation->position);
	} else {
		printf("  allocated by thread %u at position %lu\n", thread, allocation->position);
	}
	print_stack(listing, thread, allocation->position);
	if (listing->json)
		json_close(listing->json, '}');
}

static void print_race(struct listing *listing, const struct race *race, const struct symbol *first,
        const struct symbol *second)
{
	const struct step *a = step_of(listing, race->first), *b = step_of(listing, race->second);
	uint8_t bytes = (a->reads | a->writes) & (b->reads | b->writes);
	const char *ends = !race->ordered ? "which came first is not known"
	                   : race->saw    ? "the second saw what the first stored"
	                                  : "in this order";
	char place[512];

	const struct allocation *allocation = find_allocation(listing, race);
	describe_place(listing, race, allocation, (unsigned)__builtin_popcount(bytes), place, sizeof place);
	if (listing->json) {
		json_open(listing->json, NULL, '{');
		json_text(listing->json, "what", place);
		json_hex(listing->json, "address", race->address);
		json_number(listing->json, "bytes", (unsigned)__builtin_popcount(bytes));
		json_number(listing->json, "count", race->count);
		json_bool(listing->json, "ordered", race->ordered);
		json_bool(listing->json, "saw", race->saw);
		json_bool(listing->json, "waits_in_a_loop", race->spins);
	} else {
		printf("race: %s\n", place);
	}
	if (allocation)
		print_allocation(listing, allocation);
	print_access(listing, race->first, bytes, first, "first");
	print_access(listing, race->second, bytes, second, "second");
	if (listing->json) {
		json_close(listing->json, '}');
		return;
	}
	printf("  %s", ends);
	if (race->spins)
		printf("; a thread waits for it in a loop, but it is not atomic by its type");
	if (race->count > 1)
		printf("; %lu such pairs", race->count);
	printf("\n\n");
}

/* Returns how many were told. */
static unsigned print_races(struct listing *listing, const struct races *races, bool all)
{
	for (uint32_t i = 0; i < races->races.count; i++) {
		const struct race *race = &races->races.items[i];
		const struct step *a = step_of(listing, race->first), *b = step_of(listing, race->second);
		struct symbol first, second;
		symbol_find(listing->recording, listing->accesses->threads[race->first.thread].id,
		        a->position, a->pc, &first);
		symbol_find(listing->recording, listing->accesses->threads[race->second.thread].id,
		        b->position, b->pc, &second);
		if (all || !is_internal(&first, a, &second, b)) {
			print_race(listing, race, &first, &second);
			listing->told++;
		}
		symbol_deinit(&first);
		symbol_deinit(&second);
	}
	return listing->told;
}

/* ---- the command ---- */

/* Of lines in the source both have to say so: what is atomic on one side only is a race. */
static enum race_kind kind_of(void *variables, uint64_t address, uint64_t first_pc, uint64_t second_pc)
{
	if (variables_is_atomic(variables, address))
		return RACE_OF_ATOMIC;
	if (variables_accesses_atomic(variables, first_pc) ||
	        variables_accesses_atomic(variables, second_pc) ||
	        (variables_says_atomic(variables, first_pc) && variables_says_atomic(variables, second_pc)))
		return RACE_BY_ATOMICS;
	return RACE_PLAIN;
}

static unsigned find_and_print(struct listing *listing, const struct order *order, bool all)
{
	struct races races;

	races_find(&races, listing->accesses, order, kind_of, listing->variables);
	if (listing->json) {
		json_open(listing->json, NULL, '{');
		json_open(listing->json, "races", '[');
	}
	unsigned told = print_races(listing, &races, all);
	if (listing->json) {
		json_close(listing->json, ']');
		json_close(listing->json, '}');
	} else {
		printf("%u race%s\n", told, told == 1 ? "" : "s");
	}
	races_deinit(&races);
	return told;
}

static int search(const struct races_values *values, const char *path, struct recording *recording)
{
	struct json json = {.out = stdout};
	struct recorded recorded;
	struct accesses accesses = {0};
	struct call_accesses calls = {0};
	struct order order = {0};
	struct listing listing = {
	        .recording = recording, .accesses = &accesses, .json = values->json ? &json : NULL};
	char why[1024] = "out of memory";
	int status = STATUS_FAILED;

	if (recorded_open(&recorded, path, values->place.sysroot, values->place.binary, why, sizeof why) &&
	        call_accesses_find(&calls, &recorded, why, sizeof why) &&
	        accesses_collect(&accesses, &recorded, &calls, why, sizeof why) &&
	        order_find(&order, &accesses, why, sizeof why) &&
	        order_verify(&order, &accesses, why, sizeof why) &&
	        (listing.variables = variables_open(recording)) &&
	        (listing.stacks = stacks_open(recording, &recorded, why, sizeof why))) {
		if (!call_accesses_note(&calls, &accesses))
			error_print("races",
			        "its system calls access too much memory: not all of that is looked at");
		seek_allocations(&listing);
		allocations_note_frees(&listing.allocations, &accesses);
		status = find_and_print(&listing, &order, values->all) ? STATUS_RACES : 0;
	} else {
		error_print("races", "%s: %s", path, why);
	}
	allocations_deinit(&listing.allocations);
	stacks_close(listing.stacks);
	if (listing.variables)
		variables_close(listing.variables);
	order_deinit(&order);
	call_accesses_deinit(&calls);
	accesses_deinit(&accesses);
	recorded_close(&recorded);
	return status;
}

static int races_main(int argc, char **argv)
{
	struct races_values values = {0};
	struct recording recording;
	int status;
	const char *file = options_parse_file(&races_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (!recording_open(&recording, "races", file))
		return STATUS_FAILED;
	status = search(&values, file, &recording);
	recording_close(&recording);
	return status;
}

const struct command races_command = {
        .name = "races",
        .summary = "find accesses of two threads that nothing orders",
        .synopsis = "races [--json] [--all] [--sysroot DIR] [--binary PATH] [--] FILE",
        .description =
                "List pairs of accesses to the same memory in the recording FILE, by two threads, at least\n"
                "one of which stores, that no synchronisation orders: the variable, or the allocation and "
                "who\n"
                "made it; where the accesses are, who called, the values, which came first, and whether the "
                "second saw what the first stored. Pairs of the "
                "same two\n"
                "instructions are told of once, the most suspicious first.\n"
                "\n"
                "Exit status: 0 when there is none, 1 when there are, 125 when it cannot be replayed.\n",
        .options = races_options,
        .function = races_main,
};
